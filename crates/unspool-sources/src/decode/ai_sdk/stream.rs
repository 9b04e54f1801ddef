//! UI message streams, by the rules of the SDK's own reducer: a part takes the position of its
//! first chunk, a result finds its call across steps, and a part with an id is replaced in place.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_core::event::{CallRef, EndReason, Event, EventKind, ProseKind, ToolEnd, ToolOutcome};
use unspool_core::json::Json;
use unspool_core::part::{Failure, Notice};
use unspool_core::provenance::{Feed, Name};
use unspool_core::session::Trigger;

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::check;
use super::document::{emit_unmapped, message_id};
use super::message::{emit_standalone_part, model, prose_kind_name, usage};
use super::part_names::{Calls, PartNames};
use super::prose::Prose;
use super::tool::{
    approval_request, approval_response, emit_call, emit_end, exported_end, outcome,
};
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
                    emit.push(EventKind::Noticed(Some(self.part_names.own("abort", "")), notice));
                }
                self.close(emit);
                emit.push(EventKind::TurnEnded(EndReason::Interrupted));
            }
            "error" => {
                let text = fields.string("errorText").unwrap_or_default();
                let failure = Failure { text: text.clone(), ..Failure::default() };
                emit.push(EventKind::Failed(Some(self.part_names.part("error")), failure));
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

    // ── Steps ───────────────────────────────────────────────────────────────────────────────

    fn start_step(&mut self, emit: &mut Emitter<'_>) {
        let step = self.part_names.step();
        self.step = Some(step.clone());
        self.before = Some((self.part_names.clone(), self.parts));
        self.used.clear();
        self.spent.clear();
        self.steps.push(step.clone());
        emit.push(EventKind::StepStarted { step, model: None });
    }

    fn need_step(&mut self, emit: &mut Emitter<'_>) {
        if self.step.is_none() {
            self.start_step(emit);
        }
    }

    /// Discards the step so far. Its parts were displayed, so they stay until the next attempt
    /// replaces them.
    fn reset_step(&mut self, emit: &mut Emitter<'_>) {
        self.open.clear();
        self.spent.append(&mut self.used);
        (self.part_names, self.parts) =
            self.before.clone().unwrap_or_else(|| (PartNames::of(&self.id), 0));
        self.rest.truncate(self.parts);
        let parts = self.parts;
        self.tools.retain(|_, tool| tool.index < parts);
        self.resets = self.resets.saturating_add(1);
        let name = self.part_names.own("reset", &self.resets.to_string());
        let text = "The step was thrown away and begun again".to_owned();
        emit.push(EventKind::Noticed(Some(name), Notice { code: "retry".to_owned(), text }));
    }

    // ── Prose ───────────────────────────────────────────────────────────────────────────────

    fn start_prose(&mut self, emit: &mut Emitter<'_>, prose_kind: ProseKind, fields: &Fields<'_>) {
        self.need_step(emit);
        let name = self.part_names.part(prose_kind_name(prose_kind));
        let quiet = self.spent.contains(&name);
        self.used.push(name.clone());
        let id = fields.text("id").unwrap_or_default();
        let index = self.parts;
        self.parts += 1;
        if prose_kind == ProseKind::Reasoning {
            self.rest.keep(index, "id", Json::string(&id));
        }
        let (text, half) = (String::new(), String::new());
        let mut prose = Prose { prose_kind, name, text, index, metadata: None, half, quiet };
        prose.attach(fields);
        // An open part with the same id is never closed.
        self.open.insert(format!("{} {id}", prose_kind_name(prose_kind)), prose);
    }

    fn grow(&mut self, emit: &mut Emitter<'_>, prose_kind: ProseKind, fields: &Fields<'_>) {
        let id = fields.text("id").unwrap_or_default();
        let key = format!("{} {id}", prose_kind_name(prose_kind));
        if !self.open.contains_key(&key) {
            self.start_prose(emit, prose_kind, fields);
        }
        let Some(prose) = self.open.get_mut(&key) else { return };
        prose.attach(fields);
        let text = prose.take(fields.raw("delta").unwrap_or_default());
        if text.is_empty() {
            return;
        }
        prose.text.push_str(&text);
        if !prose.quiet {
            emit.push(EventKind::ProseDelta { prose_kind, block: Some(prose.name.clone()), text });
        }
    }

    fn end_prose(&mut self, emit: &mut Emitter<'_>, prose_kind: ProseKind, fields: &Fields<'_>) {
        let id = fields.text("id").unwrap_or_default();
        if let Some(mut prose) = self.open.remove(&format!("{} {id}", prose_kind_name(prose_kind)))
        {
            prose.attach(fields);
            let citations = fields.read("citations");
            if citations.is_none() {
                self.rest.keep_present(prose.index, fields, "citations");
            }
            prose.end(emit, &mut self.rest, citations.unwrap_or_default());
        }
    }

    /// Ends all open prose and emits the unmapped fields.
    fn close(&mut self, emit: &mut Emitter<'_>) {
        for prose in std::mem::take(&mut self.open).into_values() {
            prose.end(emit, &mut self.rest, Vec::new());
        }
        self.emit_unmapped(emit);
    }

    // ── Tools ───────────────────────────────────────────────────────────────────────────────

    fn tool(
        &mut self,
        emit: &mut Emitter<'_>,
        calls: &mut Calls,
        kind: &str,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        let id = fields.string("toolCallId").unwrap_or_default();
        let call = calls.id(&self.id, &id);
        if !self.tools.contains_key(&id) {
            self.register_call(emit, &id, &call, kind, fields);
        }
        let Some(tool) = self.tools.get_mut(&id) else { return RecordOutcome::Metadata };
        if let Some(name) = fields.string("toolName") {
            tool.name = name;
        }
        let (index, name) = (tool.index, tool.name.clone());
        match kind {
            "tool-input-start" => emit_call(emit, &call, &name, fields, None, false),
            "tool-input-delta" => {
                let text = fields.string("inputTextDelta").unwrap_or_default();
                emit.push(EventKind::ToolInputDelta { call: CallRef::Id(call), name, text });
                return RecordOutcome::InParts;
            }
            "tool-input-available" => {
                emit_call(emit, &call, &name, fields, fields.raw_or_null("input"), true);
                tool.how = exported_end(&fields.fields("providerMetadata"));
                if tool.how == Some(ToolEnd::Interrupted) {
                    tool.over = true;
                    emit_end(emit, &call, ToolEnd::Interrupted, ToolOutcome::default());
                }
                if tool.how.is_some() {
                    return RecordOutcome::InParts;
                }
            }
            "tool-input-error" => {
                emit_call(emit, &call, &name, fields, fields.raw_or_null("input"), true);
                tool.over = true;
                emit_end(emit, &call, ToolEnd::Failed, outcome(fields));
            }
            "tool-approval-request" => {
                let approval = fields.string("approvalId").unwrap_or_default();
                self.approval_request.insert(approval.clone(), id);
                if !fields.flag("isAutomatic") {
                    approval_request(emit, &call, &name, Some(approval), fields.string("reason"));
                }
                let mapped_fields = ["type", "toolCallId", "approvalId"];
                if fields.each().any(|(name, _)| !mapped_fields.contains(&&*name)) {
                    self.rest.keep(index, "approval", fields.whole());
                }
                return RecordOutcome::InParts;
            }
            "tool-output-available" if fields.flag("preliminary") => {
                let outcome = outcome(fields);
                emit.push(EventKind::ToolRefined { call: CallRef::Id(call), outcome });
            }
            "tool-output-available" => {
                tool.over = true;
                emit_end(emit, &call, ToolEnd::Completed, outcome(fields));
            }
            "tool-output-error" => {
                tool.over = true;
                let how = tool.how.unwrap_or(ToolEnd::Failed);
                emit_end(emit, &call, how, outcome(fields));
            }
            "tool-output-denied" => {
                tool.over = true;
                emit_end(emit, &call, ToolEnd::Denied, outcome(fields));
            }
            _ => return self.keep_unknown(emit, fields),
        }
        self.keep_of_tool(index, kind, fields);
        RecordOutcome::InParts
    }

    /// Adds a call that is new to the stream. If its first chunk is a result, the call was made
    /// before the stream began, and the stream continues after it.
    fn register_call(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &str,
        call: &Arc<str>,
        kind: &str,
        fields: &Fields<'_>,
    ) {
        let name = fields.string("toolName").unwrap_or_default();
        let new = kind.starts_with("tool-input-");
        if new {
            self.need_step(emit);
        } else {
            emit_call(emit, call, &name, fields, None, true);
        }
        if new || self.part_names.is_at_start() || self.parts == 0 {
            self.part_names.pass(id);
        }
        let index = if new { self.parts } else { u32::MAX };
        self.parts += u32::from(new);
        self.tools.insert(id.to_owned(), Tool { name, index, over: false, how: None });
    }

    fn keep_of_tool(&mut self, index: u32, kind: &str, fields: &Fields<'_>) {
        const TOOL_CHUNK_FIELDS: [&str; 9] = [
            "type",
            "toolCallId",
            "toolName",
            "title",
            "providerExecuted",
            "input",
            "output",
            "errorText",
            "inputTextDelta",
        ];
        self.rest.drop_field(index, "preliminary");
        self.rest.keep_non_texts(index, fields, &["toolName", "title", "errorText"]);
        if fields.has("providerExecuted") && fields.truth("providerExecuted").is_none() {
            self.rest.keep_present(index, fields, "providerExecuted");
        }
        for (name, value) in fields.each().filter(|(name, _)| !TOOL_CHUNK_FIELDS.contains(&&**name))
        {
            let result = kind.starts_with("tool-output-") || kind == "tool-input-error";
            let (name, value) = match &*name {
                "dynamic" if value == "true" => ("type", Json::string("dynamic-tool")),
                "providerMetadata" if result => ("resultProviderMetadata", Json::checked(value)),
                "providerMetadata" => ("callProviderMetadata", Json::checked(value)),
                name => (name, Json::checked(value)),
            };
            self.rest.keep(index, name, value);
        }
    }

    // ── The message as a whole ──────────────────────────────────────────────────────────────

    fn take_metadata(&mut self, fields: &Fields<'_>) {
        if let Some(incoming) = fields.json("messageMetadata") {
            merge(&mut self.metadata, incoming.value());
        }
    }

    fn finish(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        self.take_metadata(fields);
        let reason = fields.string("finishReason");
        if let (Some(step), Some(_)) = (self.step.clone(), &reason) {
            emit.push(EventKind::StepEnded { step, stop_reason: reason.clone() });
        }
        self.close(emit);
        let open = self.tools.values().any(|tool| !tool.over);
        let end = match reason.as_deref() {
            Some("error") => EndReason::Failed(None),
            Some("interrupted") => EndReason::Interrupted,
            // An approval is pending or a client-side tool is running: the message will continue.
            _ if open => return,
            _ => EndReason::Completed,
        };
        emit.push(EventKind::TurnEnded(end));
    }

    fn emit_unmapped(&mut self, emit: &mut Emitter<'_>) {
        // Metadata may change until the end, so the model is known only now.
        if let Some(model) = model(&self.metadata) {
            for step in self.steps.clone() {
                emit.push(EventKind::StepStarted { step, model: Some(model.clone()) });
            }
        }
        if let Some(usage) = usage(&self.metadata) {
            self.need_step(emit);
            if let Some(step) = self.step.clone() {
                emit.push(EventKind::UsageUpdated { step, usage });
            }
        }
        if !self.metadata.is_null() {
            self.rest.keep_field("metadata", Json::from(self.metadata.clone()));
        }
        emit_unmapped(emit, &self.part_names, &self.rest);
    }
}

/// Merges objects field by field and replaces anything else.
fn merge(held: &mut Value, incoming: Value) {
    match (held, incoming) {
        (Value::Object(held), Value::Object(incoming)) => {
            for (name, value) in incoming {
                match held.get_mut(&name) {
                    Some(held) => merge(held, value),
                    None => {
                        held.insert(name, value);
                    }
                }
            }
        }
        (held, incoming) => *held = incoming,
    }
}
