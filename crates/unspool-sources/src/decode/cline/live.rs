//! What Cline reports while it works: the event log of its hub, and the payloads of its hooks. Both
//! name calls by the ids of the conversation, and no turns or messages. So they add when a call
//! began, how long it took, and what a person was asked about it; texts are left to the
//! conversation, which has them in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, Event, EventKind, ToolOutcome};
use unspool_model::part::{Answer, Decision};
use unspool_model::provenance::Feed;

use super::super::permission::permission_question;
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::message::emit_call;

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LiveDecoder {
    /// The calls of open questions, by request.
    requests: BTreeMap<String, Arc<str>>,
}

impl Decoder for LiveDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let id = fields.text("eventId");
        let mut emit = Emitter::new(Feed::Stream, record, id.as_deref(), out);
        if fields.has("hookName") {
            emit.at = fields.time("timestamp");
            return hook(&mut emit, fields);
        }
        let time = fields.number("timestamp").and_then(|time| i64::try_from(time).ok());
        emit.at = time.and_then(|time| Timestamp::from_millisecond(time).ok());
        let kind = fields.text("event").unwrap_or_default();
        self.event(&mut emit, &kind, &fields.fields("payload"))
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl LiveDecoder {
    fn event(&mut self, emit: &mut Emitter<'_>, kind: &str, payload: &Fields<'_>) -> RecordOutcome {
        let call: Option<Arc<str>> = payload.text("toolCallId").map(|id| id.into());
        match (kind, call) {
            ("session.created", _) => {
                let project = payload.fields("session").string("cwd");
                let (branch, version, cost) = (None, None, None);
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                RecordOutcome::Metadata
            }
            ("tool.started", Some(call)) => {
                let tool = payload.string("toolName").unwrap_or_default();
                emit_call(emit, &call, &tool, payload, "input");
                RecordOutcome::InParts
            }
            ("approval.requested", Some(call)) => {
                let id = payload.string("approvalId").unwrap_or_default();
                let tool = payload.string("toolName").unwrap_or_default();
                self.requests.insert(id.clone(), call.clone());
                let question = permission_question(Some(id), &tool);
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
            ("approval.resolved", _) => {
                let id = payload.string("approvalId").unwrap_or_default();
                let Some(call) = self.requests.remove(&id) else {
                    return RecordOutcome::left_out("answer without its question");
                };
                let allowed = payload.flag("approved");
                let decision = if allowed { Decision::Allowed } else { Decision::Denied };
                let reason = payload.string("reason");
                let text = if allowed { "allowed".to_owned() } else { reason.unwrap_or_default() };
                let answer =
                    Answer { decision, text, choices: Vec::new(), observed: true, by: None };
                emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call), answer });
                RecordOutcome::InParts
            }
            // The conversation has the whole output of a call that ended, and nothing of one that was
            // killed.
            ("tool.updated", Some(call)) => {
                let chunk = payload.fields("update").string("chunk").unwrap_or_default();
                if chunk.is_empty() {
                    return RecordOutcome::Metadata;
                }
                let call = CallRef::Id(call);
                emit.push(EventKind::ToolOutputDelta { call, text: chunk });
                RecordOutcome::InParts
            }
            (kind, _) => RecordOutcome::left_out(kind),
        }
    }
}

/// A hook reports a call, or how long it took.
fn hook(emit: &mut Emitter<'_>, payload: &Fields<'_>) -> RecordOutcome {
    let name = payload.text("hookName").unwrap_or_default();
    match &*name {
        "agent_start" => {
            let info = payload.fields("workspaceInfo");
            let (project, branch) = (info.string("rootPath"), info.string("latestGitBranchName"));
            let (version, cost) = (None, None);
            emit.push(EventKind::SessionUpdated { project, branch, version, cost });
            RecordOutcome::Metadata
        }
        "tool_call" => {
            let call = payload.fields("tool_call");
            let id: Arc<str> = call.text("id").unwrap_or_default().into();
            let tool = call.string("name").unwrap_or_default();
            emit_call(emit, &id, &tool, &call, "input");
            RecordOutcome::InParts
        }
        "tool_result" => {
            let result = payload.fields("tool_result");
            let id = result.text("id").or_else(|| result.text("toolCallId"));
            let duration_ms = result.number("durationMs");
            let (Some(id), Some(_)) = (id, duration_ms) else { return RecordOutcome::Metadata };
            let outcome = ToolOutcome { duration_ms, ..ToolOutcome::default() };
            emit.push(EventKind::ToolRefined { call: CallRef::Id(id.into()), outcome });
            RecordOutcome::InParts
        }
        name => RecordOutcome::left_out(format!("hook/{name}")),
    }
}
