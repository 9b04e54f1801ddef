//! User messages, and those that OpenCode writes on the user's behalf. Each starts a turn; one sent
//! while the model works starts its turn when the current one ends. Extends `OpenCodeDecoder`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{AgentEnd, AgentRef, EventKind};
use unspool_model::part::{Body, Compaction, ContextInfo, Data, File, Text};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::injected::separate;
use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::OpenCodeDecoder;
use super::time_of;

/// A user message.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct User {
    pub id: Arc<str>,
    /// When it was sent, in milliseconds.
    created: Option<u64>,
    /// Its parts in order, by id. Cleared when the next turn begins.
    pieces: Vec<(Arc<str>, UserPart)>,
    /// Its turn has begun.
    pub begun: bool,
    /// Another turn has begun since.
    past: bool,
    pub removed: bool,
    /// The name of its turn by its first text, once it has one.
    #[serde(default)]
    by_text: Option<Name>,
}

#[derive(Serialize, Deserialize)]
enum UserPart {
    /// Written by the user.
    #[serde(rename = "Said")]
    Said(Body),
    /// The task that a command gives a sub-agent.
    Ordered(Body),
    /// A command of Kilo: what the user typed, and the text that it stands for.
    Injected(Body, ContextInfo),
    /// Context that OpenCode added for the model.
    Added(ContextInfo, Trigger),
    /// A request to compact the conversation.
    Compact { auto: bool },
}

impl User {
    fn new(id: Arc<str>, created: Option<u64>) -> User {
        let (begun, past, removed) = (false, false, false);
        User { id, created, pieces: Vec::new(), begun, past, removed, by_text: None }
    }

    fn trigger(&self) -> Trigger {
        let mut added = Trigger::User;
        for (_, piece) in &self.pieces {
            match piece {
                UserPart::Compact { auto: true } => return Trigger::Continuation,
                UserPart::Compact { auto: false }
                | UserPart::Ordered(_)
                | UserPart::Injected(..) => {
                    return Trigger::Command;
                }
                UserPart::Said(_) => return Trigger::User,
                UserPart::Added(_, trigger) => added = *trigger,
            }
        }
        added
    }

    fn said(&self) -> Vec<Body> {
        let said = self.pieces.iter().filter_map(|(_, piece)| match piece {
            UserPart::Said(body) | UserPart::Ordered(body) | UserPart::Injected(body, _) => {
                Some(body.clone())
            }
            UserPart::Added(..) | UserPart::Compact { .. } => None,
        });
        said.collect()
    }

    /// The part that requests a compaction, and whether it is automatic.
    pub fn compaction(&self) -> Option<(Arc<str>, bool)> {
        self.pieces.iter().find_map(|(id, piece)| match piece {
            UserPart::Compact { auto } => Some((id.clone(), *auto)),
            UserPart::Said(_)
            | UserPart::Ordered(_)
            | UserPart::Injected(..)
            | UserPart::Added(..) => None,
        })
    }
}

impl OpenCodeDecoder {
    pub(super) fn user(&mut self, id: &str) -> Option<&mut User> {
        self.users.iter_mut().rev().find(|user| *user.id == *id)
    }

    /// A new or changed user message.
    pub(super) fn user_message(
        &mut self,
        emit: &mut Emitter<'_>,
        info: &Fields<'_>,
    ) -> RecordOutcome {
        let id: Arc<str> = info.text("id").unwrap_or_default().into();
        if self.user(&id).is_none() {
            self.users.push(User::new(id.clone(), info.fields("time").number("created")));
            if self.ended {
                self.begin(emit, &id);
            }
        }
        RecordOutcome::Metadata
    }

