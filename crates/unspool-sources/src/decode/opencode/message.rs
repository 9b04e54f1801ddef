//! Assistant messages: each is a step, and the last one says how its turn ended. Also session idle,
//! errors and removals. Extends `OpenCodeDecoder`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, EventKind};
use unspool_model::part::{Body, Failure, Notice};
use unspool_model::provenance::Name;
use unspool_model::session::{Trigger, Usage};

use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::OpenCodeDecoder;
use super::time_of;
use super::user::created;

/// An assistant message.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    pub id: Arc<str>,
    /// The user message that it replies to, if a record named it.
    pub turn: Option<Arc<str>>,
    pub model: Option<String>,
    /// It is a summary of the conversation, for a compaction.
    pub summary: bool,
    /// It was copied from another session, which counts its tokens.
    pub inherited: bool,
    /// Model calls started in it. Since 1.0 there is one.
    pub steps: u32,
    /// The last model call has not ended.
    pub in_step: bool,
    /// Model calls whose cost is in the sum of the session.
    #[serde(default)]
    pub steps_with_cost: u32,
    /// It has parts.
    pub filled: bool,
    /// The user refused one of its calls, which stops the turn.
    pub refused: bool,
    structured: bool,
    finish: Option<String>,
    /// When it was completed, in milliseconds.
    completed: Option<u64>,
    error: Option<StopCause>,
    #[serde(rename = "told")]
    reported_end: Option<TurnEnd>,
}

/// Why a message stopped before its end.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum StopCause {
    Aborted,
    Failed,
}

/// How the turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum TurnEnd {
    Completed,
    Interrupted,
    Failed,
    Idle,
}

impl Message {
    /// The name of its current model call.
    pub fn step(&self) -> Name {
        match self.steps {
            0 | 1 => Name::Message(self.id.clone()),
            more => Name::Message(format!("{}/{more}", self.id).into()),
        }
    }

    pub fn error_name(&self) -> Name {
        Name::Record(format!("{}/error", self.id).into())
    }

    /// How the turn ended, if it ended with this message.
    fn end(&self) -> Option<TurnEnd> {
        match self.error {
            Some(StopCause::Aborted) => return Some(TurnEnd::Interrupted),
            Some(StopCause::Failed) => return Some(TurnEnd::Failed),
            None => {}
        }
        self.completed?;
        match self.finish.as_deref() {
            Some("tool-calls") if self.structured => Some(TurnEnd::Completed),
            Some("tool-calls") => self.refused.then_some(TurnEnd::Idle),
            // The stream was cut: the step is retried in another message.
            Some("unknown") => None,
            Some(_) => Some(TurnEnd::Completed),
            // A command that the user ran. A message that failed before it had parts is
            // compacted and retried.
            None => self.filled.then_some(TurnEnd::Completed),
        }
    }
}

impl OpenCodeDecoder {
    pub(super) fn held(&mut self, id: &str) -> Option<&mut Message> {
        self.messages.iter_mut().rev().find(|message| *message.id == *id)
    }

    pub(super) fn message(&mut self, emit: &mut Emitter<'_>, info: &Fields<'_>) -> RecordOutcome {
        if info.is("role", "user") {
            return self.user_message(emit, info);
        }
        self.assistant(emit, info);
        self.settle(emit, &info.text("id").unwrap_or_default(), false);
        RecordOutcome::Metadata
    }

    /// Records the state of an assistant message.
    pub(super) fn assistant(&mut self, emit: &mut Emitter<'_>, info: &Fields<'_>) {
        let id: Arc<str> = info.text("id").unwrap_or_default().into();
        emit.at = time_of(&info.fields("time"), "completed").or_else(|| created(info));
        if self.held(&id).is_none() {
            let parent: Option<Arc<str>> = info.text("parentID").map(|id| id.into());
            let turn = parent.or_else(|| self.turn.clone());
            if let Some(turn) = &turn {
                let begun = self.user(turn).is_some_and(|user| user.begun);
                if !begun {
                    self.begin(emit, turn);
                }
            }
            self.add_message(id.clone(), turn);
        }
        let Some(message) = self.held(&id) else { return };
        emit.turn = message.turn.clone().map(Name::Prompt);
        message.model = info.string("modelID").or(message.model.take());
        message.summary |= info.flag("summary");
        message.structured |= info.has("structured");
        message.finish = info.string("finish").or(message.finish.take());
        message.completed = info.fields("time").number("completed").or(message.completed);
        let error = info.fields("error");
        if error.is_object() && message.error.is_none() {
            let aborted = error.is("name", "MessageAbortedError");
            message.error = Some(if aborted { StopCause::Aborted } else { StopCause::Failed });
            if !aborted {
                emit.push(EventKind::Part(
                    Some(message.error_name()),
                    Body::Error(failure(&error)),
                ));
            }
        }
    }

    pub(super) fn add_message(&mut self, id: Arc<str>, turn: Option<Arc<str>>) {
        let inherited = turn.as_ref().is_some_and(|turn| self.is_inherited(turn));
        self.messages.push(Message { id, turn, inherited, ..Message::default() });
    }

