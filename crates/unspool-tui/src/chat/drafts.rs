//! What is typed and not sent: the host keeps it, and it is never lost on the way.

use std::time::Instant;

use unspool_live::protocol::Command;

use super::{ChatEffect, ChatPane, DRAFT_DELAY, question};

impl ChatPane {
    /// Takes the draft of another surface, unless something is typed here. While a command of ours
    /// is on its way, the host's draft is older than ours.
    pub(super) fn follow_draft(&mut self, draft: &str) {
        let is_late = self.unconfirmed.values().any(|command| {
            matches!(command, Command::Draft { question: None, .. } | Command::Prompt { .. })
        });
        if is_late || self.editing.is_some() {
            return;
        }
        let typed = self.composer.field.text();
        if typed == self.stored_draft && typed != draft {
            self.composer.set(draft);
        }
        self.stored_draft = draft.to_owned();
    }

    /// Puts the draft back when the message that was edited is gone.
    pub(super) fn settle_editing(&mut self, now: Instant) -> Option<String> {
        let (id, _) = self.editing.as_ref()?;
        if self.state.queue.iter().any(|message| message.id == *id) {
            return None;
        }
        let (_, draft) = self.editing.take()?;
        let edited = self.composer.field.clear();
        self.composer.remember(&edited);
        self.composer.set(&draft);
        self.quiet_until = Some(now + question::GUARD_TIME * 4);
        Some("the message was sent before you changed it; ↑ brings your text back".to_owned())
    }

    /// Completes the word at the cursor.
    pub fn complete(&mut self) {
        let files = self.files.as_slice();
        self.composer.complete(&self.state.commands, files);
    }

    /// The text of the composer changed.
    pub fn edited(&mut self, now: Instant) {
        self.complete();
        self.draft_due = Some(now + DRAFT_DELAY);
    }

    /// Messages that the host did not confirm go back to the composer.
    pub fn give_back(&mut self) {
        let unconfirmed = std::mem::take(&mut self.unconfirmed);
        for command in unconfirmed.into_values().rev() {
            if let Command::Prompt { text, .. } | Command::Edit { text, .. } = command {
                self.put_back(&text);
            }
        }
        if let Some(text) = self.resend.take() {
            self.put_back(&text);
        }
    }

    /// Puts a text in front of what is typed.
    pub(super) fn put_back(&mut self, text: &str) {
        let typed = self.composer.field.clear();
        let text = if typed.is_empty() { text.to_owned() } else { format!("{text}\n{typed}") };
        self.composer.set(&text);
    }

    pub fn draft_due(&self) -> Option<Instant> {
        self.draft_due
    }

    /// Has the host keep the draft, if it changed. A message of the queue is kept there already.
    fn keep_draft(&mut self) -> Option<ChatEffect> {
        let text = match &self.editing {
            Some((_, draft)) => draft,
            None => self.composer.field.text(),
        };
        if !self.is_attached() || text == self.stored_draft {
            return None;
        }
        let text = text.to_owned();
        self.stored_draft.clone_from(&text);
        Some(self.command(Command::Draft { question: None, text }))
    }

    /// The text of an answer changed.
    pub fn answer_typed(&mut self, question: &str, text: &str, now: Instant) {
        self.answer_draft = Some((question.to_owned(), text.to_owned()));
        self.draft_due = Some(now + DRAFT_DELAY);
    }

    /// The answer is given: its draft is of no use.
    pub fn forget_answer_draft(&mut self) {
        self.answer_draft = None;
    }

    /// Has the host keep everything that is typed.
    pub fn keep_drafts(&mut self) -> Vec<ChatEffect> {
        self.draft_due = None;
        let answer = self.answer_draft.take().filter(|_| self.is_attached());
        let answer = answer.map(|(question, text)| {
            self.command(Command::Draft { question: Some(question), text })
        });
        answer.into_iter().chain(self.keep_draft()).collect()
    }
}
