//! The sessions of one file, in the order in which they were found. A log may have the records of
//! thousands of sub-agents, so each record looks its session up.

use std::ops::{Deref, DerefMut};

use rustc_hash::FxHashMap;

use super::{Session, SessionHandle};

#[derive(Default)]
pub(super) struct Sessions {
    list: Vec<Session>,
    /// The index of the first session with this id.
    by_id: FxHashMap<Box<str>, usize>,
    /// The index of the first session that is no sub-agent's.
    own: Option<usize>,
}

impl Sessions {
    pub fn push(&mut self, session: Session) {
        let at = self.list.len();
        if !session.sub_agent {
            self.own.get_or_insert(at);
        }
        self.by_id.entry(session.id.as_str().into()).or_insert(at);
        self.list.push(session);
    }

    /// The session with this id.
    pub fn find(&self, id: &str) -> Option<SessionHandle> {
        self.by_id.get(id).copied().map(SessionHandle)
    }

    /// The main session of the file. Its sub-agents may appear before it does.
    pub fn own(&self) -> Option<SessionHandle> {
        self.own.map(SessionHandle)
    }
}

impl Deref for Sessions {
    type Target = [Session];

    fn deref(&self) -> &[Session] {
        &self.list
    }
}

impl DerefMut for Sessions {
    fn deref_mut(&mut self) -> &mut [Session] {
        &mut self.list
    }
}
