//! Tool calls and their results, shared by the chat file and the stream.

use std::sync::Arc;

use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EndReason, EventKind, ToolCall, ToolEnd, ToolOutcome,
};

use super::super::{Emitter, Fields};

/// Emits a call. `input` is the name of its input field: `args` in the chat file, `parameters` in
/// the stream.
pub(super) fn emit_call(
    emit: &mut Emitter<'_>,
    id: &Arc<str>,
    call: &Fields<'_>,
    input: &str,
    running: bool,
) {
    let name = call.string("name").or_else(|| call.string("tool_name")).unwrap_or_default();
    let given = call.fields(input);
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call: CallRef::Id(id.clone()),
        parent_call_id: None,
        name: name.clone(),
        input: call.json(input),
        content_hash: call.content_hash(&name, input),
        provider_executed: false,
        title: call.string("description").filter(|_| call.has("displayName")),
        running,
    })));
    if name == "invoke_agent" && given.is_object() {
        emit.push(EventKind::AgentStarted {
            agent: AgentRef { call: Some(id.clone()), id: None },
            name: given.string("agent_name").unwrap_or_else(|| "agent".to_owned()),
            task: given.string("prompt").unwrap_or_default(),
            background: given.asks_for_background(),
        });
    }
}

/// Emits the end of a call of the chat file.
pub(super) fn emit_end(emit: &mut Emitter<'_>, id: &Arc<str>, call: &Fields<'_>) {
    let name = call.text("name").unwrap_or_default();
    let response =
        call.list("result").map(|part| part.fields("functionResponse").fields("response"));
    let response = response.into_iter().next().unwrap_or_default();
    let output = response.string("output").or_else(|| response.string("error"));
    let display = call.fields("resultDisplay");
    agent(emit, id, call, &display);
    let text = output.as_deref().unwrap_or_default();
    let end = match call.text("status").as_deref() {
        Some("cancelled") => ToolEnd::Rejected,
        Some("error") => ToolEnd::Failed,
        // A cancelled command has the status `success`.
        Some(_) | None if name == "run_shell_command" && is_stopped(text) => ToolEnd::Interrupted,
        Some(_) | None => ToolEnd::Completed,
    };
    let exit_code = (name == "run_shell_command").then(|| exit_code(text)).flatten();
    let result = call.json("resultDisplay").filter(|_| display.is_object());
    let outcome = ToolOutcome { output, result, exit_code, duration_ms: None };
    emit.push(EventKind::ToolEnded { call: CallRef::Id(id.clone()), end, outcome });
    if end == ToolEnd::Interrupted {
        emit.push(EventKind::TurnEnded(EndReason::Interrupted));
    }
}

/// Emits the result of a call that has no record of its own.
pub(super) fn emit_response(emit: &mut Emitter<'_>, id: &Arc<str>, response: &Fields<'_>) {
    let name = response.text("name").unwrap_or_default();
    let value = response.fields("response");
    let error = value.string("error");
    let refused = format!("Tool \"{name}\" was canceled by the user");
    let end = match &error {
        Some(error) if error.starts_with(&refused) => ToolEnd::Rejected,
        Some(_) => ToolEnd::Failed,
        None => ToolEnd::Completed,
    };
    let output = value.string("output").or(error);
    let outcome = ToolOutcome { output, ..ToolOutcome::default() };
    emit.push(EventKind::ToolEnded { call: CallRef::Id(id.clone()), end, outcome });
}

/// Emits the end of the sub-agent that a call started. `agentId` is the id of its session.
fn agent(emit: &mut Emitter<'_>, call: &Arc<str>, value: &Fields<'_>, display: &Fields<'_>) {
    let Some(id) = value.text("agentId") else { return };
    let agent = AgentRef { call: Some(call.clone()), id: Some(id.into()) };
    let end = match display.text("terminateReason").as_deref() {
        Some("GOAL") => AgentEnd::Completed,
        Some("ABORTED") => AgentEnd::Interrupted,
        Some(_) => AgentEnd::Failed,
        None if value.is("status", "success") => AgentEnd::Completed,
        None => AgentEnd::Failed,
    };
    emit.push(EventKind::AgentProgressed {
        agent: agent.clone(),
        activity: None,
        background: false,
    });
    emit.push(EventKind::AgentEnded { agent, end });
}

const UNTRUSTED_CONTEXT_START: &str = "<untrusted_context>\n";

fn is_stopped(output: &str) -> bool {
    let said = output.strip_prefix(UNTRUSTED_CONTEXT_START).unwrap_or(output);
    said.starts_with("Command was cancelled by user")
}

/// Reads the exit code from the lines that Gemini appends to the command's output, its only
/// record. Exit code 0 is not written.
pub(in crate::decode) fn exit_code(output: &str) -> Option<i64> {
    let said = output.strip_suffix("\n</untrusted_context>").unwrap_or(output);
    let own = ["Exit Code: ", "Process Group PGID: ", "Background PIDs: ", "Signal: ", "Error: "];
    let mut lines = said.lines().rev().take_while(|line| own.iter().any(|it| line.starts_with(it)));
    lines.find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
}
