//! Calls and their results in the log of Qwen Code.

use std::sync::Arc;

use serde::Deserialize;
use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome,
};
use unspool_model::part::{Answer, Decision};

use super::super::claude::message::choice;
use super::super::gemini::exit_code;
use super::super::permission::report_permission;
use super::super::{Emitter, Fields};
use super::agent_session;

/// A tool that calls another one, whose name and input are its arguments.
const WRAPPER_TOOL: &str = "tool_call";
const QUESTION_TOOL: &str = "ask_user_question";

/// Emits a call and returns the name of its tool. `session` is the one that it was made in.
pub(super) fn emit_call(
    emit: &mut Emitter<'_>,
    session: &str,
    id: &Arc<str>,
    call: &Fields<'_>,
    input: &str,
) -> String {
    let given = call.fields(input);
    let inner = call.is("name", WRAPPER_TOOL).then(|| given.string("name")).flatten();
    let (call, input, given) = match &inner {
        Some(_) => (given, "arguments", given.fields("arguments")),
        None => (*call, input, given),
    };
    let name = inner.or_else(|| call.string("name")).unwrap_or_default();
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call: CallRef::Id(id.clone()),
        parent_call_id: None,
        name: name.clone(),
        input: call.json(input),
        content_hash: call.content_hash(&name, input),
        provider_executed: false,
        title: None,
        // The record is written before the tools run.
        running: true,
    })));
    started(emit, session, id, &name, &given);
    name
}

/// Emits the extra events of calls that start an agent or ask a question.
pub(in crate::decode) fn started(
    emit: &mut Emitter<'_>,
    session: &str,
    id: &Arc<str>,
    name: &str,
    input: &Fields<'_>,
) {
    match name {
        "agent" => {
            let kind = input.string("subagent_type").unwrap_or_else(|| "agent".to_owned());
            // The agent's id is known before it runs.
            let agent = agent_session(session, &format!("{kind}-{id}"));
            emit.push(EventKind::AgentStarted {
                agent: AgentRef { call: Some(id.clone()), id: Some(agent.into()) },
                name: kind,
                task: input.string("description").unwrap_or_default(),
                // In the background unless the model asks to wait.
                background: input.truth("run_in_background").unwrap_or(true),
            });
        }
        QUESTION_TOOL => {
            if let Some(question) = choice(input) {
                emit.push(EventKind::QuestionAsked {
                    call: CallRef::Id(id.clone()),
                    tool: name.to_owned(),
                    question,
                    requested: false,
                    inferred: false,
                });
            }
        }
        _ => {}
    }
}

/// How a call ended: by the fields of `toolCallResult`, or of the telemetry about it.
pub(super) struct Status<'a> {
    pub status: Option<std::borrow::Cow<'a, str>>,
    pub execution: Option<std::borrow::Cow<'a, str>>,
    pub error: Option<std::borrow::Cow<'a, str>>,
}

impl Status<'_> {
    pub fn of_result<'a>(result: &Fields<'a>) -> Status<'a> {
        Status {
            status: result.text("status"),
            execution: result.text("executionStatus"),
            error: result.text("errorType"),
        }
    }

    pub fn of_telemetry<'a>(event: &Fields<'a>) -> Status<'a> {
        Status {
            status: event.text("status"),
            execution: event.text("execution_status"),
            error: event.text("error_type"),
        }
    }

    /// `None` if the record does not say how the call ended.
    pub fn end(&self) -> Option<ToolEnd> {
        Some(match self.status.as_deref()? {
            "cancelled" if self.execution.as_deref() == Some("not_started") => ToolEnd::Denied,
            "cancelled" => ToolEnd::Interrupted,
            "error" if self.error.as_deref() == Some("execution_denied") => ToolEnd::Denied,
            "error" => ToolEnd::Failed,
            _ => ToolEnd::Completed,
        })
    }
}

