//! Committed changes, as the recorder publishes them to subscribers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Delta, Urgency};
use crate::id::SessionId;

/// The committed changes of one session, for subscribers. Seqs count the session's events: applying
/// the changes to the session as of `from_seq` gives the session as of `seq`. The seqs are equal if
/// the user changed what is beside the transcript.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeSet {
    pub session: SessionId,
    pub agent: String,
    pub agent_session_id: String,
    pub from_seq: u64,
    pub seq: u64,
    /// None if there was no subscriber when the events were applied: reload the session.
    pub delta: Option<Arc<Delta>>,
}

impl ChangeSet {
    /// True if the agent did nothing: the user changed the session's name, tags or notes.
    pub fn is_user_change(&self) -> bool {
        self.from_seq == self.seq
    }

    /// How soon views must show it.
    pub fn urgency(&self) -> Urgency {
        self.delta.as_ref().map_or(Urgency::State, |delta| delta.touched.urgency)
    }
}
