//! What a projection reads: the head of a session, then its turns in order, one at a time, so that
//! a session of any length can be written.

use unspool_core::id::SessionId;
use unspool_core::json::Json;
use unspool_core::session::{Transcript, Turn};
use unspool_core::summary::{Completeness, Summary};

use super::ProjectError;

/// A session that is told from its beginning to its end.
pub struct Story<'a> {
    /// What is known of it before its first turn is read.
    pub head: Summary,
    turns: Box<dyn Iterator<Item = Result<Turn, ProjectError>> + 'a>,
    library: &'a dyn Library,
}

/// Where the sessions are that a session speaks of.
pub trait Library {
    /// The session of a sub-agent, if there is one.
    fn open(&self, session: SessionId) -> Result<Option<Story<'_>>, ProjectError>;

    /// What a snapshot says that a prompt of this session was made with.
    fn snapshot(&self, _: SessionId, _sha256: &str) -> Result<Option<Json>, ProjectError> {
        Ok(None)
    }
}

/// A library without a book.
pub struct Alone;

impl Library for Alone {
    fn open(&self, _: SessionId) -> Result<Option<Story<'_>>, ProjectError> {
        Ok(None)
    }
}

impl<'a> Story<'a> {
    pub fn new(
        head: Summary,
        turns: impl Iterator<Item = Result<Turn, ProjectError>> + 'a,
        library: &'a dyn Library,
    ) -> Story<'a> {
        Story { head, turns: Box::new(turns), library }
    }

    /// A session that is in memory as a whole.
    pub fn of(transcript: &'a Transcript) -> Story<'a> {
        let turns = transcript.turns.iter().cloned().map(Ok);
        Story::new(transcript.summary(Completeness::Full, &[]), turns, &Alone)
    }

    pub fn next_turn(&mut self) -> Result<Option<Turn>, ProjectError> {
        self.turns.next().transpose()
    }

    /// What a snapshot says, where somebody keeps it.
    pub fn snapshot(&self, sha256: &str) -> Result<Option<Json>, ProjectError> {
        self.library.snapshot(self.head.session.id, sha256)
    }

    /// The session of a sub-agent that this one started.
    pub fn sub_agent(&self, id: &str) -> Result<Option<Story<'a>>, ProjectError> {
        // One that goes by a temporary id has no session that anybody could find.
        if id.starts_with("temp_") {
            return Ok(None);
        }
        self.library.open(SessionId::of(&self.head.session.agent, id))
    }
}
