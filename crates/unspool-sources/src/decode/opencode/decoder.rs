//! The decoder of all OpenCode sources: its state, and the dispatch of records to the sibling
//! files, which extend it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind, ProseKind};
use unspool_model::part::{Body, Data, Notice};
use unspool_model::provenance::{Feed, Name};

use super::super::kilo;
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::message::Message;
use super::product::Product;
use super::questions::PendingRequest;
use super::session::Head;
use super::tool::OpenCall;
use super::user::User;
use super::{SESSION_RECORD_TYPE, body_of, kind_of, time_of, unwrap_event};

/// How many user messages and assistant messages are kept. Late updates of older ones still find
/// their parts by name.
const MAX_REMEMBERED_MESSAGES: usize = 256;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenCodeDecoder {
    #[serde(rename = "telling")]
    pub(super) feed: Feed,
    #[serde(default, skip_serializing_if = "Product::is_default")]
    pub(super) product: Product,
    pub(super) head: Head,
    /// The user message of the current turn.
    pub(super) turn: Option<Arc<str>>,
    /// The current turn has ended.
    pub(super) ended: bool,
    /// The latest user and assistant messages.
    pub(super) users: Vec<User>,
    #[serde(default)]
    pub(super) prompts: PromptNames,
    pub(super) messages: Vec<Message>,
    /// Open prose, by part id.
    pub(super) open: BTreeMap<Arc<str>, ProseKind>,
    /// Texts of Kilo that it will remove, by part id.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) transient: BTreeSet<Arc<str>>,
    /// Open calls, by part id.
    pub(super) calls: BTreeMap<Arc<str>, OpenCall>,
    /// Open questions to the user, by request id.
    pub(super) requests: BTreeMap<String, PendingRequest>,
    /// Sessions of sub-agents running in the background.
    pub(super) background: BTreeSet<Arc<str>>,
    /// Parts that `run` printed of the current step, with their sort key: side of a clock wrap, id.
    pub(super) printed: Vec<(i8, String, String)>,
}

impl OpenCodeDecoder {
    pub(in crate::decode) fn new(feed: Feed, product: Product) -> OpenCodeDecoder {
        OpenCodeDecoder {
            feed,
            product,
            head: Head::default(),
            turn: None,
            ended: true,
            users: Vec::new(),
            prompts: PromptNames::default(),
            messages: Vec::new(),
            open: BTreeMap::new(),
            transient: BTreeSet::new(),
            calls: BTreeMap::new(),
            requests: BTreeMap::new(),
            background: BTreeSet::new(),
            printed: Vec::new(),
        }
    }
}

impl Decoder for OpenCodeDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let event = unwrap_event(fields);
        let mut emit = Emitter::new(self.feed, record, None, out);
        emit.turn = self.turn_name();
        if event.has("info") && !event.has("type") {
            return self.document(&mut emit, &event);
        }
        if event.is("type", SESSION_RECORD_TYPE) || event.is("type", kilo::SESSION_RECORD_TYPE) {
            return self.session(&mut emit, &event);
        }
        if event.has("timestamp") && event.has("sessionID") {
            return self.printed(&mut emit, &event);
        }
        let (kind, body) = (kind_of(&event), body_of(&event));
        emit.at = time_of(&body, "timestamp").or_else(|| time_of(&body, "time"));
        let outcome = self.event(&mut emit, &kind, &event, &body);
        self.messages.drain(..self.messages.len().saturating_sub(MAX_REMEMBERED_MESSAGES));
        self.users.drain(..self.users.len().saturating_sub(MAX_REMEMBERED_MESSAGES));
        outcome
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.turn_name()
    }
}

impl OpenCodeDecoder {
    pub(super) fn turn_name(&self) -> Option<Name> {
        self.turn.clone().map(Name::Prompt)
    }

    fn event(
        &mut self,
        emit: &mut Emitter<'_>,
        kind: &str,
        event: &Fields<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        match kind {
            "session.created" | "session.updated" => self.session(emit, &body.fields("info")),
            "session.deleted" => {
                emit.push(EventKind::SessionEnded);
                RecordOutcome::Metadata
            }
            "message.updated" => self.message(emit, &body.fields("info")),
            "message.part.updated" => self.part(emit, &body.fields("part")),
            "message.part.delta" => self.delta(emit, body),
            "message.removed" => self.message_removed(emit, body),
            "message.part.removed" => self.part_removed(emit, body),
            "session.status" => self.status(emit, event, &body.fields("status")),
            "session.idle" => self.idle(emit),
            "session.turn.close" => self.turn_closed(emit, body),
            "suggestion.shown" => self.suggestion(emit, body),
            "session.turn.open" | "session.queue.changed" | "session.drain.interrupted" => {
                RecordOutcome::Metadata
            }
            "session.error" => self.error(emit, &body.fields("error")),
            "permission.asked" | "permission.v2.asked" => self.permission_request(emit, body),
            "permission.replied" | "permission.v2.replied" => self.permission_reply(emit, body),
            "question.asked" | "question.v2.asked" => self.question_request(emit, body),
            "question.replied" | "question.v2.replied" => self.question_reply(emit, body),
            "question.rejected" | "question.v2.rejected" => self.question_rejection(emit, body),
            // The parts carry the same content.
            "session.compacted" | "session.diff" | "todo.updated" | "command.executed" => {
                RecordOutcome::left_out(kind)
            }
            // The global stream repeats each durable event as a `sync` event.
            "sync" => RecordOutcome::left_out(kind),
            _ => match kind.strip_prefix("session.next.") {
                Some(next) => self.next(emit, next, body),
                // An event of the server, not of a session.
                None if !body.has("sessionID") => RecordOutcome::left_out(kind),
                None => self.unknown(emit, kind, event, body),
            },
        }
    }

    /// Kilo says how a turn ended.
    fn turn_closed(&mut self, emit: &mut Emitter<'_>, body: &Fields<'_>) -> RecordOutcome {
        let reason = match body.text("reason").as_deref() {
            Some("interrupted") => EndReason::Interrupted,
            Some("error") => EndReason::Failed(None),
            // `superseded`: a prompt that waited takes over.
            Some(_) | None => EndReason::Completed,
        };
        emit.push(EventKind::TurnEnded(reason));
        self.ended = true;
        RecordOutcome::Metadata
    }

    pub(super) fn unknown(
        &mut self,
        emit: &mut Emitter<'_>,
        kind: &str,
        event: &Fields<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        if !event.is_object() {
            return RecordOutcome::Metadata;
        }
        let name = event.text("id").map(|id| Name::Record(id.into()));
        let data = Data { kind: kind.to_owned(), payload: body.whole() };
        emit.push(EventKind::Part(name, Body::Data(data)));
        RecordOutcome::InParts
    }

    fn status(
        &mut self,
        emit: &mut Emitter<'_>,
        event: &Fields<'_>,
        status: &Fields<'_>,
    ) -> RecordOutcome {
        if !status.is("type", "retry") {
            return RecordOutcome::Metadata;
        }
        let attempt = status.number("attempt").unwrap_or(1);
        let why = status.string("message").unwrap_or_default();
        let name = event.text("id").map(|id| Name::Record(id.into()));
        let notice =
            Notice { code: "retry".to_owned(), text: format!("Retry, attempt {attempt}: {why}") };
        emit.push(EventKind::Part(name, Body::Notice(notice)));
        RecordOutcome::InParts
    }
}
