//! Follows one session: loads it from the archive and applies the changes that are published.

use unspool_core::id::SessionId;
use unspool_core::session::{Transcript, Turn};
use unspool_core::transcript::TranscriptBuilder;
use unspool_store::blocking::block_on;
use unspool_store::recorder::ChangeSet;
use unspool_store::store::{Store, StoreError, TurnWindow};

/// A session and the sequence number up to which it is current.
pub struct SessionFollower<S: Store> {
    store: S,
    id: SessionId,
    seq: u64,
    builder: TranscriptBuilder,
}

/// The effect of a publication on the followed session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FollowOutcome {
    /// Another session, or changes that are already applied.
    None,
    /// The changes were applied.
    Changed,
    /// Changes were missed; the session was reloaded.
    Reloaded,
}

impl<S: Store> SessionFollower<S> {
    /// Loads a session. Subscribe first, so that no change is lost in between.
    pub fn load(store: S, id: SessionId) -> Result<Option<SessionFollower<S>>, StoreError> {
        let mut followed =
            SessionFollower { store, id, seq: 0, builder: TranscriptBuilder::new("", "") };
        Ok(followed.reload()?.then_some(followed))
    }

    /// Reloads the session from the archive. False if it is not stored.
    pub fn reload(&mut self) -> Result<bool, StoreError> {
        // The seq is read before the turns. Changes written between the two reads are applied a
        // second time, which has no effect.
        loop {
            let Some(stored) = block_on(self.store.find(self.id.to_string()))?.pop() else {
                return Ok(false);
            };
            let turns = block_on(self.store.whole_turns(stored.row, TurnWindow::All))?;
            let after = block_on(self.store.find(self.id.to_string()))?.pop();
            // A write happened during the read, so the turns may be inconsistent.
            if after.is_none_or(|after| after.seq != stored.seq) {
                continue;
            }
            self.builder = TranscriptBuilder::resume(stored.summary.session);
            turns.into_iter().for_each(|turn| self.builder.adopt_turn(turn));
            self.seq = stored.seq;
            return Ok(true);
        }
    }

    /// Applies a publication.
    pub fn take(&mut self, published: &ChangeSet) -> Result<FollowOutcome, StoreError> {
        if published.session != self.id || published.seq <= self.seq {
            return Ok(FollowOutcome::None);
        }
        match &published.delta {
            Some(delta) if published.from_seq == self.seq => {
                self.builder.apply_all(delta.changes.iter().cloned());
                self.seq = published.seq;
                Ok(FollowOutcome::Changed)
            }
            Some(_) | None => {
                self.reload()?;
                Ok(FollowOutcome::Reloaded)
            }
        }
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    pub fn transcript(&self) -> Transcript {
        self.builder.transcript()
    }

    /// All stored turns, hidden parts included.
    pub fn rows(&self) -> Vec<Turn> {
        let mut turns = self.builder.rows().turns;
        turns.sort_by_key(|turn| turn.number);
        turns
    }
}
