//! Stored chats: one `UIMessage` per line, and records with the application's fields of the chat as
//! a whole before or after them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::id::sha256;
use unspool_model::json::Json;
use unspool_model::part::{Body, ContextInfo, Data};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{Title, TitleOrigin, Trigger};

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::check;
use super::message::{Reply, model, time, usage, user_part};
use super::part_names::{Calls, PartNames};
use super::unmapped::UnmappedFields;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DocumentDecoder {
    /// Messages so far: the user's, and others. They name messages that have no id.
    #[serde(rename = "asked")]
    user_messages: u32,
    #[serde(rename = "replied")]
    other_messages: u32,
    calls: Calls,
    /// Records so far that are no messages.
    around: u32,
    /// The latest message is a reply; a turn has begun.
    replying: bool,
    began: bool,
}

impl Decoder for DocumentDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        emit.at = time(fields);
        // A rewritten chat is read again as another source. Without this name, records before the
        // first prompt would then be attributed to the latest turn.
        let early = !self.began && !fields.is("role", "user");
        emit.turn = early.then_some(Name::Preamble);
        match fields.text("role").as_deref() {
            Some("user") => {
                self.user(&mut emit, fields);
                (self.began, self.replying) = (true, false);
                RecordOutcome::InParts
            }
            Some("assistant") => {
                let outcome = self.assistant(&mut emit, fields);
                self.replying = true;
                outcome
            }
            Some("system") => self.system(&mut emit, fields),
            _ => self.chat(&mut emit, fields),
        }
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), String> {
        if fields.has("role") { check::message(fields) } else { Ok(()) }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

/// The fields of a message that our parts hold. Its time is not among them, so it is kept as
/// written.
const MESSAGE_FIELDS: [&str; 3] = ["id", "role", "parts"];

/// Keeps the unmapped fields of a message, and entries of `parts` that are no objects.
fn keep_fields(rest: &mut UnmappedFields, fields: &Fields<'_>) {
    rest.keep_fields_except(fields, &MESSAGE_FIELDS);
    for (name, value) in fields.each() {
        let read = match &*name {
            "id" => fields.is_text("id") || value == "null",
            "parts" => value.starts_with('['),
            _ => continue,
        };
        if !read {
            rest.keep_field(&name, Json::checked(value));
        }
    }
    let odd = fields.items("parts").enumerate().filter(|(_, (_, part))| !part.is_object());
    for (at, (raw, _)) in odd {
        rest.keep_field(&format!("parts[{at}]"), Json::checked(raw));
    }
}

/// The object parts of a message, numbered as an export numbers them.
fn indexed<'a>(fields: &Fields<'a>) -> impl Iterator<Item = (u32, Fields<'a>)> {
    (0..).zip(fields.list("parts"))
}

/// The id of a message, or its number if it has none.
pub(super) fn message_id(fields: &Fields<'_>, name: &str, number: &mut u32) -> Arc<str> {
    *number = number.saturating_add(1);
    match fields.text(name).filter(|id| !id.is_empty()) {
        Some(id) => id.into(),
        None => format!("#{number}").into(),
    }
}

/// The trigger of a turn, from the metadata of a message that Unspool exported.
fn trigger(fields: &Fields<'_>) -> Option<Trigger> {
    let metadata = fields.fields("metadata");
    let ours = metadata.is_text("agent") && metadata.is_text("sessionId");
    metadata.text("trigger").filter(|_| ours).and_then(|name| Trigger::of_name(&name))
}

/// Emits the unmapped fields of a message as a data part. Returns true if there are any.
pub(super) fn emit_unmapped(
    emit: &mut Emitter<'_>,
    part_names: &PartNames,
    rest: &UnmappedFields,
) -> bool {
    let Some(data) = rest.data() else { return false };
    emit.push(EventKind::Part(Some(part_names.own("rest", "")), Body::Data(data)));
    true
}

