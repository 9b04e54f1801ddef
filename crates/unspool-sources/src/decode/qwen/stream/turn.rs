//! Where turns and model calls of the stream begin, and how they are named like those of the log.
//! Extends `StreamDecoder`.

use unspool_model::event::EventKind;
use unspool_model::part::{Body, Notice};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::super::Emitter;
use super::super::turn_hash;
use super::StreamDecoder;

impl StreamDecoder {
    pub(super) fn next_turn(&mut self) {
        (self.begun, self.step, self.step_over) = (false, 0, true);
        (self.first, self.in_log, self.begins_again) = (None, false, false);
        self.retrying = false;
        (self.open, self.prefix, self.reported) = (None, String::new(), None);
        self.retries = 0;
        self.failures.clear();
    }

    /// Names the turn by the report that started it, or else by its first content, and starts it.
    pub(super) fn begin(&mut self, emit: &mut Emitter<'_>, kind: &str, content: &str) {
        if std::mem::replace(&mut self.begun, true) {
            return self.begin_again(emit, kind, content);
        }
        if let Some(text) = self.reported.take() {
            let names = vec![self.prompts.next(&text)];
            let code = "task-notification".to_owned();
            let (trigger, user) = (Trigger::Agent, vec![Body::Notice(Notice { code, text })]);
            emit.push(EventKind::TurnStarted { names, trigger, user });
            return self.show_servers(emit);
        }
        let names = vec![self.name_by(kind, content)];
        let (trigger, user) = (Trigger::User, Vec::new());
        emit.push(EventKind::TurnStarted { names, trigger, user });
        self.show_servers(emit);
    }

    fn name_by(&mut self, kind: &str, content: &str) -> Name {
        let words = turn_hash(kind, content);
        let count = self.firsts.entry(words).or_default();
        let name = Name::ByContent(words, *count);
        *count += 1;
        self.first = Some(words);
        name
    }

    /// Names the turn by its first content in the log, after replies that were cut.
    fn begin_again(&mut self, emit: &mut Emitter<'_>, kind: &str, content: &str) {
        let again = std::mem::take(&mut self.begins_again);
        let Some(first) = self.first.filter(|first| again && *first != turn_hash(kind, content))
        else {
            return;
        };
        let count = self.firsts.get(&first).map_or(0, |count| count.saturating_sub(1));
        let names = vec![Name::ByContent(first, count), self.name_by(kind, content)];
        let (trigger, user) = (Trigger::User, Vec::new());
        emit.push(EventKind::TurnStarted { names, trigger, user });
    }

    fn show_servers(&mut self, emit: &mut Emitter<'_>) {
        if let Some(snapshot) = self.snapshot.take() {
            emit.push(EventKind::Part(None, snapshot));
        }
    }

    /// Moves to the next model call if this one is over.
    pub(super) fn advance(&mut self) {
        self.retrying = false;
        if std::mem::take(&mut self.step_over) {
            self.step = self.step.saturating_add(1);
            self.prose = [0, 0];
        }
    }
}
