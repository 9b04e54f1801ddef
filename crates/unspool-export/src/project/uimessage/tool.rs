//! Tool calls in the states of the SDK, each with exactly the fields its state allows (R-001-04).

use std::borrow::Cow;

use serde_json::{Value, json};
use unspool_model::id::PartId;
use unspool_model::json::{Json, replace_lone_surrogates};
use unspool_model::part::{Answer, Decision, QuestionKind, Tool, ToolState};
use unspool_model::session::Session;

use super::part::{OUR_KEY, UiPart};
use super::partial;
use crate::project::{Sdk, calls};

pub fn part(session: &Session, id: PartId, tool: &Tool, sdk: Sdk) -> UiPart {
    let input = tool.input.as_ref().map(safe);
    // Results are matched by call id: a call without one uses its part's id.
    let tool_call_id = calls::call_id(session, id, tool);
    let part = UiPart {
        tool_call_id: Some(tool_call_id.clone()),
        provider_executed: tool.provider_executed.then_some(true),
        title: tool.title.clone().filter(|_| sdk >= Sdk::Seven),
        ..UiPart::new(format!("tool-{}", tool.name))
    };
    let whole = || Some(input.clone().unwrap_or_else(|| unfinished(tool)));
    let newer = sdk >= Sdk::Seven;
    let question = approval(&tool_call_id, tool).filter(|_| newer);
    match tool.state {
        ToolState::Pending => streaming_input(part, tool),
        ToolState::Running => {
            // Output so far (C-04).
            if tool.output.is_some() {
                let (state, preliminary) = (Some("output-available"), Some(true));
                let (output, approval) = (Some(output(session, tool)), allowed(question));
                return UiPart { state, input: whole(), output, preliminary, approval, ..part };
            }
            let state = match (&question, &tool.answer) {
                (Some(_), Some(_)) => "approval-responded",
                (Some(_), None) => "approval-requested",
                (None, _) => "input-available",
            };
            UiPart { state: Some(state), input: whole(), approval: question, ..part }
        }
        ToolState::Completed => UiPart {
            state: Some("output-available"),
            input: whole(),
            output: Some(output(session, tool)),
            approval: allowed(question),
            ..part
        },
        ToolState::Denied if newer => {
            let mut approval = json!({ "id": request(&tool_call_id, tool), "approved": false });
            if let Some(reason) = reason(tool.answer.as_ref()).or(tool.output.as_deref()) {
                approval["reason"] = json!(reason);
            }
            let state = Some("output-denied");
            UiPart { state, input: whole(), approval: Some(approval), ..part }
        }
        ToolState::Failed => {
            failed(part, input, tool.output.as_deref().unwrap_or("failed"), allowed(question))
        }
        ToolState::Denied => {
            let part = UiPart { call_provider_metadata: ended(tool, &input), ..part };
            let why = tool.output.as_deref().or(reason(tool.answer.as_ref()));
            failed(part, input, why.unwrap_or("denied"), None)
        }
        ToolState::Interrupted
            if tool.output.is_none() && input.is_none() && !tool.input_text.is_empty() =>
        {
            streaming_input(part, tool)
        }
        // No model accepts a call without a result, so one that was stopped has failed (C-04).
        ToolState::Interrupted => {
            let input = whole();
            let part = UiPart { call_provider_metadata: ended(tool, &input), ..part };
            let why = tool.output.as_deref().unwrap_or("interrupted");
            failed(part, input, why, allowed(question))
        }
    }
}

/// How a call ended, where the SDK state cannot express it (C-04). Streams send it with the input.
fn ended(tool: &Tool, input: &Option<Json>) -> Option<Value> {
    input.as_ref().map(|_| json!({ OUR_KEY: { "state": tool.state.name() } }))
}

/// A call with partial input. It never reaches a model.
fn streaming_input(part: UiPart, tool: &Tool) -> UiPart {
    let input =
        partial::value(&tool.input_text).filter(|input| !pollutes_prototype(&input.value()));
    let raw_input = Some(tool.input_text.clone()).filter(|text| !text.is_empty());
    UiPart { state: Some("input-streaming"), input, raw_input, ..part }
}

fn failed(part: UiPart, input: Option<Json>, error: &str, approval: Option<Value>) -> UiPart {
    let (state, error_text) = (Some("output-error"), Some(error.to_owned()));
    UiPart { state, input, error_text, approval, ..part }
}

/// Input that never completed, as text.
fn unfinished(tool: &Tool) -> Json {
    if tool.input_text.is_empty() {
        return Json::from(Value::Null);
    }
    Json::string(&tool.input_text)
}

/// What the model saw. AI SDK applications pass `result` to the model; coding agents keep more in
/// `result` than they pass on.
fn output(session: &Session, tool: &Tool) -> Json {
    let own =
        tool.result.as_ref().filter(|_| calls::reads_result(session) || tool.output.is_none());
    match (own, &tool.output) {
        (Some(result), _) => safe(result),
        (None, Some(output)) => Json::string(output),
        (None, None) => Json::string(""),
    }
}

fn request(call_id: &str, tool: &Tool) -> String {
    let own = tool.question.as_ref().and_then(|question| question.request_id.clone());
    own.unwrap_or_else(|| format!("approval-{call_id}"))
}

/// The permission question of the call, with its answer.
fn approval(call_id: &str, tool: &Tool) -> Option<Value> {
    let question = tool.question.as_ref()?;
    if question.kind != QuestionKind::Permission {
        return None;
    }
    let mut approval = json!({ "id": request(call_id, tool) });
    if let Some(answer) = &tool.answer {
        let approved = match answer.decision {
            Decision::Allowed | Decision::Answered => true,
            Decision::Denied | Decision::Declined => false,
        };
        approval["approved"] = json!(approved);
        if let Some(reason) = reason(Some(answer)) {
            approval["reason"] = json!(reason);
        }
    }
    Some(approval)
}

/// The reason for a decision. Text that only repeats the decision does not count.
fn reason(answer: Option<&Answer>) -> Option<&str> {
    let answer = answer?;
    Some(answer.text.as_str()).filter(|text| !text.is_empty() && *text != answer.decision.name())
}

/// A call that ran was approved; validators reject anything else.
fn allowed(approval: Option<Value>) -> Option<Value> {
    approval.filter(|approval| approval["approved"] == true)
}

/// JSON that the SDK accepts: it rejects keys that could pollute JavaScript prototypes, and lone
/// surrogates. Such a value is kept as a string.
pub fn safe(json: &Json) -> Json {
    let text = replace_lone_surrogates(json.text());
    if (text.contains("proto") || text.contains("\\u")) && pollutes_prototype(&json.value()) {
        return Json::string(&text);
    }
    match text {
        Cow::Borrowed(_) => json.clone(),
        Cow::Owned(text) => Json::checked(&text),
    }
}

/// Keys that reach JavaScript prototypes.
pub const PROTOTYPE_KEYS: [&str; 2] = ["__proto__", "constructor"];

fn pollutes_prototype(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.contains_key("__proto__")
                || fields.get("constructor").is_some_and(|own| own.get("prototype").is_some())
                || fields.values().any(pollutes_prototype)
        }
        Value::Array(items) => items.iter().any(pollutes_prototype),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
