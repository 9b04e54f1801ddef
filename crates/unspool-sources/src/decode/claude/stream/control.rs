//! The control protocol of stream-json: permission requests of the program, and the answers of its
//! host. Extends `StreamDecoder`.

use std::sync::Arc;

use unspool_model::event::{CallRef, EventKind};
use unspool_model::part::{Answer, Decision};

use super::StreamDecoder;
use crate::decode::claude::message::request;
use crate::decode::claude::result::answers;
use crate::decode::{Emitter, Fields, RecordOutcome};

impl StreamDecoder {
    pub(super) fn control_request(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        let control = fields.fields("request");
        let id = fields.string("request_id").unwrap_or_default();
        let call: Option<Arc<str>> = control.text("tool_use_id").map(|id| id.into());
        match (control.text("subtype").as_deref(), call) {
            (Some("can_use_tool"), Some(call)) => {
                let tool = control.string("tool_name").unwrap_or_default();
                let question = request(Some(id.clone()), &tool, &control.fields("input"));
                self.requests.insert(id, call.clone());
                let (call, requested) = (CallRef::Id(call), true);
                emit.push(EventKind::QuestionAsked {
                    call,
                    tool,
                    question,
                    requested,
                    inferred: false,
                });
                RecordOutcome::InParts
            }
            (subtype, _) => {
                RecordOutcome::left_out(format!("control_request/{}", subtype.unwrap_or_default()))
            }
        }
    }

    pub(super) fn control_response(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        let outer = fields.fields("response");
        let id = outer.string("request_id").unwrap_or_default();
        let Some(call) = self.requests.remove(&id) else {
            return RecordOutcome::left_out("control_response");
        };
        let response = outer.fields("response");
        let choices = answers(&response.fields("updatedInput"));
        let (decision, text) = if response.text("behavior").as_deref() == Some("deny") {
            (Decision::Denied, response.string("message").unwrap_or_default())
        } else if choices.is_empty() {
            (Decision::Allowed, "allowed once".to_owned())
        } else {
            let text: Vec<&str> = choices.iter().map(|(_, answer)| answer.as_str()).collect();
            (Decision::Answered, text.join(" · "))
        };
        let answer = Answer { decision, text, choices, observed: true, by: None };
        emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call), answer });
        RecordOutcome::InParts
    }
}
