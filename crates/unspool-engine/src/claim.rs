//! Which thread has which session in hand. Several files may tell of one session, and two threads
//! must not fold it at once.

use std::sync::{Condvar, Mutex, PoisonError};

use rustc_hash::FxHashSet;
use unspool_core::id::SessionId;

#[derive(Debug, Default)]
pub(crate) struct Claims {
    held: Mutex<FxHashSet<SessionId>>,
    freed: Condvar,
}

impl Claims {
    /// Claims a session if no other thread has it.
    pub fn try_claim(&self, session: SessionId) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(session)
    }

    /// Waits for a session. Only for a thread that has none in hand: two that wait for each other
    /// would wait for ever.
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
