//! Requests of the app-server protocol to the user, for approval or input, and the responses to
//! them. Extends `ServerDecoder`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EventKind};
use unspool_model::json::Json;
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind};

use super::ServerDecoder;
use crate::decode::codex::call::{
    ASK_TOOL, COMMAND_TOOL, PATCH_TOOL, answers, emit_call, question_ids, questions,
};
use crate::decode::codex::turn_name;
use crate::decode::{Emitter, Fields, RecordOutcome};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PendingRequest {
    call: Arc<str>,
    /// Ids and texts of the questions; empty for a permission request.
    #[serde(rename = "asked")]
    question_text: Vec<(String, String)>,
}

impl ServerDecoder {
    pub(super) fn request(
        &mut self,
        emit: &mut Emitter<'_>,
        method: &str,
        message: &Fields<'_>,
        params: &Fields<'_>,
    ) -> RecordOutcome {
        let call: Arc<str> = params.text("itemId").unwrap_or_default().into();
        let id = message.raw("id").unwrap_or_default().to_owned();
        let tool = match method {
            "item/fileChange/requestApproval" => PATCH_TOOL,
            "item/tool/requestUserInput" => ASK_TOOL,
            _ => COMMAND_TOOL,
        };
        let question = questions(params, Some(id.clone())).unwrap_or_else(|| {
            let question_text = params.string("reason").unwrap_or_else(|| format!("Allow {tool}?"));
            let item = QuestionItem { question: question_text, ..QuestionItem::default() };
            let (kind, items) = (QuestionKind::Permission, vec![item]);
            Question { request_id: Some(id.clone()), kind, items }
        });
        let question_text = question_ids(params);
        self.requests.insert(id, PendingRequest { call: call.clone(), question_text });
        if tool == ASK_TOOL {
            // No item is sent for this call.
            self.step(emit);
            let input = params.raw("questions").map(|list| format!("{{\"questions\":{list}}}"));
            emit_call(emit, &call, None, ASK_TOOL, input.and_then(|input| Json::parse(&input)));
        }
        let (call, tool) = (CallRef::Id(call), tool.to_owned());
        emit.push(EventKind::QuestionAsked {
            call,
            tool,
            question,
            requested: true,
            inferred: false,
        });
        RecordOutcome::InParts
    }

    /// A JSON-RPC response, from either side.
    pub(super) fn response(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let result = message.fields("result");
        let thread = result.fields("thread");
        if thread.is_object() {
            return self.thread(emit, &thread);
        }
        let id = message.raw("id").unwrap_or_default();
        let decided = result.has("decision") || result.has("answers");
        let Some(request) = self.requests.remove(id).filter(|_| decided) else {
            return RecordOutcome::left_out("response");
        };
        emit.turn = self.turn.as_ref().map(turn_name);
        let answer = answers(&result, &request.question_text).or_else(|| decision(&result));
        if let Some(answer) = answer {
            emit.push(EventKind::QuestionAnswered { call: CallRef::Id(request.call), answer });
        }
        RecordOutcome::InParts
    }
}

/// The user's decision on an approval request.
fn decision(result: &Fields<'_>) -> Option<Answer> {
    let value = result.text("decision");
    let (decision, text) = match value.as_deref() {
        Some("accept") => (Decision::Allowed, "allowed once"),
        Some("acceptForSession") => (Decision::Allowed, "allowed for the session"),
        Some("decline") => (Decision::Denied, "denied"),
        Some("cancel") => (Decision::Denied, "denied, and the turn stopped"),
        Some(_) => return None,
        // Accepted together with a rule for the next time.
        None if result.fields("decision").is_object() => (Decision::Allowed, "allowed always"),
        None => return None,
    };
    Some(Answer { decision, text: text.to_owned(), choices: Vec::new(), observed: true, by: None })
}
