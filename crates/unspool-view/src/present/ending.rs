//! How a session ended that is not live, where it did not complete: a list must not let it look done.

use unspool_model::session::{SessionState, TurnState};

use crate::block::Tone;

/// None for a session that is live or complete.
pub fn ending(state: SessionState, last_turn: Option<TurnState>) -> Option<(&'static str, Tone)> {
    match last_turn? {
        _ if state == SessionState::Live => None,
        TurnState::Completed => None,
        TurnState::Failed => Some(("failed", Tone::Failed)),
        TurnState::Interrupted => Some(("interrupted", Tone::Interrupted)),
        TurnState::Running | TurnState::Unknown => Some(("no end recorded", Tone::Muted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_did_not_complete_says_so() {
        let text = |state, last_turn| ending(state, last_turn).map(|(text, _)| text);
        assert_eq!(text(SessionState::Live, Some(TurnState::Running)), None);
        assert_eq!(text(SessionState::Idle, Some(TurnState::Completed)), None);
        assert_eq!(text(SessionState::Ended, None), None);
        assert_eq!(text(SessionState::Idle, Some(TurnState::Running)), Some("no end recorded"));
        assert_eq!(text(SessionState::Ended, Some(TurnState::Interrupted)), Some("interrupted"));
        assert_eq!(text(SessionState::Idle, Some(TurnState::Failed)), Some("failed"));
    }
}
