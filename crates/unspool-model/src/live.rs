//! Whether a session or turn is running. No source records that an agent was killed. A recorder
//! notices it (`EndReason::Lost`); without one, a turn without an end in a session that was silent
//! for too long does not count as running. Computed on each read, never stored.

use jiff::{SignedDuration, Timestamp};

use crate::session::{SessionState, Turn, TurnState};
use crate::summary::Summary;

/// A session that was silent for longer does not count as running.
pub const MAX_SILENCE: SignedDuration = SignedDuration::from_mins(30);

/// True if the last record is older than `MAX_SILENCE`, or there is none.
fn is_silent(last: Option<Timestamp>, now: Timestamp) -> bool {
    last.is_none_or(|last| now.duration_since(last) > MAX_SILENCE)
}

impl Summary {
    /// The time of the last record. A session whose parts have no times has at least its start. The
    /// store's index `session_last_heard` is the same expression in SQL.
    pub fn last_heard(&self) -> Option<Timestamp> {
        self.ended.or(self.started)
    }

    /// True if the last turn has no end.
    pub fn is_running(&self) -> bool {
        self.last_turn == Some(TurnState::Running)
    }

    /// Sets the state of the session's turns without an end, as of `now`.
    pub fn settle(&self, turns: &mut [Turn], now: Timestamp) {
        let silent = is_silent(self.last_heard(), now);
        for turn in turns.iter_mut().filter(|turn| turn.state == TurnState::Running) {
            if turn.number == 0 {
                turn.state = TurnState::Completed;
            } else if silent {
                turn.state = TurnState::Unknown;
            }
        }
    }

    /// `Live` while the last turn is running, otherwise the recorded state.
    pub fn state(&self, now: Timestamp) -> SessionState {
        let recorded = self.session.state;
        let silent = is_silent(self.last_heard(), now);
        match recorded {
            SessionState::Ended => recorded,
            SessionState::Live | SessionState::Idle if !self.is_running() || silent => {
                SessionState::Idle
            }
            SessionState::Live | SessionState::Idle => SessionState::Live,
        }
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
