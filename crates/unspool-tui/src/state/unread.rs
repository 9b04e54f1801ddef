//! Which sessions grew since the user had them open.

use unspool_model::id::SessionId;

use super::State;

impl State {
    /// True if the session grew since it was open.
    pub fn is_unread(&self, session: SessionId, seq: u64) -> bool {
        self.read.get(&session).is_some_and(|read| *read < seq)
    }

    /// Notes that the user sees the open session as it is now.
    pub(super) fn mark_read(&mut self) {
        let Some(session) = self.transcript().map(|transcript| transcript.session) else { return };
        if let Some(row) = self.list.all.iter().find(|row| row.id == session) {
            self.read.insert(session, row.seq);
        }
    }
}
