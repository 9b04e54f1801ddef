//! Copilot's hook payloads. They have ids of neither prompts nor calls, so they are matched with
//! the log by content: the n-th prompt with this text, the n-th call with this tool and input. The
//! permission hook also fires for calls that need no permission, so it is ignored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EndReason, Event, EventKind, ToolCall, ToolEnd, ToolOutcome,
};
use unspool_model::id::SessionId;
use unspool_model::part::{Body, Text};
use unspool_model::provenance::Feed;
use unspool_model::session::{Parent, Trigger};

use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HooksDecoder {
    /// Occurrences of each prompt text.
    prompts: PromptNames,
    /// Open calls of this turn, by content hash of tool and input, oldest first.
    open: BTreeMap<u64, Vec<CallRef>>,
    /// Calls of this turn so far, by content hash.
    counts: BTreeMap<u64, u32>,
}

impl Decoder for HooksDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let event = fields.string("event").unwrap_or_default();
        let payload = fields.fields("payload");
        let mut emit = Emitter::new(Feed::Hooks, record, None, out);
        let at = payload.number("timestamp").and_then(|at| i64::try_from(at).ok());
        emit.at = at.and_then(|at| Timestamp::from_millisecond(at).ok());
        match &*event {
            "sessionStart" => {
                let (branch, version, cost) = (None, None, None);
                let project = payload.string("cwd");
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                if payload.is("source", "resume") {
                    emit.push(EventKind::SessionResumed);
                }
                RecordOutcome::Metadata
            }
            "sessionEnd" => {
                emit.push(EventKind::SessionEnded);
                RecordOutcome::Metadata
            }
            "userPromptSubmitted" => self.prompt(&mut emit, &payload),
            "preToolUse" => self.tool_starts(&mut emit, &payload),
            "postToolUse" => {
                let kind = payload.fields("toolResult").string("resultType").unwrap_or_default();
                let end = match &*kind {
                    "denied" | "rejected" => ToolEnd::Denied,
                    "failure" => ToolEnd::Failed,
                    _ => ToolEnd::Completed,
                };
                self.tool_ends(&mut emit, &payload, end)
            }
            "postToolUseFailure" => self.tool_ends(&mut emit, &payload, ToolEnd::Failed),
            "agentStop" => {
                emit.push(EventKind::TurnEnded(EndReason::Completed));
                RecordOutcome::Metadata
            }
            "subagentStop" => {
                let id = payload.text("agentId").map(|id| id.into());
                let agent = AgentRef { call: None, id };
                emit.push(EventKind::AgentEnded { agent, end: AgentEnd::Completed });
                RecordOutcome::InParts
            }
            _ => RecordOutcome::left_out(format!("hook/{event}")),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl HooksDecoder {
    fn prompt(&mut self, emit: &mut Emitter<'_>, payload: &Fields<'_>) -> RecordOutcome {
        let text = payload.string("prompt").unwrap_or_default();
        // Copilot reports that a background task is done; this starts no turn.
        if text.starts_with("<system_notification>") {
            return RecordOutcome::left_out("hook/userPromptSubmitted of a notification");
        }
        if let Some(parent) = payload.text("parentAgentId") {
            let session = SessionId::of(super::NAME, &parent);
            emit.push(EventKind::StartedBy(Parent { session, call_id: None, kind: None }));
        }
        self.open.clear();
        self.counts.clear();
        let names = vec![self.prompts.next(&text)];
        let user = vec![Body::Text(Text { text, ..Text::default() })];
        emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
        RecordOutcome::InParts
    }

    fn next(&mut self, content_hash: u64) -> CallRef {
        let count = self.counts.entry(content_hash).or_default();
        *count += 1;
        CallRef::ByContent(content_hash, *count - 1)
    }

    fn tool_starts(&mut self, emit: &mut Emitter<'_>, payload: &Fields<'_>) -> RecordOutcome {
        let name = payload.string("toolName").unwrap_or_default();
        let content_hash = payload.content_hash(&name, "toolArgs");
        let call = self.next(content_hash);
        self.open.entry(content_hash).or_default().push(call.clone());
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call,
            parent_call_id: None,
            name,
            input: payload.json("toolArgs"),
            content_hash,
            provider_executed: false,
            title: None,
            running: true,
        })));
        RecordOutcome::InParts
    }

    fn tool_ends(
        &mut self,
        emit: &mut Emitter<'_>,
        payload: &Fields<'_>,
        end: ToolEnd,
    ) -> RecordOutcome {
        let name = payload.text("toolName").unwrap_or_default();
        let content_hash = payload.content_hash(&name, "toolArgs");
        let open = self.open.get_mut(&content_hash).filter(|open| !open.is_empty());
        let call = match open.map(|open| open.remove(0)) {
            Some(call) => call,
            None => self.next(content_hash),
        };
        let output = payload.fields("toolResult").string("textResultForLlm");
        let output = output.or_else(|| payload.string("error"));
        emit.push(EventKind::ToolEnded {
            call,
            end,
            outcome: ToolOutcome { output, ..ToolOutcome::default() },
        });
        RecordOutcome::InParts
    }
}
