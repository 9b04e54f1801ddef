//! Views over a session's turns: message groups for a chat view, the model history that would
//! continue the session, and the list of tool calls. All borrow from turns of the assembler or the
//! store; nothing here is stored.

use crate::id::StepId;
use crate::json::Json;
use crate::part::{Body, File, Part, Reasoning, Tool, ToolState};
use crate::session::Turn;

/// One side of a turn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MessageGroup<'a> {
    User { turn: &'a Turn, items: &'a [Body] },
    Assistant { turn: &'a Turn, items: &'a [Part], thinking_mode: bool },
}

/// For each turn the user's group and then the assistant's. Both are always present and may be
/// empty; the view decides what to show for an empty one (R-004-15).
pub fn message_groups(turns: &[Turn]) -> impl Iterator<Item = MessageGroup<'_>> {
    turns.iter().flat_map(|turn| {
        [
            MessageGroup::User { turn, items: &turn.user },
            MessageGroup::Assistant { turn, items: &turn.parts, thinking_mode: turn.thinking_mode },
        ]
    })
}

/// One message of the model history.
#[derive(Clone, PartialEq, Debug)]
pub enum ModelMessage<'a> {
    User(Vec<UserContent<'a>>),
    /// One step of the model. The results of its calls are in the next message.
    Assistant(Vec<AssistantContent<'a>>),
    /// One result for each call of the previous message, in the order of the calls.
    Results(Vec<CallResult<'a>>),
}

/// Content sent to the model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum UserContent<'a> {
    /// Text that the user wrote.
    Text(&'a str),
    File(&'a File),
    /// Text that the agent added: a skill, an instruction, the summary of a compaction.
    Context(&'a str),
}

/// Content produced by the model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AssistantContent<'a> {
    Text(&'a str),
    Reasoning(&'a Reasoning),
    Call(&'a Tool),
    File(&'a File),
}

/// The result of a call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallResult<'a> {
    pub call_id: &'a str,
    pub text: &'a str,
    pub is_error: bool,
    /// No source has this result; it is here because no model accepts a call without one.
    pub synthetic: bool,
}

/// The history to continue these turns with a model. Every call has exactly one result and every
/// result a call (R-000-20). Abandoned turns are omitted, and compacted ones are replaced by their
/// summary.
pub fn model_history(turns: &[Turn]) -> Vec<ModelMessage<'_>> {
    let mut history = History::default();
    for turn in turns.iter().filter(|turn| !turn.abandoned) {
        for body in &turn.user {
            history.take_user(body);
        }
        history.close();
        for part in &turn.parts {
            history.take_part(part);
        }
        history.close();
    }
    history.messages
}

/// The messages so far, and the one being built.
#[derive(Default)]
struct History<'a> {
    messages: Vec<ModelMessage<'a>>,
    given: Vec<UserContent<'a>>,
    said: Vec<AssistantContent<'a>>,
    results: Vec<CallResult<'a>>,
    step: Option<StepId>,
}

impl<'a> History<'a> {
    /// Finishes the current message. A step's results directly follow its calls.
    fn close(&mut self) {
        if !self.given.is_empty() {
            self.messages.push(ModelMessage::User(std::mem::take(&mut self.given)));
        }
        if !self.said.is_empty() {
            self.messages.push(ModelMessage::Assistant(std::mem::take(&mut self.said)));
        }
        if !self.results.is_empty() {
            self.messages.push(ModelMessage::Results(std::mem::take(&mut self.results)));
        }
        self.step = None;
    }

    fn give(&mut self, given: UserContent<'a>) {
        if !self.said.is_empty() {
            self.close();
        }
        self.given.push(given);
    }

    /// Adds to the current step, or begins the next one. For sources without steps, output that
    /// follows tool results begins a new step.
    fn say(&mut self, said: AssistantContent<'a>, step: Option<StepId>) {
        let goes_on = match (self.step, step) {
            (Some(open), Some(step)) => open == step,
            (None, _) | (_, None) => {
                self.results.is_empty() || matches!(said, AssistantContent::Call(_))
            }
        };
        if !goes_on || !self.given.is_empty() {
            self.close();
        }
        self.step = self.step.or(step);
        self.said.push(said);
    }

    fn compact(&mut self, summary: &'a str) {
        // A feed that saw only the boundary has no summary to replace the history with.
        if !summary.is_empty() {
            self.close();
            self.messages.clear();
            self.given.push(UserContent::Context(summary));
        }
    }

    fn take_user(&mut self, body: &'a Body) {
        match body {
            Body::Text(text) => self.given.push(UserContent::Text(&text.text)),
            Body::Interjection(words) => self.given.push(UserContent::Text(&words.text)),
            Body::File(file) => self.given.push(UserContent::File(file)),
            Body::SkillLoad(skill) => self.given.push(UserContent::Context(&skill.text)),
            Body::ContextInfo(context) => self.given.push(UserContent::Context(&context.text)),
            Body::Compaction(compaction) => self.compact(&compaction.summary),
            // Never part of a user message to a model.
            Body::Reasoning(_)
            | Body::Tool(_)
            | Body::Agent(_)
            | Body::TaskList(_)
            | Body::McpSnapshot(_)
            | Body::Source(_)
            | Body::Patch(_)
            | Body::Notice(_)
            | Body::Error(_)
            | Body::Data(_) => {}
        }
    }

    fn take_part(&mut self, part: &'a Part) {
        match &part.body {
            Body::Text(text) => self.say(AssistantContent::Text(&text.text), part.step),
            Body::Reasoning(reasoning) => {
                self.say(AssistantContent::Reasoning(reasoning), part.step)
            }
            Body::File(file) => self.say(AssistantContent::File(file), part.step),
            Body::Tool(tool) => {
                if is_model_call(tool) {
                    self.say(AssistantContent::Call(tool), part.step);
                    self.results.push(result_of(tool));
                }
            }
            Body::Interjection(words) => self.give(UserContent::Text(&words.text)),
            Body::SkillLoad(skill) => self.give(UserContent::Context(&skill.text)),
            Body::ContextInfo(context) => self.give(UserContent::Context(&context.text)),
            Body::Compaction(compaction) => self.compact(&compaction.summary),
            // Shown to the person only, or already contained in a call's result.
            Body::Agent(_)
            | Body::TaskList(_)
            | Body::McpSnapshot(_)
            | Body::Source(_)
            | Body::Patch(_)
            | Body::Notice(_)
            | Body::Error(_)
            | Body::Data(_) => {}
        }
    }
}

/// True if the model itself made the call. A nested call belongs to its tool, and a part without a
/// name is a result whose call no source has (R-000-07).
fn is_model_call(tool: &Tool) -> bool {
    tool.parent_call_id.is_none() && !tool.name.is_empty()
}

fn result_of(tool: &Tool) -> CallResult<'_> {
    let raw_output = tool.output.as_deref();
    let (text, is_error, synthetic) = match tool.state {
        ToolState::Completed => (raw_output.unwrap_or_default(), false, false),
        ToolState::Failed | ToolState::Denied | ToolState::Interrupted => {
            (raw_output.unwrap_or(tool.state.name()), true, raw_output.is_none())
        }
        // Partial output is not a result.
        ToolState::Pending | ToolState::Running => (ToolState::Interrupted.name(), true, true),
    };
    CallResult { call_id: &tool.call_id, text, is_error, synthetic }
}

/// An entry of the list of tool calls.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ToolCallEntry<'a> {
    /// Its index among all calls of the session.
    pub order: usize,
    pub turn: &'a Turn,
    pub id: &'a str,
    pub name: &'a str,
    pub input: Option<&'a Json>,
    /// The output, unless the call failed.
    pub output: Option<&'a str>,
    /// The error, if the call failed.
    pub error: Option<&'a str>,
    pub state: ToolState,
}

/// All tool calls, in order (R-001-26).
pub fn tool_calls(turns: &[Turn]) -> impl Iterator<Item = ToolCallEntry<'_>> {
    let tools = turns
        .iter()
        .flat_map(|turn| turn.parts.iter().filter_map(move |part| Some((turn, part.body.tool()?))));
    tools.enumerate().map(|(order, (turn, tool))| {
        let raw_output = tool.output.as_deref();
        let (output, error) = match tool.state {
            ToolState::Pending | ToolState::Running | ToolState::Completed => (raw_output, None),
            ToolState::Failed | ToolState::Denied | ToolState::Interrupted => {
                (None, Some(raw_output.unwrap_or(tool.state.name())))
            }
        };
        ToolCallEntry {
            order,
            turn,
            id: &tool.call_id,
            name: &tool.name,
            input: tool.input.as_ref(),
            output,
            error,
            state: tool.state,
        }
    })
}

/// Calls without an end (R-001-20). Whether they still run is for the caller to decide: the end of
/// a file is not an event.
pub fn unfinished_calls(turns: &[Turn]) -> impl Iterator<Item = ToolCallEntry<'_>> {
    tool_calls(turns).filter(|call| !call.state.is_terminal())
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
