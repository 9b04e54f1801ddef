//! Ephemeral events of the live stream: deltas, partial tool output, requests to the user, retries,
//! idleness. Extends `EventsDecoder`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, EventKind, ProseKind};
use unspool_model::part::Body;
use unspool_model::session::{Title, TitleOrigin};

use super::super::mcp_servers::McpServers;
use super::super::{Emitter, Fields, RecordOutcome};
use super::events::{EventRecord, EventsDecoder};

/// State of the live stream within the current step.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveState {
    /// The block that deltas go to: prose, with the source's block id, or a tool's input.
    open: Option<OpenBlock>,
    /// Blocks started in this step: reasoning, text.
    begun: [u32; 2],
    /// The response broke off and is being retried.
    cut: bool,
    /// Bytes of each call's output emitted so far. Copilot repeats the output from its start.
    pub printed: BTreeMap<Arc<str>, usize>,
    /// The calls of open requests, by request id.
    pub requests: BTreeMap<String, Arc<str>>,
    #[serde(default)]
    servers: McpServers,
}

#[derive(PartialEq, Serialize, Deserialize)]
enum OpenBlock {
    Prose(ProseKind, String),
    Tool,
}

impl LiveState {
    /// Resets the state at the start of a step.
    pub fn begin(&mut self) {
        (self.open, self.begun, self.cut) = (None, [0; 2], false);
    }

    /// The number of the block that a delta belongs to.
    fn nth(&mut self, prose_kind: ProseKind, id: &str) -> u32 {
        let open = OpenBlock::Prose(prose_kind, id.to_owned());
        let begun = match prose_kind {
            ProseKind::Reasoning => &mut self.begun[0],
            ProseKind::Text => &mut self.begun[1],
        };
        if self.open.as_ref() != Some(&open) {
            *begun += 1;
            self.open = Some(open);
        }
        begun.saturating_sub(1)
    }
}

impl EventsDecoder {
    pub(super) fn live(
        &mut self,
        emit: &mut Emitter<'_>,
        event: &EventRecord<'_>,
    ) -> RecordOutcome {
        let data = &event.data;
        match &*event.kind {
            "assistant.message_delta" => self.grow(emit, ProseKind::Text, "messageId", data),
            "assistant.reasoning_delta" => {
                self.grow(emit, ProseKind::Reasoning, "reasoningId", data)
            }
            "assistant.tool_call_delta" => self.grow_input(emit, data),
            "tool.execution_partial_result" => self.grow_output(emit, data),
            "assistant.usage" => self.usage(emit, data),
            "user_input.requested" | "elicitation.requested" | "exit_plan_mode.requested" => {
                self.request(emit, data)
            }
            "user_input.completed" | "elicitation.completed" | "exit_plan_mode.completed" => {
                self.reply(emit, data)
            }
            "assistant.turn_retry" => {
                // The retry repeats the prose from its start, and the complete message replaces it
                // at the end. Applying more deltas would append the repetition to the first try.
                self.live.cut = true;
                let why = data.string("reason").unwrap_or_default().replace('_', " ");
                self.notice(emit, event, "retry", format!("Retrying: {why}"))
            }
            "session.warning" => {
                let text = data.string("message").unwrap_or_default();
                self.notice(emit, event, "informational", text)
            }
            "session.title_changed" => {
                if let Some(text) = data.string("title").filter(|title| !title.is_empty()) {
                    let origin = TitleOrigin::Generated;
                    emit.push(EventKind::TitleSet(Title { text, origin }));
                }
                RecordOutcome::Metadata
            }
            "assistant.idle" | "session.idle" => {
                let aborted = data.flag("aborted");
                let reason = if aborted { EndReason::Interrupted } else { EndReason::Completed };
                emit.push(EventKind::TurnEnded(reason));
                RecordOutcome::Metadata
            }
            "session.mcp_servers_loaded" => {
                let changed = self.live.servers.list(data.list("servers"));
                servers(emit, event, changed)
            }
            "session.mcp_server_status_changed" => {
                let name = data.string("serverName").unwrap_or_default();
                let changed = self.live.servers.change(name, data.string("status"));
                servers(emit, event, changed)
            }
            // `assistant.message` carries the same content.
            "assistant.message_start" | "assistant.reasoning" | "agent.interrupted" => {
                RecordOutcome::Metadata
            }
            // The delta of a `tool.execution_partial_result`, which has the whole output.
            "tool.shell_output"
            | "assistant.streaming_delta"
            | "assistant.intent"
            | "pending_messages.modified"
            | "sandbox.decision"
            | "session.background_tasks_changed"
            | "session.info"
            | "session.managed_settings_resolved"
            | "session.skills_loaded"
            | "session.todos_changed"
            | "session.tools_updated"
            | "session.usage_info" => RecordOutcome::left_out(&*event.kind),
            _ => self.unknown(emit, event),
        }
    }

    fn grow(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        id: &str,
        data: &Fields<'_>,
    ) -> RecordOutcome {
        if self.live.cut {
            return RecordOutcome::left_out("delta after a retry");
        }
        let nth = self.live.nth(prose_kind, &data.text(id).unwrap_or_default());
        let text = data.string("deltaContent").unwrap_or_default();
        emit.push(EventKind::ProseDelta {
            prose_kind,
            block: self.step.block(prose_kind, nth),
            text,
        });
        RecordOutcome::InParts
    }

    fn grow_input(&mut self, emit: &mut Emitter<'_>, data: &Fields<'_>) -> RecordOutcome {
        let Some(id) = data.text("toolCallId").filter(|_| !self.live.cut) else {
            return RecordOutcome::left_out("delta after a retry");
        };
        self.live.open = Some(OpenBlock::Tool);
        let name = data.string("toolName").unwrap_or_default();
        let text = data.string("inputDelta").unwrap_or_default();
        emit.push(EventKind::ToolInputDelta { call: CallRef::Id(id.into()), name, text });
        RecordOutcome::InParts
    }

    /// Emits the new end of partial output. Copilot elides the middle of long output; nothing more
    /// can be emitted then until the result arrives.
    fn grow_output(&mut self, emit: &mut Emitter<'_>, data: &Fields<'_>) -> RecordOutcome {
        let id: Arc<str> = data.text("toolCallId").unwrap_or_default().into();
        let output = data.string("partialOutput").unwrap_or_default();
        if !self.calls.contains_key(&id) {
            return RecordOutcome::left_out("output of no call");
        }
        let printed = self.live.printed.entry(id.clone()).or_default();
        let Some(text) = output.get(*printed..).filter(|text| !text.is_empty()) else {
            return RecordOutcome::Metadata;
        };
        let text = text.to_owned();
        *printed = output.len();
        emit.push(EventKind::ToolOutputDelta { call: CallRef::Id(id), text });
        RecordOutcome::InParts
    }
}

/// Shows the MCP servers if they changed.
fn servers(
    emit: &mut Emitter<'_>,
    event: &EventRecord<'_>,
    changed: Option<Body>,
) -> RecordOutcome {
    match changed {
        Some(snapshot) => {
            emit.push(EventKind::Part(Some(event.name()), snapshot));
            RecordOutcome::InParts
        }
        None => RecordOutcome::left_out(&*event.kind),
    }
}