impl DocumentDecoder {
    fn user(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let id = message_id(fields, "id", &mut self.user_messages);
        let mut rest = UnmappedFields::default();
        let mut user: Vec<Body> =
            indexed(fields).map(|(index, part)| user_part(&mut rest, index, &part)).collect();
        keep_fields(&mut rest, fields);
        user.extend(rest.data().map(Body::Data));
        let trigger = trigger(fields).unwrap_or_default();
        emit.push(EventKind::TurnStarted { names: vec![Name::Prompt(id)], trigger, user });
    }

    fn assistant(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let id = message_id(fields, "id", &mut self.other_messages);
        // In our own exports each reply is a turn. Other applications may write one per step.
        if let Some(trigger) = trigger(fields).filter(|_| self.replying) {
            let (names, user) = (vec![Name::Record(id.clone())], Vec::new());
            emit.turn = None;
            emit.push(EventKind::TurnStarted { names, trigger, user });
            self.began = true;
        }
        let metadata = fields.json("metadata").map(|json| json.value()).unwrap_or_default();
        let mut reply = Reply {
            message: &id,
            part_names: PartNames::of(&id),
            calls: &mut self.calls,
            rest: UnmappedFields::default(),
            model: model(&metadata),
            step: None,
            open: false,
        };
        let parts = fields.items("parts").next().is_some();
        for (index, part) in indexed(fields) {
            reply.part(emit, index, &part);
        }
        if let Some(usage) = usage(&metadata) {
            if reply.step.is_none() {
                reply.start_step(emit);
            }
            if let Some(step) = reply.step.clone() {
                emit.push(EventKind::UsageUpdated { step, usage });
            }
        }
        keep_fields(&mut reply.rest, fields);
        let kept = emit_unmapped(emit, &reply.part_names, &reply.rest);
        // A stored message does not say that it ends its turn: assume so if nothing in it is open.
        // Its time is when it began, so the end has none. Our own exports have the turn's state.
        let over = trigger(fields).is_some() && fields.fields("metadata").is("state", "completed");
        if parts && (over || !reply.open) {
            emit.at = None;
            emit.push(EventKind::TurnEnded(if over {
                EndReason::Completed
            } else {
                EndReason::Idle
            }));
        }
        if parts || kept { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn system(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let id = message_id(fields, "id", &mut self.other_messages);
        let mut part_names = PartNames::of(&id);
        let mut rest = UnmappedFields::default();
        for (index, part) in indexed(fields) {
            let Some(text) = part.string("text").filter(|_| part.is("type", "text")) else {
                super::message::emit_standalone_part(
                    emit,
                    &mut part_names,
                    &mut rest,
                    index,
                    &part,
                );
                continue;
            };
            let (kind, content) = ("system-policy".to_owned(), Json::string(&text));
            let sha256 = sha256(text.as_bytes());
            emit.push(EventKind::SnapshotTaken { kind, sha256, content });
            let info = ContextInfo { title: "System message".to_owned(), text };
            emit.push(EventKind::Part(Some(part_names.part("system")), Body::ContextInfo(info)));
            rest.keep_except(index, &part, &["type", "text", "state"]);
            rest.keep_non_texts(index, &part, &["state"]);
        }
        keep_fields(&mut rest, fields);
        emit_unmapped(emit, &part_names, &rest);
        RecordOutcome::InParts
    }

    /// A record that is no message: fields of the chat as a whole.
    fn chat(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.around = self.around.saturating_add(1);
        if let Some(text) = fields.string("title").filter(|title| !title.trim().is_empty()) {
            emit.push(EventKind::TitleSet(Title { text, origin: TitleOrigin::Generated }));
        }
        let (project, branch, version, cost) = (None, None, None, None);
        if emit.at.is_some() {
            emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        }
        let mut rest = UnmappedFields::default();
        rest.keep_fields_except(fields, &["id", "title"]);
        let Some(kept) = rest.data() else { return RecordOutcome::Metadata };
        emit.turn = Some(Name::Preamble);
        let name = Name::Record(format!("chat {}", self.around).into());
        let data = Data { kind: "chat".to_owned(), payload: kept.payload };
        emit.push(EventKind::Part(Some(name), Body::Data(data)));
        RecordOutcome::InParts
    }
}
