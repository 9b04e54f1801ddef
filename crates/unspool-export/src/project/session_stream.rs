//! The input of a projection: the head of a session, then its turns one at a time, so that memory
//! does not grow with the session. It is made of redacted values only (law 12).

use jiff::Timestamp;
use unspool_model::id::SessionId;
use unspool_model::json::Json;
use unspool_model::note::PlacedNote;
use unspool_model::prompt::RecordedPrompts;
use unspool_model::session::{Transcript, Turn};
use unspool_model::summary::{Completeness, Summary};
use unspool_redact::Redacted;

use super::ProjectError;

/// A session read turn by turn.
pub struct SessionStream<'a> {
    /// Available before the first turn is read.
    pub head: Summary,
    /// The user's notes, if they are wanted.
    pub notes: Vec<PlacedNote>,
    turns: Box<dyn Iterator<Item = Result<Turn, ProjectError>> + 'a>,
    lookup: &'a dyn SessionLookup,
}

/// Looks up the sub-agent sessions and snapshots that a session refers to.
pub trait SessionLookup {
    /// The session of a sub-agent, if there is one.
    fn open(&self, session: SessionId) -> Result<Option<SessionStream<'_>>, ProjectError>;

    /// The content of a prompt snapshot of this session.
    fn snapshot(
        &self,
        _: SessionId,
        _sha256: &str,
    ) -> Result<Option<Redacted<Json>>, ProjectError> {
        Ok(None)
    }

    /// What the model calls of this session were sent, if its agent records it.
    fn prompts(&self, _: SessionId) -> Result<Option<Redacted<RecordedPrompts>>, ProjectError> {
        Ok(None)
    }
}

/// A lookup that finds nothing.
pub struct NoSessions;

impl SessionLookup for NoSessions {
    fn open(&self, _: SessionId) -> Result<Option<SessionStream<'_>>, ProjectError> {
        Ok(None)
    }
}

impl<'a> SessionStream<'a> {
    pub fn new(
        head: Redacted<Summary>,
        turns: impl Iterator<Item = Result<Redacted<Turn>, ProjectError>> + 'a,
        lookup: &'a dyn SessionLookup,
    ) -> SessionStream<'a> {
        let turns = turns.map(|turn| turn.map(Redacted::into_inner));
        let (head, notes) = (head.into_inner(), Vec::new());
        SessionStream { head, notes, turns: Box::new(turns), lookup }
    }

    pub fn with_notes(self, notes: Redacted<Vec<PlacedNote>>) -> SessionStream<'a> {
        SessionStream { notes: notes.into_inner(), ..self }
    }

    /// A session in memory.
    pub fn of(transcript: &'a Redacted<Transcript>) -> SessionStream<'a> {
        SessionStream {
            head: transcript.summary(Completeness::Full, &[]),
            notes: Vec::new(),
            turns: Box::new(transcript.turns.iter().cloned().map(Ok)),
            lookup: &NoSessions,
        }
    }

    pub fn next_turn(&mut self) -> Result<Option<Turn>, ProjectError> {
        let has_content = |turn: &Result<Turn, _>| turn.as_ref().is_ok_and(|turn| !turn.is_blank());
        self.turns.find(|turn| turn.is_err() || has_content(turn)).transpose()
    }

    /// The earliest time in the history that the session copied from another one. None if it begins
    /// with a turn of its own.
    pub fn inherited_start(&mut self) -> Option<Timestamp> {
        let mut read = Vec::new();
        for turn in self.turns.by_ref() {
            let is_copied = turn.as_ref().is_ok_and(|turn| turn.number == 0 || turn.inherited);
            read.push(turn);
            if !is_copied {
                break;
            }
        }
        let copied = read.iter().flatten().filter(|turn| turn.inherited);
        let times = copied.flat_map(|turn| {
            let parts = turn.parts.iter().filter_map(|part| part.started.or(part.ended));
            parts.chain(turn.started.or(turn.ended))
        });
        let started = times.min();
        let rest = std::mem::replace(&mut self.turns, Box::new(std::iter::empty()));
        self.turns = Box::new(read.into_iter().chain(rest));
        started
    }

    /// The next turn with content or with model calls: formats that add up tokens need those that
    /// an agent reports for the session as a whole.
    pub fn next_counted_turn(&mut self) -> Result<Option<Turn>, ProjectError> {
        let counts = |turn: &Result<Turn, _>| {
            turn.as_ref().is_ok_and(|turn| !turn.is_blank() || !turn.steps.is_empty())
        };
        self.turns.find(|turn| turn.is_err() || counts(turn)).transpose()
    }

    /// The content of a snapshot, if it is stored.
    pub fn snapshot(&self, sha256: &str) -> Result<Option<Json>, ProjectError> {
        let found = self.lookup.snapshot(self.head.session.id, sha256)?;
        Ok(found.map(Redacted::into_inner))
    }

    /// What its model calls were sent. Costs as much as the texts of all instructions.
    pub fn prompts(&self) -> Result<Option<RecordedPrompts>, ProjectError> {
        let found = self.lookup.prompts(self.head.session.id)?;
        Ok(found.map(Redacted::into_inner))
    }

    /// The session of a sub-agent that this one started.
    pub fn sub_agent(&self, id: &str) -> Result<Option<SessionStream<'a>>, ProjectError> {
        // An agent with a temporary id has no session of its own.
        if id.starts_with("temp_") {
            return Ok(None);
        }
        self.lookup.open(SessionId::of(&self.head.session.agent, id))
    }
}
