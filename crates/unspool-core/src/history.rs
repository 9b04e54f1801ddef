//! Views over a session's turns: message groups for a chat view, the model history that would
//! continue the session, and the list of tool calls. All borrow from turns of the assembler or the
//! store; nothing here is stored.

use crate::id::StepId;
use crate::json::Json;
use crate::part::{Body, File, Part, Reasoning, Tool, ToolState};
use crate::session::Turn;

/// One side of a turn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Group<'a> {
    User { turn: &'a Turn, items: &'a [Body] },
    Assistant { turn: &'a Turn, items: &'a [Part], thinking_mode: bool },
}

/// For each turn the user's group and then the assistant's. Both are always present and may be
/// empty; the view decides what to show for an empty one (R-004-15).
pub fn message_groups(turns: &[Turn]) -> impl Iterator<Item = Group<'_>> {
    turns.iter().flat_map(|turn| {
        [
            Group::User { turn, items: &turn.user },
            Group::Assistant { turn, items: &turn.parts, thinking_mode: turn.thinking_mode },
        ]
    })
}

/// One message of the model history.
#[derive(Clone, PartialEq, Debug)]
pub enum Message<'a> {
    User(Vec<Given<'a>>),
    /// One step of the model. The results of its calls are in the next message.
    Assistant(Vec<Said<'a>>),
    /// One result for each call of the previous message, in the order of the calls.
    Results(Vec<CallResult<'a>>),
}

/// Content sent to the model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Given<'a> {
    /// Text that the user wrote.
    Text(&'a str),
    File(&'a File),
    /// Text that the agent added: a skill, an instruction, the summary of a compaction.
    Context(&'a str),
}

/// Content produced by the model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Said<'a> {
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
pub fn model_history(turns: &[Turn]) -> Vec<Message<'_>> {
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
    messages: Vec<Message<'a>>,
    given: Vec<Given<'a>>,
    said: Vec<Said<'a>>,
    results: Vec<CallResult<'a>>,
    step: Option<StepId>,
}

impl<'a> History<'a> {
    /// Finishes the current message. A step's results directly follow its calls.
    fn close(&mut self) {
        if !self.given.is_empty() {
            self.messages.push(Message::User(std::mem::take(&mut self.given)));
        }
        if !self.said.is_empty() {
            self.messages.push(Message::Assistant(std::mem::take(&mut self.said)));
        }
        if !self.results.is_empty() {
            self.messages.push(Message::Results(std::mem::take(&mut self.results)));
        }
        self.step = None;
    }

    fn give(&mut self, given: Given<'a>) {
        if !self.said.is_empty() {
            self.close();
        }
        self.given.push(given);
    }

    /// Adds to the current step, or begins the next one. For sources without steps, output that
    /// follows tool results begins a new step.
    fn say(&mut self, said: Said<'a>, step: Option<StepId>) {
        let goes_on = match (self.step, step) {
            (Some(open), Some(step)) => open == step,
            (None, _) | (_, None) => self.results.is_empty() || matches!(said, Said::Call(_)),
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
            self.given.push(Given::Context(summary));
        }
    }

    fn take_user(&mut self, body: &'a Body) {
        match body {
            Body::Text(text) => self.given.push(Given::Text(&text.text)),
            Body::Interjection(words) => self.given.push(Given::Text(&words.text)),
            Body::File(file) => self.given.push(Given::File(file)),
            Body::SkillLoad(skill) => self.given.push(Given::Context(&skill.text)),
            Body::ContextInfo(context) => self.given.push(Given::Context(&context.text)),
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
            Body::Text(text) => self.say(Said::Text(&text.text), part.step),
            Body::Reasoning(reasoning) => self.say(Said::Reasoning(reasoning), part.step),
            Body::File(file) => self.say(Said::File(file), part.step),
            Body::Tool(tool) => {
                if is_model_call(tool) {
                    self.say(Said::Call(tool), part.step);
                    self.results.push(result_of(tool));
                }
            }
            Body::Interjection(words) => self.give(Given::Text(&words.text)),
            Body::SkillLoad(skill) => self.give(Given::Context(&skill.text)),
            Body::ContextInfo(context) => self.give(Given::Context(&context.text)),
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
    let told = tool.output.as_deref();
    let (text, is_error, synthetic) = match tool.state {
        ToolState::Completed => (told.unwrap_or_default(), false, false),
        ToolState::Failed | ToolState::Denied | ToolState::Interrupted => {
            (told.unwrap_or(tool.state.name()), true, told.is_none())
        }
        // Partial output is not a result.
        ToolState::Pending | ToolState::Running => (ToolState::Interrupted.name(), true, true),
    };
    CallResult { call_id: &tool.call_id, text, is_error, synthetic }
}

/// An entry of the list of tool calls.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ToolCall<'a> {
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
pub fn tool_calls(turns: &[Turn]) -> impl Iterator<Item = ToolCall<'_>> {
    let tools = turns.iter().flat_map(|turn| {
        turn.parts.iter().filter_map(move |part| match &part.body {
            Body::Tool(tool) => Some((turn, tool.as_ref())),
            Body::Text(_)
            | Body::Reasoning(_)
            | Body::Agent(_)
            | Body::Interjection(_)
            | Body::TaskList(_)
            | Body::SkillLoad(_)
            | Body::McpSnapshot(_)
            | Body::ContextInfo(_)
            | Body::Compaction(_)
            | Body::File(_)
            | Body::Source(_)
            | Body::Patch(_)
            | Body::Notice(_)
            | Body::Error(_)
            | Body::Data(_) => None,
        })
    });
    tools.enumerate().map(|(order, (turn, tool))| {
        let told = tool.output.as_deref();
        let (output, error) = match tool.state {
            ToolState::Pending | ToolState::Running | ToolState::Completed => (told, None),
            ToolState::Failed | ToolState::Denied | ToolState::Interrupted => {
                (None, Some(told.unwrap_or(tool.state.name())))
            }
        };
        ToolCall {
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

/// Calls without an end (R-001-20). Whether they still run is for the engine to decide: the end of
/// a file is not an event.
pub fn dangling(turns: &[Turn]) -> impl Iterator<Item = ToolCall<'_>> {
    tool_calls(turns).filter(|call| !call.state.is_terminal())
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
