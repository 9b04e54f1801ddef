//! Chats as they are kept: one `UIMessage` a line, and around them what the application says of the
//! chat as a whole.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_core::event::{EndReason, Event, What};
use unspool_core::id::sha256;
use unspool_core::json::Json;
use unspool_core::part::{Body, ContextInfo, Data};
use unspool_core::session::{Title, TitleOrigin, Trigger};
use unspool_core::telling::{Name, Telling};

use super::super::{Decoder, Emit, Fate, Fields, Record};
use super::check;
use super::message::{Reply, model, time, usage, user_part};
use super::place::{Calls, Places};
use super::rest::Rest;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DocumentDecoder {
    /// How many messages of the user came so far, and how many of others: those that have no id
    /// are counted.
    asked: u32,
    replied: u32,
    calls: Calls,
    /// How many records came that are no messages.
    around: u32,
    /// The latest message is a reply, and a turn has begun.
    replying: bool,
    began: bool,
}

impl Decoder for DocumentDecoder {
    fn decode(&mut self, record: &Record<'_>, fields: &Fields<'_>, out: &mut Vec<Event>) -> Fate {
        let mut emit = Emit::new(Telling::Log, record, None, out);
        emit.at = time(fields);
        // A chat that is written anew is told again, by what is another source: without its name,
        // what comes before the first prompt would go to the latest turn.
        let early = !self.began && !fields.is("role", "user");
        emit.turn = early.then_some(Name::Preamble);
        match fields.text("role").as_deref() {
            Some("user") => {
                self.user(&mut emit, fields);
                (self.began, self.replying) = (true, false);
                Fate::InParts
            }
            Some("assistant") => {
                let fate = self.assistant(&mut emit, fields);
                self.replying = true;
                fate
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

/// What our own parts have of a message. Its time, too, is kept as it was told.
const MESSAGE: [&str; 3] = ["id", "role", "parts"];

/// Keeps what no part has of a message: its other fields, and what is among its parts and is none.
fn keep_fields(rest: &mut Rest, fields: &Fields<'_>) {
    rest.keep_fields_but(fields, &MESSAGE);
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

/// The parts of a message, as they are counted where they are written again.
fn indexed<'a>(fields: &Fields<'a>) -> impl Iterator<Item = (u32, Fields<'a>)> {
    (0..).zip(fields.list("parts"))
}

/// What a message is called: by its id, or by its number where it has none.
pub(super) fn message_id(fields: &Fields<'_>, name: &str, number: &mut u32) -> Arc<str> {
    *number = number.saturating_add(1);
    match fields.text(name).filter(|id| !id.is_empty()) {
        Some(id) => id.into(),
        None => format!("#{number}").into(),
    }
}

/// What began a turn: messages that we wrote ourselves say it.
fn trigger(fields: &Fields<'_>) -> Option<Trigger> {
    let metadata = fields.fields("metadata");
    let ours = metadata.is_text("agent") && metadata.is_text("sessionId");
    metadata.text("trigger").filter(|_| ours).and_then(|name| Trigger::of_name(&name))
}

/// Tells what no part has of a message. Says whether there is any.
pub(super) fn tell_rest(emit: &mut Emit<'_>, places: &Places, rest: &Rest) -> bool {
    let Some(data) = rest.data() else { return false };
    emit.push(What::DataGiven(Some(places.own("rest", "")), data));
    true
}

impl DocumentDecoder {
    fn user(&mut self, emit: &mut Emit<'_>, fields: &Fields<'_>) {
        let id = message_id(fields, "id", &mut self.asked);
        let mut rest = Rest::default();
        let mut user: Vec<Body> =
            indexed(fields).map(|(index, part)| user_part(&mut rest, index, &part)).collect();
        keep_fields(&mut rest, fields);
        user.extend(rest.data().map(Body::Data));
        let trigger = trigger(fields).unwrap_or_default();
        emit.push(What::TurnStarted { names: vec![Name::Prompt(id)], trigger, user });
    }

    fn assistant(&mut self, emit: &mut Emit<'_>, fields: &Fields<'_>) -> Fate {
        let id = message_id(fields, "id", &mut self.replied);
        // Of our own messages each reply is a turn. Others may write one for each step.
        if let Some(trigger) = trigger(fields).filter(|_| self.replying) {
            let (names, user) = (vec![Name::Record(id.clone())], Vec::new());
            emit.turn = None;
            emit.push(What::TurnStarted { names, trigger, user });
            self.began = true;
        }
        let metadata = fields.json("metadata").map(|json| json.value()).unwrap_or_default();
        let mut reply = Reply {
            message: &id,
            places: Places::of(&id),
            calls: &mut self.calls,
            rest: Rest::default(),
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
                emit.push(What::UsageTold { step, usage });
            }
        }
        keep_fields(&mut reply.rest, fields);
        let kept = tell_rest(emit, &reply.places, &reply.rest);
        // Nothing says that a kept message is the end of its turn, but that nothing is open. When
        // it ended is not said: its time is when it was begun. Our own say more.
        let over = trigger(fields).is_some() && fields.fields("metadata").is("state", "completed");
        if parts && (over || !reply.open) {
            emit.at = None;
            emit.push(What::TurnEnded(if over { EndReason::Completed } else { EndReason::Idle }));
        }
        if parts || kept { Fate::InParts } else { Fate::Metadata }
    }

    fn system(&mut self, emit: &mut Emit<'_>, fields: &Fields<'_>) -> Fate {
        let id = message_id(fields, "id", &mut self.replied);
        let mut places = Places::of(&id);
        let mut rest = Rest::default();
        for (index, part) in indexed(fields) {
            let Some(text) = part.string("text").filter(|_| part.is("type", "text")) else {
                super::message::thing(emit, &mut places, &mut rest, index, &part);
                continue;
            };
            let (kind, content) = ("system-policy".to_owned(), Json::string(&text));
            let sha256 = sha256(text.as_bytes());
            emit.push(What::SnapshotTaken { kind, sha256, content });
            let info = ContextInfo { title: "System message".to_owned(), text };
            emit.push(What::ContextAdded(Some(places.part("system")), info));
            rest.keep_but(index, &part, &["type", "text", "state"]);
            rest.keep_no_texts(index, &part, &["state"]);
        }
        keep_fields(&mut rest, fields);
        tell_rest(emit, &places, &rest);
        Fate::InParts
    }

    /// What stands around the messages: the chat's own fields.
    fn chat(&mut self, emit: &mut Emit<'_>, fields: &Fields<'_>) -> Fate {
        self.around = self.around.saturating_add(1);
        if let Some(text) = fields.string("title").filter(|title| !title.trim().is_empty()) {
            emit.push(What::TitleTold(Title { text, origin: TitleOrigin::Generated }));
        }
        let (project, branch, version, cost_usd) = (None, None, None, None);
        if emit.at.is_some() {
            emit.push(What::SessionTold { project, branch, version, cost_usd });
        }
        let mut rest = Rest::default();
        rest.keep_fields_but(fields, &["id", "title"]);
        let Some(kept) = rest.data() else { return Fate::Metadata };
        emit.turn = Some(Name::Preamble);
        let name = Name::Record(format!("chat {}", self.around).into());
        let data = Data { kind: "chat".to_owned(), payload: kept.payload };
        emit.push(What::DataGiven(Some(name), data));
        Fate::InParts
    }
}
