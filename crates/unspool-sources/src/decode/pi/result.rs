//! Results of calls. A result says only whether it is an error; how a command ended is in the last
//! line of its text. What extensions add is in `details`. Extends `Conversation`.

use std::sync::Arc;

use unspool_model::event::{AgentEnd, AgentRef, CallRef, EventKind, ToolEnd, ToolOutcome};
use unspool_model::part::{
    Answer, Body, Decision, Question, QuestionItem, QuestionKind, QuestionOption, TaskItem,
    TaskList, TaskState,
};
use unspool_model::provenance::Name;

use super::super::{Emitter, Fields, RecordOutcome, SideChain};
use super::agent_session;
use super::conversation::Conversation;

/// The tool that starts sub-agents, in the extension that Pi has as an example.
pub(super) const AGENT_TOOL: &str = "subagent";

impl Conversation {
    /// The end of a call, from a `toolResult` message.
    pub(super) fn end_call(
        &mut self,
        emit: &mut Emitter<'_>,
        call: &str,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let is_error = message.flag("isError");
        self.end_call_with(emit, call, message, is_error)
    }

    /// The same from an event, which has its content and details in another object.
    pub(super) fn end_call_with(
        &mut self,
        emit: &mut Emitter<'_>,
        call: &str,
        result: &Fields<'_>,
        is_error: bool,
    ) -> RecordOutcome {
        let id: Arc<str> = call.into();
        let known = self.calls.remove(&id);
        let tool = known.or_else(|| result.string("toolName")).unwrap_or_default();
        let output = text_of(result);
        let last = output.trim_end().lines().next_back().unwrap_or_default();
        let is_command = tool == "bash" && is_error;
        let end = if is_command && last == "Command aborted" {
            ToolEnd::Interrupted
        } else if is_error {
            ToolEnd::Failed
        } else {
            ToolEnd::Completed
        };
        let exit_code = last.strip_prefix("Command exited with code ").filter(|_| is_command);
        let exit_code = exit_code.and_then(|code| code.parse().ok());
        let details = result.fields("details");
        if tool == "question" {
            emit_question(emit, &id, &details);
        }
        if tool == AGENT_TOOL {
            self.end_agents(emit, &id, &details);
        }
        let has_image = result.list("content").any(|block| !block.is("type", "text"));
        let kept = result.json("details").filter(|_| details.names().next().is_some());
        let outcome = ToolOutcome {
            output: Some(output),
            result: kept.or_else(|| result.json("content").filter(|_| has_image)),
            exit_code,
            duration_ms: None,
        };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(id.clone()), end, outcome });
        if details.list("todos").next().is_some() {
            emit_tasks(emit, &id, &details);
        }
        RecordOutcome::InParts
    }

    /// The sub-agents that a call asks for: one, several at once, or one after the other.
    pub(super) fn start_agents(&self, emit: &mut Emitter<'_>, call: &Arc<str>, input: &Fields<'_>) {
        let mut tasks: Vec<Fields<'_>> = input.list("tasks").chain(input.list("chain")).collect();
        if tasks.is_empty() && input.has("agent") {
            tasks.push(*input);
        }
        for (nth, task) in tasks.iter().enumerate() {
            let name = task.string("agent").unwrap_or_else(|| "agent".to_owned());
            let task = task.string("task").unwrap_or_default();
            self.start_agent(emit, call, nth, name, task);
        }
    }

    fn start_agent(
        &self,
        emit: &mut Emitter<'_>,
        call: &Arc<str>,
        nth: usize,
        name: String,
        task: String,
    ) {
        emit.push(EventKind::AgentStarted {
            agent: self.agent(call, nth),
            name,
            task,
            background: false,
        });
    }

    fn agent(&self, call: &Arc<str>, nth: usize) -> AgentRef {
        let id = agent_session(&self.session, call, nth);
        AgentRef { call: Some(call.clone()), id: Some(id.into()) }
    }

    /// A failed sub-agent does not make the result an error; its exit code says so.
    fn end_agents(&self, emit: &mut Emitter<'_>, call: &Arc<str>, details: &Fields<'_>) {
        for (nth, result) in details.list("results").enumerate() {
            let end = match result.read::<i64>("exitCode") {
                Some(0) => AgentEnd::Completed,
                Some(-1) | None => continue,
                Some(_) if result.is("stopReason", "aborted") => AgentEnd::Interrupted,
                Some(_) => AgentEnd::Failed,
            };
            // A chain that failed has fewer results than tasks.
            let name = result.string("agent").unwrap_or_else(|| "agent".to_owned());
            self.start_agent(emit, call, nth, name, result.string("task").unwrap_or_default());
            emit.push(EventKind::AgentEnded { agent: self.agent(call, nth), end });
        }
    }
}

/// The conversations of sub-agents inside a result.
pub(super) fn nested<'a>(session: &str, message: &Fields<'a>) -> Vec<(SideChain, Fields<'a>)> {
    if !message.is("role", "toolResult") || !message.is("toolName", AGENT_TOOL) {
        return Vec::new();
    }
    let call: Arc<str> = message.text("toolCallId").unwrap_or_default().into();
    let details = message.fields("details");
    let chain = |(nth, result): (usize, Fields<'a>)| {
        result.list("messages").next()?;
        let chain = SideChain {
            id: agent_session(session, &call, nth).into(),
            parent: session.into(),
            call: Some(call.clone()),
            kind: result.string("agent"),
            title: result.string("task"),
        };
        Some((chain, result))
    };
    details.list("results").enumerate().filter_map(chain).collect()
}

/// All texts of a result.
pub(super) fn text_of(result: &Fields<'_>) -> String {
    let texts: Vec<String> =
        result.list("content").filter_map(|block| block.string("text")).collect();
    texts.join("\n")
}

/// A question that the model asked with the tool of the example extension.
fn emit_question(emit: &mut Emitter<'_>, id: &Arc<str>, details: &Fields<'_>) {
    let Some(question) = details.string("question") else { return };
    let labels: Vec<String> = details.read("options").unwrap_or_default();
    let option = |label| QuestionOption { label, description: None };
    let options = labels.into_iter().map(option).collect();
    let item = QuestionItem { question: question.clone(), options, ..QuestionItem::default() };
    let asked = Question { request_id: None, kind: QuestionKind::Choice, items: vec![item] };
    let call = CallRef::Id(id.clone());
    emit.push(EventKind::QuestionAsked {
        call: call.clone(),
        tool: "question".to_owned(),
        question: asked,
        requested: false,
        inferred: false,
    });
    let given = details.string("answer");
    let decision = if given.is_some() { Decision::Answered } else { Decision::Declined };
    let text = given.clone().unwrap_or_default();
    let choices = given.map(|answer| (question, answer)).into_iter().collect();
    let answer = Answer { decision, text, choices, observed: true, by: None };
    emit.push(EventKind::QuestionAnswered { call, answer });
}

/// The whole list after a call of the example extension for tasks.
fn emit_tasks(emit: &mut Emitter<'_>, id: &Arc<str>, details: &Fields<'_>) {
    let item = |item: Fields<'_>| TaskItem {
        id: item.raw("id").map(|id| id.trim_matches('"').to_owned()),
        text: item.string("text").unwrap_or_default(),
        state: if item.flag("done") { TaskState::Completed } else { TaskState::Pending },
    };
    let items = details.list("todos").map(item).collect();
    let name = Name::Record(format!("{id}/todos").into());
    emit.push(EventKind::Part(Some(name), Body::TaskList(TaskList { items })));
}
