//! Whether something goes on. No source says that an agent was killed: a turn without an end in a
//! session that has been silent for long is not going on. Derived whenever it is asked, and never
//! stored.

use jiff::{SignedDuration, Timestamp};

use crate::session::{SessionState, Turn, TurnState};
use crate::summary::Summary;

/// So long may a session be silent that goes on.
pub const SILENCE: SignedDuration = SignedDuration::from_mins(30);

/// Whether nothing has been heard for too long.
pub fn is_silent(last: Option<Timestamp>, now: Timestamp) -> bool {
    last.is_none_or(|last| now.duration_since(last) > SILENCE)
}

/// Says of turns without an end whether they go on.
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
    /// Live while its last turn goes on, else what was told.
    pub fn state(&self, now: Timestamp) -> SessionState {
        let told = self.session.state;
        let last = self.ended.or(self.started);
        match told {
            SessionState::Ended => told,
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