    /// Adds the message of a part if it is missing: the capture began in its middle, or the source
    /// is `run`, which prints no messages.
    pub(super) fn ensure_message(&mut self, emit: &mut Emitter<'_>, id: &str) {
        if self.held(id).is_some() {
            return;
        }
        if self.turn.is_none() && self.messages.is_empty() {
            emit.turn = None;
            let (names, user) = (Vec::new(), Vec::new());
            emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
            self.ended = false;
        }
        self.add_message(id.into(), self.turn.clone());
    }

    /// Emits the end of the turn if it ended with this message: once, and again after each later
    /// update of the message (`again`).
    pub(super) fn settle(&mut self, emit: &mut Emitter<'_>, id: &str, again: bool) {
        let Some(message) = self.held(id) else { return };
        let Some(end) = message.end() else { return };
        if message.reported_end == Some(end) && !again {
            return;
        }
        message.reported_end = Some(end);
        emit.turn = message.turn.clone().map(Name::Prompt);
        let completed = message.completed.and_then(|at| i64::try_from(at).ok());
        let completed = completed.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        let turn = message.turn.clone();
        let at = emit.at;
        emit.at = completed.or(at);
        emit.push(EventKind::TurnEnded(match end {
            TurnEnd::Completed => EndReason::Completed,
            TurnEnd::Interrupted => EndReason::Interrupted,
            TurnEnd::Failed => EndReason::Failed(None),
            TurnEnd::Idle => EndReason::Idle,
        }));
        emit.at = at;
        if turn == self.turn {
            self.ended = true;
            self.begin_waiting(emit);
        }
    }

    // ── Only in the server's events ─────────────────────────────────────────────────────────

    pub(super) fn idle(&mut self, emit: &mut Emitter<'_>) -> RecordOutcome {
        if self.turn.is_some() || !self.messages.is_empty() {
            emit.push(EventKind::TurnEnded(EndReason::Idle));
            self.ended = true;
            self.begin_waiting(emit);
        }
        RecordOutcome::Metadata
    }

    pub(super) fn error(&mut self, emit: &mut Emitter<'_>, error: &Fields<'_>) -> RecordOutcome {
        if error.is("name", "MessageAbortedError") {
            emit.push(EventKind::TurnEnded(EndReason::Interrupted));
            return RecordOutcome::Metadata;
        }
        // The failed message has the same error, unless its context was too long.
        let name = self.messages.last().map(Message::error_name);
        emit.push(EventKind::Part(name, Body::Error(failure(error))));
        emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
        RecordOutcome::InParts
    }

    // ── Removals ────────────────────────────────────────────────────────────────────────────

    /// The user rewound past a message, or deleted it.
    pub(super) fn message_removed(
        &mut self,
        emit: &mut Emitter<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let id: Arc<str> = body.text("messageID").unwrap_or_default().into();
        let turn = self.held(&id).and_then(|message| message.turn.clone());
        if self.held(&id).is_none() {
            emit.push(EventKind::Rewound { turns: vec![Name::Prompt(id.clone())] });
            if let Some(user) = self.user(&id) {
                user.removed = true;
            }
            if self.turn.as_ref() == Some(&id) {
                self.ended = true;
            }
            return RecordOutcome::Metadata;
        }
        let with_turn = turn.as_ref().and_then(|turn| self.user(turn)).is_some_and(|u| u.removed);
        if with_turn {
            return RecordOutcome::Metadata;
        }
        emit.turn = turn.map(Name::Prompt);
        removed(emit, &id, "This reply was removed from the conversation.");
        RecordOutcome::InParts
    }

    pub(super) fn part_removed(
        &mut self,
        emit: &mut Emitter<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let (message, part) =
            (body.string("messageID").unwrap_or_default(), body.text("partID").unwrap_or_default());
        if self.transient.remove(&*part) {
            return RecordOutcome::left_out("transient text");
        }
        match self.held(&message).map(|message| message.turn.clone()) {
            Some(turn) => {
                emit.turn = turn.map(Name::Prompt);
                removed(emit, &part, "A part of this reply was removed from the conversation.");
                RecordOutcome::InParts
            }
            None => {
                self.user_part_removed(emit, &message, &part);
                RecordOutcome::Metadata
            }
        }
    }
}

fn removed(emit: &mut Emitter<'_>, id: &str, text: &str) {
    let name = Name::Record(format!("{id}/removed").into());
    let notice = Notice { code: "removed".to_owned(), text: text.to_owned() };
    emit.push(EventKind::Part(Some(name), Body::Notice(notice)));
}

pub(super) fn failure(error: &Fields<'_>) -> Failure {
    let data = error.fields("data");
    let code = error.string("name").or_else(|| error.string("type"));
    let text = data.string("message").or_else(|| error.string("message"));
    let text = text.or_else(|| code.clone()).unwrap_or_default();
    Failure { code, status: data.number("statusCode"), text }
}

/// Token usage. `input` excludes cached tokens, and `output` excludes reasoning.
pub(super) fn usage(tokens: &Fields<'_>) -> Usage {
    let count = |name: &str| tokens.number(name).unwrap_or(0);
    let cache = tokens.fields("cache");
    let reasoning = count("reasoning");
    Usage {
        input: count("input"),
        output: count("output").saturating_add(reasoning),
        cache_read: cache.number("read").unwrap_or(0),
        cache_write: cache.number("write").unwrap_or(0),
        reasoning,
        ..Usage::default()
    }
}
