//! Decodes a document line by line: its head, its conversations, and other records. Each
//! conversation is handed to `ConversationDecoder`.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::id::digest;
use unspool_model::json::Json;
use unspool_model::part::{Body, Data};
use unspool_model::provenance::{Feed, Name};

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::conversation::ConversationDecoder;
use super::steps::{Calls, Steps};
use super::unmapped::{FieldMap, data};

/// The fields of a conversation (R-002-04).
pub(super) const CONVERSATION_FIELDS: [&str; 7] =
    ["conversation_id", "channel", "status", "started_at", "ended_at", "duration_ms", "steps"];

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DocumentDecoder {
    /// Conversations and other records so far.
    conversations: u32,
    around: u32,
    /// Digests of the ids of conversations and model calls: each id is used once.
    ids: BTreeSet<u64>,
    calls: Calls,
    /// The last turn, if its end is not recorded. It counts as running until another follows.
    unseen: Option<Name>,
    /// The unmapped fields of the session.
    session: FieldMap,
    /// Start and end of the session: from the head, and the range over all conversations.
    #[serde(rename = "told")]
    head_times: [Option<Timestamp>; 2],
    seen: Option<(Timestamp, Timestamp)>,
}

impl Decoder for DocumentDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        if fields.raw("steps").is_some_and(|steps| steps.starts_with('[')) {
            return self.conversation(&mut emit, fields);
        }
        self.around = self.around.saturating_add(1);
        if self.around == 1 && self.conversations == 0 {
            return self.head(&mut emit, fields);
        }
        self.behind(&mut emit, fields)
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl DocumentDecoder {
    fn head(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.head_times = ["started_at", "ended_at"].map(|name| fields.time(name));
        emit.at = self.head_times[0];
        if emit.at.is_some() {
            let (project, branch, version, cost) = (None, None, None, None);
            emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        }
        emit.at = None;
        let left = fields.each().filter(|(name, value)| match &**name {
            "session_id" => !fields.is_text("session_id"),
            "started_at" | "ended_at" => fields.has(name) && fields.time(name).is_none(),
            "conversations" => *value != "[]",
            _ => true,
        });
        self.session.extend(left.map(|(name, value)| (name.into_owned(), Json::checked(value))));
        self.emit_session(emit)
    }

    /// Emits the unmapped fields of the session, before the first prompt.
    fn emit_session(&self, emit: &mut Emitter<'_>) -> RecordOutcome {
        let Some(kept) =
            data(SESSION_DATA_KIND, &self.session).filter(|_| !self.session.is_empty())
        else {
            return RecordOutcome::Metadata;
        };
        emit.turn = Some(Name::Preamble);
        emit.push(EventKind::Part(
            Some(Name::Record("thoughtflow session".into())),
            Body::Data(kept),
        ));
        RecordOutcome::InParts
    }

    /// Fields after the conversations, or an entry of `conversations` that is none.
    fn behind(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let kept = fields.names().next().is_some();
        if kept {
            // It does not belong to the conversation before it.
            emit.turn = Some(Name::Preamble);
            let name = Name::Record(format!("thoughtflow record {}", self.around).into());
            let data = Data { kind: "thoughtflow-record".to_owned(), payload: fields.whole() };
            emit.push(EventKind::Part(Some(name), Body::Data(data)));
        }
        // The session's times follow from its turns; different ones are kept. A start before the
        // first turn was already emitted with the head.
        let [began, ended] = self.head_times;
        let late = began.filter(|began| self.seen.is_some_and(|seen| seen.0 < *began));
        let ended = ended.filter(|ended| self.seen.is_none_or(|seen| seen.1 != *ended));
        if late.or(ended).is_none() {
            return if kept { RecordOutcome::InParts } else { RecordOutcome::Metadata };
        }
        for (name, time) in [("started_at", late), ("ended_at", ended)] {
            let kept = time.map(|time| Json::string(&format!("{time:.3}")));
            self.session.extend(kept.map(|time| (name.to_owned(), time)));
        }
        self.emit_session(emit)
    }

    fn conversation(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.conversations = self.conversations.saturating_add(1);
        if let Some(turn) = self.unseen.take() {
            emit.turn = Some(turn);
            emit.push(EventKind::TurnEnded(EndReason::Unseen));
        }
        let number = self.conversations;
        let id: Arc<str> = match fields.text("conversation_id").filter(|id| !id.is_empty()) {
            Some(id) if self.ids.insert(digest(id.as_bytes())) => id.into(),
            Some(id) => format!("{id} #{number}").into(),
            None => format!("#{number}").into(),
        };
        let steps = Steps::of(fields, &id, &mut self.calls);
        self.note_times(fields, &steps);
        let agent = steps.all.iter().find(|step| step.label == "assistant_call");
        let agent = agent.and_then(|call| call.started.string("name"));
        if let Some(agent) = agent.filter(|_| !self.session.contains_key(AGENT_FIELD)) {
            self.session.insert(AGENT_FIELD.to_owned(), Json::string(&agent));
            self.emit_session(emit);
        }
        // In our own documents, a conversation with a start or without an end is a turn even if it
        // has no prompt.
        let began = fields.time("started_at").is_some() || fields.is("status", "unknown");
        let early = number == 1 && steps.prompt.is_empty() && !(steps.own && began);
        let turn = if early { Name::Preamble } else { Name::Prompt(id.clone()) };
        emit.turn = Some(turn.clone());
        let agent = self.session.get(AGENT_FIELD).and_then(Json::read).unwrap_or_default();
        let mut run =
            ConversationDecoder::new(&id, early, agent, &steps, &self.calls, &mut self.ids);
        run.decode(emit, fields);
        if !run.ended {
            self.unseen = Some(turn);
        }
        RecordOutcome::InParts
    }

    fn note_times(&mut self, fields: &Fields<'_>, steps: &Steps<'_>) {
        let of = |fields: &Fields<'_>| [fields.time("started_at"), fields.time("ended_at")];
        let own = of(fields).into_iter();
        for at in own.chain(steps.all.iter().flat_map(|step| of(&step.fields))).flatten() {
            let (first, last) = self.seen.unwrap_or((at, at));
            self.seen = Some((first.min(at), last.max(at)));
        }
    }
}

/// The kind of the data part with the session's unmapped fields, and its field for the agent: the
/// name in the model calls.
pub(super) const SESSION_DATA_KIND: &str = "thoughtflow-session";
const AGENT_FIELD: &str = "name";