    /// Starts a turn, or emits its start again with all parts that its message has by now.
    pub(super) fn begin(&mut self, emit: &mut Emitter<'_>, id: &Arc<str>) {
        if self.user(id).is_none() {
            self.users.push(User::new(id.clone(), None));
        }
        let created = self.head.created;
        // A stream may begin without the record that says so.
        let is_agent = self.feed == Feed::Log && self.head.is_agent();
        let fresh = self.turn.as_ref() != Some(id);
        if fresh {
            for user in self.users.iter_mut().filter(|user| user.begun && user.id != *id) {
                user.past = true;
                user.pieces.clear();
            }
            self.turn = Some(id.clone());
            self.ended = false;
        }
        let OpenCodeDecoder { users, prompts, product, .. } = self;
        let Some(user) = users.iter_mut().rev().find(|user| *user.id == **id) else { return };
        let at = emit.at;
        emit.at = user
            .created
            .and_then(|at| i64::try_from(at).ok())
            .and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        emit.turn = None;
        let (trigger, said) = (user.trigger(), separate(product.agent(), user.said()));
        // The prompts of a sub-agent are its parent's.
        let of_parent = is_agent && trigger == Trigger::User;
        let trigger = if of_parent { Trigger::Agent } else { trigger };
        if user.by_text.is_none() {
            user.by_text = prompts.next_of(&said);
        }
        let names = [Name::Prompt(id.clone())].into_iter().chain(user.by_text.clone()).collect();
        emit.push(EventKind::TurnStarted { names, trigger, user: said });
        emit.turn = Some(Name::Prompt(id.clone()));
        if fresh && created.is_some_and(|created| user.created.is_some_and(|at| at < created)) {
            emit.push(EventKind::TurnInherited);
        }
        emit.at = at.or(emit.at);
        let waiting = !std::mem::replace(&mut user.begun, true);
        let events: Vec<EventKind> = user
            .pieces
            .iter()
            .filter(|_| waiting)
            .filter_map(|(part, piece)| piece_event(part, piece))
            .collect();
        events.into_iter().for_each(|what| emit.push(what));
    }

    /// True if a turn was copied from the session that this one was forked from.
    pub(super) fn is_inherited(&mut self, turn: &str) -> bool {
        let created = self.head.created;
        let sent = self.user(turn).and_then(|user| user.created);
        created.is_some_and(|created| sent.is_some_and(|sent| sent < created))
    }

    /// The turn is over: starts the turn of a message that was sent meanwhile.
    pub(super) fn begin_waiting(&mut self, emit: &mut Emitter<'_>) {
        let waiting = self.users.iter().find(|user| !user.begun && !user.removed);
        if let Some(id) = waiting.map(|user| user.id.clone()) {
            self.begin(emit, &id);
        }
    }

    pub(super) fn user_part(&mut self, emit: &mut Emitter<'_>, part: &Fields<'_>) -> RecordOutcome {
        let id: Arc<str> = part.text("id").unwrap_or_default().into();
        let message: Arc<str> = part.text("messageID").unwrap_or_default().into();
        let Some(piece) = self.piece(emit, part) else { return RecordOutcome::Metadata };
        let Some(user) = self.user(&message).filter(|user| !user.past) else {
            return RecordOutcome::Metadata;
        };
        let event = piece_event(&id, &piece);
        match user.pieces.iter_mut().find(|(held, _)| *held == id) {
            Some((_, held)) => *held = piece,
            None => user.pieces.push((id, piece)),
        }
        if user.begun {
            let at = emit.at;
            self.begin(emit, &message);
            emit.at = at;
            event.into_iter().for_each(|what| emit.push(what));
        }
        RecordOutcome::InParts
    }

