//! Whether a session or turn is running. No source records that an agent was killed, so a turn
//! without an end in a session that was silent for too long does not count as running. Computed on
//! each read, never stored.

use jiff::{SignedDuration, Timestamp};

use crate::session::{SessionState, Turn, TurnState};
use crate::summary::Summary;

/// A session that was silent for longer does not count as running.
pub const MAX_SILENCE: SignedDuration = SignedDuration::from_mins(30);

/// True if the last record is older than `MAX_SILENCE`, or there is none.
pub fn is_silent(last: Option<Timestamp>, now: Timestamp) -> bool {
    last.is_none_or(|last| now.duration_since(last) > MAX_SILENCE)
}

/// Sets the state of turns without an end, as of `now`.
pub fn settle(turns: &mut [Turn], last: Option<Timestamp>, now: Timestamp) {
    let silent = is_silent(last, now);
    for turn in turns.iter_mut().filter(|turn| turn.state == TurnState::Running) {
        if turn.number == 0 {
            turn.state = TurnState::Completed;
        } else if silent {
            turn.state = TurnState::Unknown;
        }
    }
}

impl Summary {
    /// `Live` while the last turn is running, otherwise the recorded state.
    pub fn state(&self, now: Timestamp) -> SessionState {
        let recorded = self.session.state;
        let last = self.ended.or(self.started);
        match recorded {
            SessionState::Ended => recorded,
            SessionState::Live | SessionState::Idle if !self.running || is_silent(last, now) => {
                SessionState::Idle
            }
            SessionState::Live | SessionState::Idle => SessionState::Live,
        }
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
