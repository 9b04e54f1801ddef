//! Step payloads: JSON objects with the known fields, in insertion order.

use serde::Serialize;
use unspool_model::agent::own_call_id;
use unspool_model::document::{AnswerDocument, BodyDocument, QuestionDocument, earlier_questions};
use unspool_model::json::{Json, replace_lone_surrogates};
use unspool_model::part::{Body, Text, Tool};
use unspool_model::session::{Session, Step, Usage};

use crate::project::calls::{call_reference, response_id};

/// A JSON object builder.
#[derive(Default)]
pub struct PayloadFields(String);

impl PayloadFields {
    pub fn put(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> PayloadFields {
        // Never fails for strings, numbers and raw JSON.
        let (Ok(name), Ok(value)) = (serde_json::to_string(name), serde_json::to_string(value))
        else {
            return self;
        };
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&name);
        self.0.push(':');
        // Readers reject lone surrogates.
        self.0.push_str(&replace_lone_surrogates(&value));
        self
    }

    pub fn put_some(self, name: &str, value: Option<&(impl Serialize + ?Sized)>) -> PayloadFields {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }

    /// None if there are no fields.
    pub fn into_json(self) -> Option<Json> {
        (!self.0.is_empty()).then(|| self.json())
    }

    pub fn json(mut self) -> Json {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        Json::checked(&self.0)
    }
}

/// A part without a label of its own: the whole part in our JSON format.
pub fn body(session: &Session, body: &Body) -> Json {
    let written = serde_json::to_string(&BodyDocument { agent: &session.agent, body });
    Json::checked(&replace_lone_surrogates(&written.unwrap_or_else(|_| "{}".to_owned())))
}

pub fn text(text: &Text) -> Json {
    PayloadFields::default()
        .put("text", &text.text)
        .put_some("citations", Some(&text.citations).filter(|all| !all.is_empty()))
        .put_some("open", text.open.then_some(&true))
        .json()
}

/// None if the source has no call ids.
fn call_id<'a>(session: &Session, tool: &'a Tool) -> Option<&'a str> {
    Some(own_call_id(&session.agent, &tool.call_id)).filter(|id| !id.is_empty())
}

/// The start payload of a tool call.
pub fn call(session: &Session, tool: &Tool) -> Json {
    let unfinished = Some(&tool.input_text).filter(|text| tool.input.is_none() && !text.is_empty());
    PayloadFields::default()
        .put("name", &tool.name)
        .put_some("call_id", call_id(session, tool))
        .put_some("parent_call_id", call_reference(session, &tool.parent_call_id))
        .put_some("title", tool.title.as_ref())
        .put_some("arguments", tool.input.as_ref())
        // Partial input of a call that never completed.
        .put_some("arguments_text", unfinished)
        .put_some("earlier", earlier_questions(tool).as_ref())
        .put_some("question", tool.question.as_ref().map(QuestionDocument).as_ref())
        .put_some("provider_executed", tool.provider_executed.then_some(&true))
        .json()
}

/// The completion payload of a tool call: its state and the answer to its question.
pub fn outcome(tool: &Tool) -> Json {
    PayloadFields::default()
        .put("state", tool.state.name())
        .put_some("answer", tool.answer.as_ref().map(AnswerDocument).as_ref())
        .json()
}

/// The payload of a tool result.
pub fn result(session: &Session, tool: &Tool) -> Json {
    // Some results only repeat the output.
    let repeats = |result: &Json| {
        tool.output.as_deref().is_some_and(|output| result.value().as_str() == Some(output))
    };
    let result = tool.result.as_ref().filter(|result| !repeats(result));
    PayloadFields::default()
        .put("name", &tool.name)
        .put_some("call_id", call_id(session, tool))
        .put("state", tool.state.name())
        .put_some("output", tool.output.as_ref())
        .put_some("result", result)
        .put_some("exit_code", tool.exit_code.as_ref())
        .put_some("duration_ms", tool.duration_ms.as_ref())
        .json()
}

/// The completion payload of a model call; `canceled` if the user stopped it (R-002-41).
pub fn response(session: &Session, step: &Step, cancelled: bool) -> Option<Json> {
    PayloadFields::default()
        .put_some("status", cancelled.then_some("canceled"))
        .put_some("response_id", response_id(session, step))
        .put_some("stop_reason", step.stop_reason.as_ref())
        .put_some("usage", Some(&step.usage).filter(|usage| **usage != Usage::default()))
        .into_json()
}
