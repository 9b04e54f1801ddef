//! What the model says in stream-json: the deltas of partial messages, and complete `assistant`
//! frames. Extends `StreamDecoder`.

use std::sync::Arc;

use unspool_model::event::{CallRef, EndReason, EventKind, ProseKind};
use unspool_model::part::Body;
use unspool_model::provenance::Name;

use super::StreamDecoder;
use crate::decode::claude::context::record_name;
use crate::decode::claude::message::{block, failure, message_text, usage};
use crate::decode::{Emitter, Fields, RecordOutcome};

impl StreamDecoder {
    pub(super) fn stream_event(
        &mut self,
        emit: &mut Emitter<'_>,
        event: &Fields<'_>,
    ) -> RecordOutcome {
        let index = event.number("index").and_then(|index| u32::try_from(index).ok());
        let index = index.unwrap_or(u32::MAX);
        match event.text("type").as_deref() {
            Some("message_start") => {
                let message = event.fields("message");
                let id: Arc<str> = message.text("id").unwrap_or_default().into();
                self.start_step(emit, &id, message.string("model"));
                self.report_usage(emit, &id, &message.fields("usage"));
            }
            Some("content_block_start") => {
                let content = event.fields("content_block");
                let call = match content.text("type").as_deref() {
                    Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                        content.text("id").map(Arc::<str>::from)
                    }
                    _ => None,
                };
                self.open = Some((index, call.clone()));
                if let Some(call) = call {
                    let name = content.string("name").unwrap_or_default();
                    emit.push(EventKind::ToolInputDelta {
                        call: CallRef::Id(call),
                        name,
                        text: String::new(),
                    });
                } else if content.text("type").as_deref() == Some("redacted_thinking") {
                    let name = self.block_name(index);
                    block(emit, &mut self.calls, name, &content, None);
                }
            }
            Some("content_block_delta") => self.delta(emit, index, &event.fields("delta")),
            Some("content_block_stop") => {
                self.open = None;
                emit.push(EventKind::BlockEnded { block: self.block_name(index) });
            }
            Some("message_delta") => {
                if let Some(id) = self.message.clone() {
                    self.report_usage(emit, &id, &event.fields("usage"));
                    let stop_reason = event.fields("delta").string("stop_reason");
                    if stop_reason.is_some() {
                        emit.push(EventKind::StepEnded { step: Name::Message(id), stop_reason });
                    }
                }
                return RecordOutcome::Metadata;
            }
            Some("message_stop") => return RecordOutcome::Metadata,
            kind => {
                return RecordOutcome::left_out(format!(
                    "stream_event/{}",
                    kind.unwrap_or_default()
                ));
            }
        }
        RecordOutcome::InParts
    }

    fn block_name(&self, index: u32) -> Name {
        Name::Block(self.message.clone().unwrap_or_default(), index)
    }

    fn delta(&mut self, emit: &mut Emitter<'_>, index: u32, delta: &Fields<'_>) {
        let grew = |prose_kind, field: &str| EventKind::ProseDelta {
            prose_kind,
            block: Some(self.block_name(index)),
            text: delta.string(field).unwrap_or_default(),
        };
        match delta.text("type").as_deref() {
            Some("text_delta") => emit.push(grew(ProseKind::Text, "text")),
            Some("thinking_delta") => emit.push(grew(ProseKind::Reasoning, "thinking")),
            Some("input_json_delta") => {
                if let Some((_, Some(call))) = &self.open {
                    let text = delta.string("partial_json").unwrap_or_default();
                    let call = CallRef::Id(call.clone());
                    emit.push(EventKind::ToolInputDelta { call, name: String::new(), text });
                }
            }
            // Signatures and citations come with the complete block.
            _ => {}
        }
    }

    fn start_step(&mut self, emit: &mut Emitter<'_>, id: &Arc<str>, model: Option<String>) {
        if self.message.as_ref() != Some(id) {
            self.message = Some(id.clone());
            self.fresh = None;
            emit.push(EventKind::StepStarted { step: Name::Message(id.clone()), model });
        }
    }

    fn report_usage(&self, emit: &mut Emitter<'_>, id: &Arc<str>, input: &Fields<'_>) {
        emit.push(EventKind::UsageUpdated { step: Name::Message(id.clone()), usage: usage(input) });
    }

    pub(super) fn assistant(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        let message = fields.fields("message");
        if fields.flag("is_api_error_message") || fields.flag("isApiErrorMessage") {
            emit.push(EventKind::Part(
                record_name(fields),
                Body::Error(failure(fields, message_text(&message))),
            ));
            emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
            return RecordOutcome::InParts;
        }
        let id = message.text("id").unwrap_or_default();
        let id = self.message.clone().filter(|held| **held == *id).unwrap_or_else(|| id.into());
        let synthetic = message.text("model").as_deref() == Some("<synthetic>");
        let live = self.message.as_ref() == Some(&id);
        self.start_step(emit, &id, message.string("model").filter(|_| !synthetic));
        let mut made = false;
        for content in message.list("content") {
            // The complete block is sent before the event that closes it.
            let open = self.open.as_ref().filter(|_| live).map(|(index, _)| *index);
            let index = self.blocks.next(&id, open);
            let name = Name::Block(id.clone(), index);
            made |= block(emit, &mut self.calls, name, &content, None);
        }
        if !synthetic {
            self.report_usage(emit, &id, &message.fields("usage"));
        }
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }
}
