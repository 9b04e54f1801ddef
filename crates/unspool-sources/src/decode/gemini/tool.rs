//! Calls of tools and what came of them.

use std::sync::Arc;

use unspool_core::event::{AgentEnd, AgentRef, Call, EndReason, Outcome, ToolCall, ToolEnd, What};

use super::super::{Emit, Fields};

/// A call, from the chat file or the stream, which name its input differently.
pub(super) fn called(
    emit: &mut Emit<'_>,
    id: &Arc<str>,
    call: &Fields<'_>,
    input: &str,
    running: bool,
) {
    let name = call.string("name").or_else(|| call.string("tool_name")).unwrap_or_default();
    let given = call.fields(input);
    emit.push(What::ToolCalled(Box::new(ToolCall {
        call: Call::Id(id.clone()),
        parent_call_id: None,
        name: name.clone(),
        input: call.json(input),
        likeness: call.likeness(&name, input),
        provider_executed: false,
        title: call.string("description").filter(|_| call.has("displayName")),
        running,
    })));
    if name == "invoke_agent" && given.is_object() {
        emit.push(What::AgentStarted {
            agent: AgentRef { call: Some(id.clone()), id: None },
            name: given.string("agent_name").unwrap_or_else(|| "agent".to_owned()),
            task: given.string("prompt").unwrap_or_default(),
            background: false,
        });
    }
}

/// A call of the chat file, which is written when it has ended.
pub(super) fn ended(emit: &mut Emit<'_>, id: &Arc<str>, call: &Fields<'_>) {
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
        // A command that was stopped counts as a success all the same.
        Some(_) | None if name == "run_shell_command" && is_stopped(text) => ToolEnd::Interrupted,
        Some(_) | None => ToolEnd::Completed,
    };
    let exit_code = (name == "run_shell_command").then(|| exit_code(text)).flatten();
    let result = call.json("resultDisplay").filter(|_| display.is_object());
    let outcome = Outcome { output, result, exit_code, duration_ms: None };
    emit.push(What::ToolEnded { call: Call::Id(id.clone()), end, outcome });
    if end == ToolEnd::Interrupted {
        emit.push(What::TurnEnded(EndReason::Interrupted));
    }
}

/// A result that stands alone.
pub(super) fn responded(emit: &mut Emit<'_>, id: &Arc<str>, response: &Fields<'_>) {
    let name = response.text("name").unwrap_or_default();
    let told = response.fields("response");
    let error = told.string("error");
    let refused = format!("Tool \"{name}\" was canceled by the user");
    let end = match &error {
        Some(error) if error.starts_with(&refused) => ToolEnd::Rejected,
        Some(_) => ToolEnd::Failed,
        None => ToolEnd::Completed,
    };
    let output = told.string("output").or(error);
    let outcome = Outcome { output, ..Outcome::default() };
    emit.push(What::ToolEnded { call: Call::Id(id.clone()), end, outcome });
}

/// The sub-agent that a call started: its own session has this id.
fn agent(emit: &mut Emit<'_>, call: &Arc<str>, told: &Fields<'_>, display: &Fields<'_>) {
    let Some(id) = told.text("agentId") else { return };
    let agent = AgentRef { call: Some(call.clone()), id: Some(id.into()) };
    let end = match display.text("terminateReason").as_deref() {
        Some("GOAL") => AgentEnd::Completed,
        Some("ABORTED") => AgentEnd::Interrupted,
        Some(_) => AgentEnd::Failed,
        None if told.is("status", "success") => AgentEnd::Completed,
        None => AgentEnd::Failed,
    };
    emit.push(What::AgentProgressed { agent: agent.clone(), activity: None, background: false });
    emit.push(What::AgentEnded { agent, end });
}

const BEGIN: &str = "<untrusted_context>\n";

fn is_stopped(output: &str) -> bool {
    let said = output.strip_prefix(BEGIN).unwrap_or(output);
    said.starts_with("Command was cancelled by user")
}

/// The exit code is said nowhere but among the lines that the program writes behind the command's
/// output. Success is not said at all.
fn exit_code(output: &str) -> Option<i64> {
    let said = output.strip_suffix("\n</untrusted_context>").unwrap_or(output);
    let own = ["Exit Code: ", "Process Group PGID: ", "Background PIDs: ", "Signal: ", "Error: "];
    let mut lines = said.lines().rev().take_while(|line| own.iter().any(|it| line.starts_with(it)));
    lines.find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
}
