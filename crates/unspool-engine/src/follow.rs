//! Following one session: what the archive holds of it, kept up with what is being written.

use unspool_core::id::SessionId;
use unspool_core::session::{Transcript, Turn};
use unspool_core::transcript::Mirror;
use unspool_store::blocking::wait;
use unspool_store::contract::{Store, StoreError, Window};
use unspool_store::recorder::Published;

/// A session as it is now.
pub struct Followed<S: Store> {
    store: S,
    id: SessionId,
    seq: u64,
    mirror: Mirror,
}

/// What a publication meant for the session that is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// It was about another session, or about something that is here already.
    None,
    /// Its changes are here now.
    Changed,
    /// Something was missed: the session was loaded again.
    Loaded,
}

impl<S: Store> Followed<S> {
    /// Loads a session. Subscribe first: then nothing falls between loading and following.
    pub fn load(store: S, id: SessionId) -> Result<Option<Followed<S>>, StoreError> {
        let mut followed = Followed { store, id, seq: 0, mirror: Mirror::new("", "") };
        Ok(followed.reload()?.then_some(followed))
    }

    /// Loads the session as it is stored now. False if it is not there.
    pub fn reload(&mut self) -> Result<bool, StoreError> {
        // The seq is read before the turns: what is written between the two is told again, and
        // telling it again changes nothing.
        loop {
            let Some(stored) = wait(self.store.find(self.id.to_string()))?.pop() else {
                return Ok(false);
            };
            let turns = wait(self.store.whole_turns(stored.row, Window::All))?;
            let after = wait(self.store.find(self.id.to_string()))?.pop();
            // Something was written meanwhile: what was read may be half of it.
            if after.is_none_or(|after| after.seq != stored.seq) {
                continue;
            }
            self.mirror = Mirror::resume(stored.summary.session);
            turns.into_iter().for_each(|turn| self.mirror.adopt_turn(turn));
            self.seq = stored.seq;
            return Ok(true);
        }
    }

    /// Takes what was published.
    pub fn take(&mut self, published: &Published) -> Result<News, StoreError> {
        if published.session != self.id || published.seq <= self.seq {
            return Ok(News::None);
        }
        match &published.changes {
            Some(changes) if published.from_seq == self.seq => {
                self.mirror.apply_all(changes.iter().cloned());
                self.seq = published.seq;
                Ok(News::Changed)
            }
            Some(_) | None => {
                self.reload()?;
                Ok(News::Loaded)
            }
        }
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    pub fn transcript(&self) -> Transcript {
        self.mirror.transcript()
    }

    /// With everything in it, also what is not shown.
    pub fn rows(&self) -> Vec<Turn> {
        let mut turns = self.mirror.rows().turns;
        turns.sort_by_key(|turn| turn.number);
        turns
    }
}
