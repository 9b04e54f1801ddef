//! Results of calls. A result is a list with an entry for each file, command or query of the call;
//! or a text, which may be a JSON object. Only calls that did not run are marked as errors: what
//! failed is in the entries, and exit codes are in their words. Extends `LogDecoder`.

use std::sync::Arc;

use serde_json::Value;
use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EndReason, EventKind, ToolEnd, ToolOutcome,
};
use unspool_model::part::{Answer, Decision};

use super::super::{Emitter, Fields};
use super::log::LogDecoder;

const REJECTION: &str = "This tool call was rejected by the user";
/// Written for a call of an imported session whose result its agent did not keep.
const NOT_IMPORTED: &str = "[import] Tool result was not captured";
/// How the error of a call ends that the user stopped.
const ABORTS: [&str; 2] = ["Command was aborted", "Interactive runtime abort requested"];

impl LogDecoder {
    pub(super) fn result(&mut self, emit: &mut Emitter<'_>, block: &Fields<'_>) {
        let id: Arc<str> = block.text("tool_use_id").unwrap_or_default().into();
        let known = self.calls.remove(&id);
        let tool = known.or_else(|| block.string("name")).unwrap_or_default();
        let end = end_call(emit, &id, &tool, block, "content", block.flag("is_error"));
        if end == Some(ToolEnd::Interrupted) {
            self.end(emit, EndReason::Interrupted);
        }
    }
}

/// Emits the end of a call whose result is the field `content`. `None` if it is no result.
pub(super) fn end_call(
    emit: &mut Emitter<'_>,
    id: &Arc<str>,
    tool: &str,
    block: &Fields<'_>,
    content: &str,
    is_error: bool,
) -> Option<ToolEnd> {
    let value: Value = block.read(content).unwrap_or_default();
    let found = read_result(tool, &value, is_error)?;
    let call = CallRef::Id(id.clone());
    if tool == "ask_question" && found.end == ToolEnd::Completed {
        let text = found.output.clone();
        let (decision, choices) = (Decision::Answered, Vec::new());
        let answer = Answer { decision, text, choices, observed: true, by: None };
        emit.push(EventKind::QuestionAnswered { call: call.clone(), answer });
    }
    if starts_agent(tool) {
        end_agent(emit, id, &value, found.end);
    }
    let (end, exit_code) = (found.end, found.exit_code);
    let outcome = ToolOutcome {
        output: Some(found.output),
        result: block.json(content).filter(|_| !block.is_text(content)),
        exit_code,
        duration_ms: block.number("durationMs"),
    };
    emit.push(EventKind::ToolEnded { call, end, outcome });
    Some(end)
}

/// True for a tool that starts a sub-agent.
pub(super) fn starts_agent(tool: &str) -> bool {
    matches!(tool, "spawn_agent" | "team_run_task")
}

struct CallResult {
    output: String,
    end: ToolEnd,
    exit_code: Option<i64>,
}

/// What a result says; `None` if there is no result.
fn read_result(tool: &str, content: &Value, is_error: bool) -> Option<CallResult> {
    let parsed = match content {
        Value::String(text) if text.starts_with(NOT_IMPORTED) => return None,
        // Some tools write their object as text.
        Value::String(text) => serde_json::from_str::<Value>(text).ok().filter(Value::is_object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    };
    let entries: Vec<&Value> = match (content, &parsed) {
        (Value::Array(entries), _) => entries.iter().collect(),
        (_, Some(entry)) => vec![entry],
        (_, None) => Vec::new(),
    };
    let errors: Vec<&str> =
        entries.iter().filter_map(|entry| entry.get("error")?.as_str()).collect();
    let failed = is_error
        || !errors.is_empty()
        || entries.iter().any(|entry| entry["success"] == false || entry["isError"] == true);
    let aborted = errors.iter().any(|error| ABORTS.iter().any(|abort| error.ends_with(abort)));
    let end = if is_error && errors.iter().any(|error| error.starts_with(REJECTION)) {
        ToolEnd::Denied
    } else if aborted {
        ToolEnd::Interrupted
    } else if failed {
        ToolEnd::Failed
    } else {
        ToolEnd::Completed
    };
    let is_command = tool == "run_commands";
    let exit_code = errors
        .iter()
        .filter(|_| is_command)
        .find_map(|error| error.strip_prefix("Command exited with code ")?.trim().parse().ok());
    let wraps = |entry: &Value| !text_of_entry(entry).is_empty();
    let is_plain = !parsed.as_ref().is_some_and(wraps);
    let output = match content.as_str().filter(|_| is_plain) {
        Some(text) => text.to_owned(),
        None => entries.iter().map(|entry| text_of_entry(entry)).collect::<Vec<_>>().join("\n"),
    };
    Some(CallResult { output, end, exit_code })
}

/// The text of an entry: its result, the blocks of a server's answer, or else its error.
fn text_of_entry(entry: &Value) -> String {
    let given = entry.get("result").unwrap_or(&entry["content"]);
    let result = match given {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => entry["text"].as_str().unwrap_or_default().to_owned(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other.to_string(),
    };
    let error = entry["error"].as_str().filter(|_| result.trim().is_empty());
    error.map_or(result, str::to_owned)
}

/// The end of a sub-agent whose result its parent waited for.
fn end_agent(emit: &mut Emitter<'_>, id: &Arc<str>, content: &Value, end: ToolEnd) {
    let object: Option<Value> = content.as_str().and_then(|text| serde_json::from_str(text).ok());
    let reason = object.as_ref().and_then(|object| object["finishReason"].as_str());
    let end = match (end, reason) {
        (ToolEnd::Completed, Some("completed")) => AgentEnd::Completed,
        (ToolEnd::Interrupted | ToolEnd::Rejected, _) | (_, Some("aborted")) => {
            AgentEnd::Interrupted
        }
        // A run in the background has only been started.
        (ToolEnd::Completed, None) => return,
        (ToolEnd::Completed | ToolEnd::Failed | ToolEnd::Denied, _) => AgentEnd::Failed,
    };
    let agent = AgentRef { call: Some(id.clone()), id: None };
    emit.push(EventKind::AgentEnded { agent, end });
}
