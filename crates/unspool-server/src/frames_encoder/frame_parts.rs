//! The parts of a message in the words of frames: `thinking` for reasoning, and a call and its
//! result as two parts (C-01, C-03). Frames and `/api/sessions/{id}/messages?form=frames` use them.

use serde_json::{Map, Value, json};
use unspool_model::agent::own_call_id;
use unspool_model::document::{AnswerDocument, PartDocument, QuestionDocument, earlier_questions};
use unspool_model::id::PartId;
use unspool_model::part::{Body, Kind, Tool, ToolState};

/// The name of a part kind in frames. This dialect says `thinking` where everything else here says
/// `reasoning` (C-01).
pub fn frame_kind(kind: Kind) -> &'static str {
    if kind == Kind::Reasoning { "thinking" } else { kind.name() }
}

/// The id of a call: the agent's own, or the part's id if there is none.
fn call_id(agent: &str, part: PartId, tool: &Tool) -> String {
    match own_call_id(agent, &tool.call_id) {
        "" => part.to_string(),
        own => own.to_owned(),
    }
}

/// The fields of a call. Its final state is sent with the result.
pub fn call_fields(agent: &str, part: PartId, tool: &Tool) -> Map<String, Value> {
    let state = if tool.state.is_terminal() { ToolState::Running } else { tool.state };
    let mut call = fields(json!({
        "part": part, "tool_call_id": call_id(agent, part, tool), "name": tool.name,
        "title": tool.title, "input": tool.input, "state": state.name(),
        "question": tool.question.as_ref().map(QuestionDocument),
        "answer": tool.answer.as_ref().map(AnswerDocument),
    }));
    if let Some(earlier) = earlier_questions(tool) {
        call.insert("earlier".to_owned(), json!(earlier));
    }
    call
}

/// The fields of a result.
pub fn result_fields(agent: &str, part: PartId, tool: &Tool) -> Map<String, Value> {
    fields(json!({
        "part": part, "tool_call_id": call_id(agent, part, tool),
        "is_error": tool.state != ToolState::Completed, "state": tool.state.name(),
        "output": tool.output, "exit_code": tool.exit_code,
    }))
}

/// A part of a message: one object, or two for a call that has a result.
pub fn message_parts(document: &PartDocument<'_>) -> Vec<Value> {
    let part = document.part;
    let with_kind = |kind: &str, fields: Map<String, Value>| {
        let mut all = Map::from_iter([("kind".to_owned(), kind.into())]);
        all.extend(fields);
        Value::Object(all)
    };
    if let Body::Tool(tool) = &part.body {
        let call = with_kind("tool_call", call_fields(document.agent, part.id, tool));
        let result = tool
            .state
            .is_terminal()
            .then(|| with_kind("tool_result", result_fields(document.agent, part.id, tool)));
        return [Some(call), result].into_iter().flatten().collect();
    }
    let mut whole = fields(serde_json::to_value(document).unwrap_or_default());
    whole.insert("kind".to_owned(), frame_kind(part.body.kind()).into());
    vec![Value::Object(whole)]
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}
