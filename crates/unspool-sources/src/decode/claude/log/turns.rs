//! The turns of a session log: which prompt starts one, how it is named, and whether a fork or a
//! resume copied it from another session. Extends `LogDecoder`.

use std::sync::Arc;

use unspool_model::event::EventKind;
use unspool_model::id::digest;
use unspool_model::part::Body;
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::LogDecoder;
use crate::decode::claude::message::message_text;
use crate::decode::{Emitter, Fields};

/// The record of a message, with the ids of the log.
pub(super) fn name_record(emit: &mut Emitter<'_>, fields: &Fields<'_>, is_reply: bool) {
    if let Some(id) = fields.string("uuid") {
        let parent = fields.string("parentUuid");
        emit.push(EventKind::MessageRecordNamed { is_reply, id, parent });
    }
}

impl LogDecoder {
    /// Starts a turn, or adds to the current one if the prompt is the same.
    pub(in crate::decode::claude) fn start(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        trigger: Trigger,
        user: Vec<Body>,
    ) {
        self.prompts.begin_turn(emit);
        // A manual compaction begins with its summary; its command follows.
        if std::mem::take(&mut self.by_summary) {
            let by_text = self.prompt_names.next_of(&user);
            let names = self.tree.current().cloned().into_iter().chain(by_text).collect();
            emit.push(EventKind::TurnStarted { names, trigger, user });
            return name_record(emit, fields, false);
        }
        let left = fields.text("parentUuid").map(|parent| self.tree.rewind(&parent));
        if let Some(turns) = left.filter(|turns| !turns.is_empty()) {
            emit.push(EventKind::Rewound { turns });
        }
        let prompt: Option<Arc<str>> = fields.text("promptId").map(|id| id.into());
        let mut names: Vec<Name> = Vec::new();
        match &prompt {
            // A fork writes its own prompt id on every copied record, and a local command has the
            // id of the prompt that follows it.
            Some(prompt)
                if !self.is_copied(emit)
                    && !self.is_local(fields, trigger)
                    && self.prompt.as_ref() != Some(prompt) =>
            {
                names.push(Name::Prompt(prompt.clone()));
                self.prompt = Some(prompt.clone());
            }
            Some(_) | None => {}
        }
        // The record of a blocked prompt is also a part, so it cannot name the turn.
        let record = fields.text("uuid").map(|uuid| Name::Record(uuid.into()));
        names.extend(record.filter(|_| fields.text("type").as_deref() == Some("user")));
        // What a fork copied is not counted: its other feeds begin with the first prompt of its own.
        if prompt.is_none() {
            // Without a prompt id, rewinds name the turn by this one.
            names.splice(0..0, self.prompt_names.next_of(&user));
        } else if !self.is_copied(emit) {
            names.extend(self.prompt_names.next_of(&user));
        }
        self.blocks.forget_but(self.message.take().as_deref());
        self.retries = 0;
        self.interjections.clear();
        self.answered = false;
        self.tree.begin(names.first().cloned().unwrap_or(Name::Preamble));
        emit.push(EventKind::TurnStarted { names, trigger, user });
        name_record(emit, fields, false);
        self.inherited = self.is_copied(emit);
        if self.inherited {
            emit.push(EventKind::TurnInherited);
        }
    }

    /// True for a command that the program runs itself. Since 2.1.325 others have `turnOrigin`.
    fn is_local(&self, fields: &Fields<'_>, trigger: Trigger) -> bool {
        let shell = message_text(&fields.fields("message")).starts_with("<bash-input>");
        trigger == Trigger::Command && self.origins && !fields.has("turnOrigin") && !shell
    }

    /// True if a record is older than its file: a fork copied it.
    pub(super) fn is_copied(&self, emit: &Emitter<'_>) -> bool {
        match (self.first, emit.at) {
            (Some(first), Some(at)) => at.as_millisecond() + 1000 < first.as_millisecond(),
            (None, _) | (_, None) => false,
        }
    }

    /// True if a reply has the first timestamp of its file: on resume, 1.0.x copies records with
    /// new times and without request ids.
    pub(super) fn is_copied_reply(&self, emit: &Emitter<'_>, fields: &Fields<'_>) -> bool {
        emit.at.is_some() && emit.at == self.first && !fields.has("requestId")
    }

    /// The name of an interjection: the n-th with this text in the turn.
    pub(in crate::decode::claude) fn interjection(&mut self, text: &str) -> Name {
        let words = interjection_hash(text);
        let count = self.interjections.entry(words).or_default();
        *count += 1;
        Name::ByContent(words, *count - 1)
    }
}

pub(in crate::decode::claude) fn interjection_hash(text: &str) -> u64 {
    digest(format!("interjection\n{text}").as_bytes())
}
