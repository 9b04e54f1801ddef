//! Sub-agents that a `Task` call starts. Each has a session file of its own, which names the call.
//! Most run in the background: the call returns at once, and a message of the program reports the
//! end in a new turn. Shared by session file and stream.

use std::sync::Arc;

use unspool_model::event::{AgentEnd, AgentRef, EventKind, ToolEnd};
use unspool_model::part::{Body, Notice};

use super::super::{Emitter, Fields};

/// How the id of the message begins that reports the end of a background task.
pub(super) const COMPLETION_PREFIX: &str = "task-completion:";

/// A task runs in the background unless the call waits for it.
pub(super) fn report_background(emit: &mut Emitter<'_>, call: &Arc<str>, input: &Fields<'_>) {
    if !input.flag("await") {
        let agent = AgentRef { call: Some(call.clone()), id: None };
        emit.push(EventKind::AgentProgressed { agent, activity: None, background: true });
    }
}

/// Links the call to its session, and ends an agent that the call waited for.
pub(super) fn report_result(emit: &mut Emitter<'_>, call: &Arc<str>, end: ToolEnd, output: &str) {
    let is_launch = output.starts_with("Task launched in background");
    let id = field(output, "session_id").or_else(|| field(output, "task_id"));
    let agent = AgentRef { call: Some(call.clone()), id: id.map(Into::into) };
    if agent.id.is_some() {
        let (activity, background) = (None, is_launch);
        emit.push(EventKind::AgentProgressed { agent: agent.clone(), activity, background });
    }
    if !is_launch {
        let end = match end {
            ToolEnd::Completed => AgentEnd::Completed,
            ToolEnd::Failed | ToolEnd::Denied => AgentEnd::Failed,
            ToolEnd::Interrupted | ToolEnd::Rejected => AgentEnd::Interrupted,
        };
        emit.push(EventKind::AgentEnded { agent, end });
    }
}

/// Ends the agent that a message reports, and returns what the turn begins with.
pub(super) fn report_completion(emit: &mut Emitter<'_>, text: String) -> Vec<Body> {
    if let Some(id) = field(&text, "task_id") {
        let agent = AgentRef { call: None, id: Some(id.into()) };
        let end = match field(&text, "reason") {
            Some("completed") => AgentEnd::Completed,
            Some("cancelled" | "stopped" | "process_exit") => AgentEnd::Interrupted,
            Some(_) | None => AgentEnd::Failed,
        };
        emit.push(EventKind::AgentEnded { agent, end });
    }
    vec![Body::Notice(Notice { code: "task-notification".to_owned(), text })]
}

/// A line `name: value` of the program's text.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let value = |line: &'t str| line.strip_prefix(name)?.strip_prefix(": ");
    text.lines().find_map(value).map(str::trim).filter(|value| !value.is_empty())
}