/// Emits the result of a call. Records of sub-agents say only in the response whether it failed.
pub(super) fn emit_result(
    emit: &mut Emitter<'_>,
    tool: &str,
    response: &Fields<'_>,
    result: &Fields<'_>,
) -> Option<ToolEnd> {
    let id: Arc<str> = response.text("id").or_else(|| result.text("callId"))?.into();
    let value = response.fields("response");
    let error = value.string("error");
    let failed = if error.is_some() { ToolEnd::Failed } else { ToolEnd::Completed };
    let end = Status::of_result(result).end().unwrap_or(failed);
    let display = result.fields("resultDisplay");
    if tool == QUESTION_TOOL {
        emit_answers(emit, &id, end, &display);
    }
    emit_agent_end(emit, &id, &display);
    // The response of a call that was stopped has a reason for the model in place of the output.
    let stopped = (end == ToolEnd::Interrupted).then(|| output_so_far(result)).flatten();
    let output = stopped.or_else(|| value.string("output")).or(error);
    let shown = display.number("exitCode").and_then(|code| i64::try_from(code).ok());
    let is_shell = tool == "run_shell_command";
    let said = || output.as_deref().filter(|_| is_shell).and_then(exit_code);
    let outcome = ToolOutcome {
        exit_code: display.read("exitCode").or(shown).or_else(said),
        // The images of a file that was read are beside the response.
        result: result
            .json("resultDisplay")
            .filter(|_| display.is_object())
            .or_else(|| response.json("parts")),
        output,
        duration_ms: result.number("durationMs"),
    };
    emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
    Some(end)
}

/// What a call had put out when it was stopped: a text, the lines of its terminal, or the output in
/// the result of a command.
fn output_so_far(result: &Fields<'_>) -> Option<String> {
    if let Some(text) = result.string("resultDisplay") {
        return Some(text).filter(|text| !text.trim().is_empty());
    }
    let display = result.fields("resultDisplay");
    if let Some(output) = display.string("output") {
        return Some(output).filter(|text| !text.trim().is_empty());
    }
    let lines: Vec<Vec<AnsiToken>> = display.read("ansiOutput")?;
    let text = |line: &Vec<AnsiToken>| line.iter().map(|token| token.text.as_str()).collect();
    let lines: Vec<String> = lines.iter().map(text).collect();
    Some(lines.join("\n").trim_end().to_owned()).filter(|text| !text.is_empty())
}

/// Text of a terminal in one style.
#[derive(Deserialize)]
struct AnsiToken {
    #[serde(default)]
    text: String,
}

fn emit_answers(emit: &mut Emitter<'_>, id: &Arc<str>, end: ToolEnd, display: &Fields<'_>) {
    let pair = |answer: Fields<'_>| {
        Some((answer.string("question")?, answer.string("answer").unwrap_or_default()))
    };
    let choices: Vec<(String, String)> = display.list("answers").filter_map(pair).collect();
    let decision = match end {
        ToolEnd::Completed if !choices.is_empty() => Decision::Answered,
        ToolEnd::Denied => Decision::Declined,
        ToolEnd::Completed | ToolEnd::Failed | ToolEnd::Interrupted | ToolEnd::Rejected => return,
    };
    let text: Vec<&str> = choices.iter().map(|(_, answer)| answer.as_str()).collect();
    let answer = Answer { decision, text: text.join(" · "), choices, observed: true, by: None };
    emit.push(EventKind::QuestionAnswered { call: CallRef::Id(id.clone()), answer });
}

/// The end of an agent in the foreground. One in the background ends by its notification.
fn emit_agent_end(emit: &mut Emitter<'_>, id: &Arc<str>, display: &Fields<'_>) {
    if !display.is("type", "task_execution") {
        return;
    }
    let agent = AgentRef { call: Some(id.clone()), id: None };
    let end = match display.text("status").as_deref() {
        Some("background" | "running") | None => {
            let background = display.is("executionMode", "background");
            return emit.push(EventKind::AgentProgressed { agent, activity: None, background });
        }
        Some("completed") => AgentEnd::Completed,
        Some("cancelled") => AgentEnd::Interrupted,
        Some(_) => AgentEnd::Failed,
    };
    emit.push(EventKind::AgentEnded { agent, end });
}

/// A question about a permission, and its answer. The log has only the answer, when the call ends.
pub(super) fn emit_permission(emit: &mut Emitter<'_>, id: &Arc<str>, tool: &str, decision: &str) {
    let (decision, text) = match decision {
        "accept" | "modify" => (Decision::Allowed, "allowed"),
        "reject" => (Decision::Denied, ""),
        // A mode or a rule decided.
        _ => return,
    };
    if tool == QUESTION_TOOL {
        return;
    }
    report_permission(emit, CallRef::Id(id.clone()), tool, decision, text.to_owned());
}

/// The bytes of a file in a part of Gemini's shape, as an address.
pub(super) fn data_url(part: &Fields<'_>) -> Option<(Option<String>, String)> {
    let data = part.fields("inlineData");
    let media = data.string("mimeType");
    let kind = media.as_deref().unwrap_or("application/octet-stream");
    let url = format!("data:{kind};base64,{}", data.text("data")?);
    Some((media, url))
}
