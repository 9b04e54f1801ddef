//! Claims on sessions. Several files may feed one session, and only one worker may write it at a
//! time.

use std::sync::{Condvar, Mutex, PoisonError};

use rustc_hash::FxHashSet;
use unspool_model::id::SessionId;

#[derive(Debug, Default)]
pub(crate) struct Claims {
    held: Mutex<FxHashSet<SessionId>>,
    freed: Condvar,
}

impl Claims {
    /// Claims a session unless another worker holds it.
    pub fn try_claim(&self, session: SessionId) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(session)
    }

    /// Waits for a session. Only a worker without other claims may call this: two workers waiting
    /// for each other would deadlock.
    pub fn claim(&self, session: SessionId) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while !held.insert(session) {
            held = self.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn free(&self, sessions: impl IntoIterator<Item = SessionId>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.into_iter().for_each(|session| {
            held.remove(&session);
        });
        self.freed.notify_all();
    }
}
