//! UI message streams, by the rules of the SDK's own reducer: a part takes the position of its
//! first chunk, a result finds its call across steps, and a part with an id is replaced in place.
//!
//! This file owns the state of the decoder and of the message, and sends each chunk to its place in
//! `stream/`.

mod end;
mod steps;
mod tool_calls;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_model::event::{EndReason, Event, EventKind, ProseKind, ToolEnd};
use unspool_model::part::{Body, Failure, Notice};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::check;
use super::document::message_id;
use super::message::emit_standalone_part;
use super::part_names::{Calls, PartNames};
use super::prose::Prose;
use super::tool::approval_response;
use super::unmapped::UnmappedFields;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamDecoder {
    messages: u32,
    calls: Calls,
    message: Option<Message>,
}

/// The message that is being streamed.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    id: Arc<str>,
    #[serde(rename = "places")]
    part_names: PartNames,
    /// The number of its parts.
    parts: u32,
    step: Option<Name>,
    steps: Vec<Name>,
    /// Open prose, by kind and id.
    open: BTreeMap<String, Prose>,
    /// Its calls, by id in the stream.
    tools: BTreeMap<String, Tool>,
    /// Call ids of approval requests, by approval id.
    #[serde(rename = "asked")]
    approval_request: BTreeMap<String, String>,
    metadata: Value,
    rest: UnmappedFields,
    /// The position and the number of parts at the start of the step.
    before: Option<(PartNames, u32)>,
    /// Names of prose in this step, and of prose in its discarded attempts.
    used: Vec<Name>,
    spent: Vec<Name>,
    resets: u32,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    index: u32,
    over: bool,
    /// How it ends, as our own exported streams say in advance.
    #[serde(default)]
    how: Option<ToolEnd>,
}

impl Decoder for StreamDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        let kind = fields.string("type").unwrap_or_default();
        if kind == "start" {
            self.start(&mut emit, fields);
            return RecordOutcome::Metadata;
        }
        if self.message.is_none() {
            self.start(&mut emit, &Fields::default());
        }
        let Some(message) = &mut self.message else { return RecordOutcome::Metadata };
        message.chunk(&mut emit, &mut self.calls, &kind, fields)
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), String> {
        check::chunk(fields)?;
        // A delta or end needs a start. Results do not: the call may be in an earlier stream.
        let kind = fields.text("type").unwrap_or_default();
        let began = match kind.rsplit_once('-') {
            Some((prose_kind @ ("text" | "reasoning"), "delta" | "end")) => {
                let key = format!("{prose_kind} {}", fields.text("id").unwrap_or_default());
                self.message.as_ref().is_some_and(|message| message.open.contains_key(&key))
            }
            Some(("tool-input", "delta")) => {
                let call = fields.text("toolCallId").unwrap_or_default();
                self.message.as_ref().is_some_and(|message| message.tools.contains_key(&*call))
            }
            Some(_) | None => true,
        };
        if began { Ok(()) } else { Err(format!("{kind}: no start chunk with this id")) }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl StreamDecoder {
    /// Starts a message, or continues it: after an approval the same message is streamed on.
    fn start(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let incoming = fields.text("messageId").filter(|id| !id.is_empty());
        let goes_on =
            matches!((&self.message, &incoming), (Some(held), Some(id)) if *held.id == **id);
        if !goes_on {
            let id = message_id(fields, "messageId", &mut self.messages);
            let names = vec![Name::Record(id.clone())];
            emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user: Vec::new() });
            let part_names = PartNames::of(&id);
            self.message = Some(Message { id, part_names, ..Message::default() });
        }
        if let Some(message) = &mut self.message {
            message.take_metadata(fields);
        }
    }
}

impl Message {
    fn chunk(
        &mut self,
        emit: &mut Emitter<'_>,
        calls: &mut Calls,
        kind: &str,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        match kind {
            "start-step" => {
                self.parts += 1;
                self.start_step(emit);
                return RecordOutcome::Metadata;
            }
            "finish-step" => {
                // Open prose gets no more deltas here; it is emitted whole when it ends.
                self.open.values_mut().for_each(|prose| prose.quiet = true);
                if let Some(step) = self.step.clone() {
                    emit.push(EventKind::StepEnded { step, stop_reason: None });
                }
                return RecordOutcome::Metadata;
            }
            "reset-step" => self.reset_step(emit),
            "text-start" => self.start_prose(emit, ProseKind::Text, fields),
            "reasoning-start" => self.start_prose(emit, ProseKind::Reasoning, fields),
            "text-delta" => self.grow(emit, ProseKind::Text, fields),
            "reasoning-delta" => self.grow(emit, ProseKind::Reasoning, fields),
            "text-end" => self.end_prose(emit, ProseKind::Text, fields),
            "reasoning-end" => self.end_prose(emit, ProseKind::Reasoning, fields),
            "message-metadata" => {
                self.take_metadata(fields);
                return RecordOutcome::Metadata;
            }
            "finish" => {
                self.finish(emit, fields);
                return RecordOutcome::Metadata;
            }
            "abort" => {
                if let Some(text) = fields.string("reason").filter(|text| !text.is_empty()) {
                    let notice = Notice { code: "interrupted".to_owned(), text };
                    emit.push(EventKind::Part(
                        Some(self.part_names.own("abort", "")),
                        Body::Notice(notice),
                    ));
                }
                self.close(emit);
                emit.push(EventKind::TurnEnded(EndReason::Interrupted));
            }
            "error" => {
                let text = fields.string("errorText").unwrap_or_default();
                let failure = Failure { text: text.clone(), ..Failure::default() };
                emit.push(EventKind::Part(
                    Some(self.part_names.part("error")),
                    Body::Error(failure),
                ));
                self.close(emit);
                emit.push(EventKind::TurnEnded(EndReason::Failed(Some(text))));
            }
            "tool-approval-response" => {
                let approval_request = fields.text("approvalId").unwrap_or_default();
                let Some(call) = self.approval_request.get(&*approval_request).cloned() else {
                    return self.keep_unknown(emit, fields);
                };
                let call = calls.id(&self.id, &call);
                approval_response(emit, &call, fields.flag("approved"), fields.string("reason"));
            }
            kind if kind.starts_with("tool-") && fields.is_text("toolCallId") => {
                return self.tool(emit, calls, kind, fields);
            }
            kind if kind.starts_with("data-") && fields.flag("transient") => {
                return RecordOutcome::left_out("transient data");
            }
            _ => return self.keep_unknown(emit, fields),
        }
        RecordOutcome::InParts
    }

    /// A file, a source, data, or a type of a future version.
    fn keep_unknown(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        emit_standalone_part(emit, &mut self.part_names, &mut self.rest, self.parts, fields);
        self.parts += 1;
        RecordOutcome::InParts
    }
}
