//! What steps carry: objects with the fields that are known, in the order in which they are put.

use serde::Serialize;
use unspool_core::document::{AnswerDocument, BodyDocument, QuestionDocument};
use unspool_core::json::{Json, mended};
use unspool_core::part::{Body, Text, Tool};
use unspool_core::session::{Session, Step, Usage};

use crate::project::calls::response_id;

/// An object that is being written.
#[derive(Default)]
pub struct Fields(String);

impl Fields {
    pub fn put(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Fields {
        // Strings, numbers and raw JSON can always be written.
        let (Ok(name), Ok(value)) = (serde_json::to_string(name), serde_json::to_string(value))
        else {
            return self;
        };
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&name);
        self.0.push(':');
        // Half a surrogate pair is no text, and readers stop at it.
        self.0.push_str(&mended(&value));
        self
    }

    pub fn put_known(self, name: &str, value: Option<&(impl Serialize + ?Sized)>) -> Fields {
        match value {
            Some(value) => self.put(name, value),
            None => self,
        }
    }

    /// Nothing, where no field is known.
    pub fn known(self) -> Option<Json> {
        (!self.0.is_empty()).then(|| self.json())
    }

    pub fn json(mut self) -> Json {
        self.0.push_str(if self.0.is_empty() { "{}" } else { "}" });
        Json::checked(&self.0)
    }
}

/// A part for which there is no label, whole: its kind and what it says.
pub fn body(session: &Session, body: &Body) -> Json {
    let written = serde_json::to_string(&BodyDocument { agent: &session.agent, body });
    Json::checked(&mended(&written.unwrap_or_else(|_| "{}".to_owned())))
}

pub fn said(text: &Text) -> Json {
    Fields::default()
        .put("text", &text.text)
        .put_known("citations", Some(&text.citations).filter(|all| !all.is_empty()))
        .put_known("open", text.open.then_some(&true))
        .json()
}

/// Not every source has one.
fn call_id(tool: &Tool) -> Option<&String> {
    Some(&tool.call_id).filter(|id| !id.is_empty())
}

/// What a tool was called with.
pub fn called(tool: &Tool) -> Json {
    let unfinished = Some(&tool.input_text).filter(|text| tool.input.is_none() && !text.is_empty());
    Fields::default()
        .put("name", &tool.name)
        .put_known("call_id", call_id(tool))
        .put_known("parent_call_id", tool.parent_call_id.as_ref())
        .put_known("title", tool.title.as_ref())
        .put_known("arguments", tool.input.as_ref())
        // What there was of an input that never became whole.
        .put_known("arguments_text", unfinished)
        .put_known("question", tool.question.as_ref().map(QuestionDocument).as_ref())
        .put_known("provider_executed", tool.provider_executed.then_some(&true))
        .json()
}

/// How far a call came.
pub fn came(tool: &Tool) -> Json {
    Fields::default()
        .put("state", tool.state.name())
        .put_known("answer", tool.answer.as_ref().map(AnswerDocument).as_ref())
        .json()
}

/// What a call gave back.
pub fn gave(tool: &Tool) -> Json {
    // Some results are the output once more.
    let repeats = |result: &Json| {
        tool.output.as_deref().is_some_and(|output| result.value().as_str() == Some(output))
    };
    let result = tool.result.as_ref().filter(|result| !repeats(result));
    Fields::default()
        .put("name", &tool.name)
        .put_known("call_id", call_id(tool))
        .put("state", tool.state.name())
        .put_known("output", tool.output.as_ref())
        .put_known("result", result)
        .put_known("exit_code", tool.exit_code.as_ref())
        .put_known("duration_ms", tool.duration_ms.as_ref())
        .json()
}

/// What a model call gave back, and whether somebody stopped it (R-002-41).
pub fn answered(session: &Session, step: &Step, cancelled: bool) -> Option<Json> {
    Fields::default()
        .put_known("status", cancelled.then_some("canceled"))
        .put_known("response_id", response_id(session, step))
        .put_known("stop_reason", step.stop_reason.as_ref())
        .put_known("usage", Some(&step.usage).filter(|usage| **usage != Usage::default()))
        .known()
}
