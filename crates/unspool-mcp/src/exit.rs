//! The way out of the archive for one session (law 12): knows the session's secrets, also those that
//! only another turn reveals, and releases what a tool tells of it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use unspool_export::export::collect_secrets_from;
use unspool_model::id::SessionId;
use unspool_model::session::Turn;
use unspool_model::summary::Summary;
use unspool_redact::{CollectedSecrets, Redacted, Redactor, Rules};
use unspool_store::blocking::block_on;
use unspool_store::store::{StoreError, StoredSession, View};
use unspool_view::block::is_deceptive;
use unspool_view::present::ansi::plain_text;

/// Sessions whose secrets are remembered.
const MAX_SESSIONS: usize = 256;

/// Redacts what leaves about one session, or what is of none.
pub struct Exit<'r> {
    redactor: Redactor<'r>,
}

impl<'r> Exit<'r> {
    /// For texts of no session.
    pub fn new(rules: Option<&'r Rules>) -> Exit<'r> {
        Exit { redactor: rules.map_or_else(Redactor::off, Redactor::new) }
    }

    pub fn turn(&mut self, turn: Turn) -> Redacted<Turn> {
        self.redactor.release_turn(turn)
    }

    pub fn summary(&mut self, summary: &Summary) -> Redacted<Summary> {
        self.redactor.release_summary(summary.clone())
    }

    /// A text without secrets, control characters and marks that change the order or hide text.
    pub fn text(&mut self, text: &str) -> String {
        let redacted = self.redactor.text(text);
        match clean(&redacted) {
            Cow::Borrowed(_) => redacted.into_owned(),
            // What was hidden may have split a secret.
            Cow::Owned(cleaned) => self.redactor.text(&cleaned).into_owned(),
        }
    }

    /// The redactor, for an export.
    pub fn into_redactor(self) -> Redactor<'r> {
        self.redactor
    }
}

/// The text without terminal sequences and characters that a reader does not see. Lines and tabs
/// stay.
fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unseen) {
        return Cow::Borrowed(text);
    }
    let text = if text.contains('\u{1b}') { plain_text(text) } else { text.to_owned() };
    Cow::Owned(text.chars().filter(|c| !is_unseen(*c)).collect())
}

/// Control characters, bidirectional marks, and letters without a shape: some of these carry text
/// that a model reads and a person does not see.
fn is_unseen(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\n' | '\t');
    let is_invisible = matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}'
    );
    is_control || is_invisible || is_deceptive(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The secrets of a session up to a state of the archive.
struct SessionSecrets {
    session: SessionId,
    seq: u64,
    /// The last turn that was read: it may grow.
    last_turn: u32,
    secrets: CollectedSecrets,
}

/// Remembers the secrets of sessions that were told about: to collect them takes a pass over the
/// whole session, for one that grew a pass over what is new.
#[derive(Default)]
pub struct SecretCache {
    /// The most recently used is the last.
    known: Mutex<VecDeque<SessionSecrets>>,
}

impl SecretCache {
    /// The way out for a session.
    pub fn exit<'r, V: View>(
        &self,
        view: &V,
        stored: &StoredSession,
        rules: Option<&'r Rules>,
    ) -> Result<Exit<'r>, StoreError> {
        if rules.is_none() {
            return Ok(Exit::new(None));
        }
        let (id, seq) = (stored.summary.session.id, stored.seq);
        let before = self.take(id);
        let (from, secrets) = match before {
            Some(known) if known.seq == seq => {
                let secrets = known.secrets.clone();
                self.put(known);
                return Ok(Exit { redactor: Redactor::resume(rules, secrets) });
            }
            // A turn of an older part of the session may have changed too, but only in sessions that
            // are read again from their start, and then with an earlier number.
            Some(known) if known.seq < seq => (known.last_turn, known.secrets),
            Some(_) | None => (0, CollectedSecrets::default()),
        };
        let mut redactor = Redactor::resume(rules, secrets);
        let last_turn = block_on(collect_secrets_from(view, stored, from, &mut redactor))?;
        let secrets = redactor.into_secrets();
        self.put(SessionSecrets { session: id, seq, last_turn, secrets: secrets.clone() });
        Ok(Exit { redactor: Redactor::resume(rules, secrets) })
    }

    fn take(&self, session: SessionId) -> Option<SessionSecrets> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|known| known.session == session)?;
        known.remove(at)
    }

    fn put(&self, secrets: SessionSecrets) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.session != secrets.session);
        known.push_back(secrets);
        while known.len() > MAX_SESSIONS {
            known.pop_front();
        }
    }
}

#[cfg(test)]
#[path = "exit_tests.rs"]
mod tests;