    fn piece(&mut self, emit: &mut Emitter<'_>, part: &Fields<'_>) -> Option<UserPart> {
        let text = |name: &str| part.string(name).unwrap_or_default();
        Some(match part.text("type").as_deref() {
            Some("text") if part.flag("synthetic") => {
                let text = text("text");
                let trigger = self.synthetic(emit, part, &text);
                let title = self.product.context_title();
                UserPart::Added(ContextInfo { title, text }, trigger)
            }
            // A command of Kilo: the whole text for the model, and what the user typed.
            Some("text") if command_title(part).is_some() => {
                let context = ContextInfo { title: "Command".to_owned(), text: text("text") };
                let text = command_title(part).unwrap_or_default();
                UserPart::Injected(Body::Text(Text { text, ..Text::default() }), context)
            }
            Some("text") => {
                let text = Some(text("text")).filter(|text| !text.is_empty())?;
                UserPart::Said(Body::Text(Text { text, ..Text::default() }))
            }
            Some("file") => UserPart::Said(Body::File(file(part))),
            Some("agent") => {
                let title = "Mentioned agent".to_owned();
                UserPart::Added(ContextInfo { title, text: text("name") }, Trigger::User)
            }
            Some("subtask") => {
                let command = part.string("command").map(|command| format!("/{command}"));
                let text = command.unwrap_or_else(|| text("prompt"));
                UserPart::Ordered(Body::Text(Text { text, ..Text::default() }))
            }
            Some("compaction") => UserPart::Compact { auto: part.flag("auto") },
            Some("snapshot" | "patch" | "step-start" | "step-finish") => return None,
            kind => {
                let kind = kind.unwrap_or("part").to_owned();
                UserPart::Said(Body::Data(Data { kind, payload: part.whole() }))
            }
        })
    }

    /// The trigger of a message that OpenCode wrote on the user's behalf.
    fn synthetic(&mut self, emit: &mut Emitter<'_>, part: &Fields<'_>, text: &str) -> Trigger {
        if part.fields("metadata").flag("compaction_continue") {
            return Trigger::Continuation;
        }
        if text == "The following tool was executed by the user" {
            return Trigger::Command;
        }
        // The report of a background sub-agent, wrapped in `<task …>`. Its own text is inside, so
        // only the tag itself is read.
        let mark = text.strip_prefix("<task id=\"").and_then(|rest| rest.split_once('"'));
        if let Some((id, rest)) = mark.filter(|(id, _)| self.background.contains(*id)) {
            self.background.remove(id);
            let mark = rest.split('>').next().unwrap_or_default();
            let end = if mark.contains("state=\"completed\"") {
                AgentEnd::Completed
            } else if mark.contains("state=\"cancelled\"") {
                AgentEnd::Interrupted
            } else {
                AgentEnd::Failed
            };
            let agent = AgentRef { call: None, id: Some(id.into()) };
            emit.push(EventKind::AgentEnded { agent, end });
            return Trigger::Agent;
        }
        Trigger::Continuation
    }

    /// A part of a user message was removed.
    pub(super) fn user_part_removed(&mut self, emit: &mut Emitter<'_>, message: &str, part: &str) {
        let Some(user) = self.user(message) else { return };
        user.pieces.retain(|(held, _)| **held != *part);
        let id = user.id.clone();
        if user.begun && !user.past {
            self.begin(emit, &id);
        }
    }
}

/// What the user typed to run a command of Kilo.
fn command_title(part: &Fields<'_>) -> Option<String> {
    part.fields("metadata").fields("kilo").fields("injected").string("title")
}

/// The event, beside the start of the turn, of a part of a user message.
fn piece_event(part: &Arc<str>, piece: &UserPart) -> Option<EventKind> {
    let name = Some(Name::Record(part.clone()));
    match piece {
        UserPart::Said(_) | UserPart::Ordered(_) => None,
        UserPart::Added(context, _) | UserPart::Injected(_, context) => {
            Some(EventKind::Part(name, Body::ContextInfo(context.clone())))
        }
        UserPart::Compact { auto } => {
            Some(EventKind::Part(name, Body::Compaction(compaction(*auto, String::new()))))
        }
    }
}

pub(super) fn compaction(auto: bool, summary: String) -> Compaction {
    let trigger = if auto { "auto" } else { "manual" };
    Compaction { trigger: Some(trigger.to_owned()), summary, ..Compaction::default() }
}

/// A file that a user attached or a tool returned.
pub(super) fn file(part: &Fields<'_>) -> File {
    File {
        name: part.string("filename"),
        media_type: part.string("mime"),
        url: part.string("url"),
        text: None,
    }
}

/// The creation time of a message.
pub(super) fn created(info: &Fields<'_>) -> Option<jiff::Timestamp> {
    time_of(&info.fields("time"), "created")
}
