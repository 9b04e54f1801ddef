//! The replay of the open session: its keys, its clock, and jumps on the timeline.

// Each screen handles some of the keys and actions and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use crossterm::event::{KeyCode, KeyEvent};
use unspool_query::window::{Anchor, Position};

use super::{Effect, State};
use crate::replay::ReplayRange;

impl State {
    pub(super) fn toggle_replay(&mut self) -> Vec<Effect> {
        match &mut self.replay {
            Some(replay) => {
                replay.pause_or_play(self.now);
                Vec::new()
            }
            None => self.start_replay(ReplayRange::Session),
        }
    }

    /// Replays the turn that the cursor is in.
    pub(super) fn replay_turn(&mut self) -> Vec<Effect> {
        let Some(transcript) = self.transcript() else { return Vec::new() };
        let chosen = transcript.chosen().and_then(|at| transcript.entries.get(at));
        match chosen.map(|entry| entry.position.turn) {
            Some(turn) => self.start_replay(ReplayRange::Turn(turn)),
            None => Vec::new(),
        }
    }

    pub(super) fn play(&mut self) {
        let now = self.now;
        let Some(mut replay) = self.replay.take() else { return };
        match self.transcript_mut().filter(|held| held.until.is_some()) {
            Some(transcript) if transcript.is_loaded() => replay.play(transcript, now),
            Some(_) | None => {}
        }
        self.replay = Some(replay);
    }

    /// Handles the keys that have another meaning during a replay. `None` for all others.
    pub(super) fn press_in_replay(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let now = self.now;
        let mut replay = self.replay.take()?;
        let transcript = self.transcript_mut().filter(|held| held.until.is_some());
        let Some(transcript) = transcript else {
            self.replay = Some(replay);
            return None;
        };
        let mut handled = true;
        let mut tenth = None;
        match key.code {
            KeyCode::Char(' ' | 'p') => replay.pause_or_play(now),
            KeyCode::Char('.' | 'l') | KeyCode::Right => replay.step(transcript, now),
            KeyCode::Char(',' | 'h') | KeyCode::Left => replay.step_back(transcript, now),
            KeyCode::Char('+' | '>') => replay.faster(now),
            KeyCode::Char('-' | '<') => replay.slower(now),
            KeyCode::Char(digit @ '0'..='9') => tenth = digit.to_digit(10),
            _ => handled = false,
        }
        self.replay = Some(replay);
        match tenth {
            Some(tenth) => Some(self.jump_in_replay(u64::from(tenth), 10)),
            None => handled.then(Vec::new),
        }
    }

    /// Jumps to a point of the timeline: by time if that point is loaded, otherwise by turn number.
    pub(super) fn jump_in_replay(&mut self, part: u64, whole: u64) -> Vec<Effect> {
        let now = self.now;
        let Some(mut replay) = self.replay.take() else { return Vec::new() };
        let share = part as f64 / whole.max(1) as f64;
        let held = self.transcript_mut().is_some_and(|held| replay.jump(held, share, now));
        let range = replay.range();
        self.replay = Some(replay);
        // One turn has no others to jump to.
        if held || range != ReplayRange::Session {
            return Vec::new();
        }
        let Some(transcript) = self.transcript_mut() else { return Vec::new() };
        let turns = transcript.session_row.as_ref().map_or(0, |session_row| session_row.turns);
        let turn = u32::try_from(turns.saturating_mul(part) / whole.max(1)).unwrap_or(0);
        let place = Position::start_of(turn);
        transcript.until = Some(place);
        if let Some(replay) = &mut self.replay {
            replay.reset_clock(now);
        }
        let effect =
            self.query_from_transcript(|held| Some(held.request_window(Anchor::From(place))));
        effect.into_iter().collect()
    }
}
