//! Replaying a session with its own timing (R-001-32, R-X-15): pieces come into sight when they came
//! into being. It is the stored session that is shown, with its own ids and times; nothing is told
//! anew.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::scroll::Pieces;
use crate::transcript::Transcript;

pub const SPEEDS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// While it plays, it is looked at so often.
const PACE: Duration = Duration::from_millis(33);

pub struct Replay {
    pub playing: bool,
    /// Times as fast as it was.
    pub speed: u32,
    /// The time in the session, as of `since`.
    pub clock: Option<Timestamp>,
    since: Instant,
}

impl Replay {
    pub fn new(now: Instant) -> Replay {
        Replay { playing: true, speed: 1, clock: None, since: now }
    }

    pub fn next_at(&self, now: Instant) -> Option<Instant> {
        self.playing.then(|| now + PACE)
    }

    /// The time in the session now.
    pub fn time(&self, now: Instant) -> Option<Timestamp> {
        let clock = self.clock?;
        if !self.playing {
            return Some(clock);
        }
        let passed = now.saturating_duration_since(self.since).saturating_mul(self.speed);
        SignedDuration::try_from(passed).ok().and_then(|passed| clock.checked_add(passed).ok())
    }

    fn set_clock(&mut self, clock: Option<Timestamp>, now: Instant) {
        (self.clock, self.since) = (clock, now);
    }

    pub fn pause_or_play(&mut self, now: Instant) {
        self.set_clock(self.time(now), now);
        self.playing = !self.playing;
    }

    pub fn faster(&mut self, now: Instant) {
        self.set_clock(self.time(now), now);
        self.speed = SPEEDS.into_iter().find(|speed| *speed > self.speed).unwrap_or(self.speed);
    }

    pub fn slower(&mut self, now: Instant) {
        self.set_clock(self.time(now), now);
        let slower = SPEEDS.into_iter().rev().find(|speed| *speed < self.speed);
        self.speed = slower.unwrap_or(self.speed);
    }

    /// Shows what has come into being meanwhile.
    pub fn play(&mut self, transcript: &mut Transcript, now: Instant) {
        if !self.playing {
            return;
        }
        while let Some(next) = transcript.pieces.get(transcript.count()) {
            if let Some(at) = next.time() {
                match self.time(now) {
                    None => self.set_clock(Some(at), now),
                    Some(time) if at > time => return,
                    Some(_) => {}
                }
            }
            transcript.until = Some(next.position);
        }
        if transcript.has_end() && transcript.is_loaded() {
            self.set_clock(self.time(now), now);
            self.playing = false;
        }
        transcript.settle();
    }

    /// The next piece that somebody sees, whenever it came.
    pub fn step(&mut self, transcript: &mut Transcript, now: Instant) {
        self.playing = false;
        while let Some(next) = transcript.pieces.get(transcript.count()) {
            let (time, position) = (next.time(), next.position);
            let at = transcript.count();
            transcript.until = Some(position);
            self.set_clock(time.or(self.clock), now);
            if transcript.height(at) > 0 && matches!(next_kind(transcript, at), Shown::Yes) {
                break;
            }
        }
        transcript.scroll.following = true;
        transcript.settle();
    }

    pub fn step_back(&mut self, transcript: &mut Transcript, now: Instant) {
        self.playing = false;
        let last = transcript.count().saturating_sub(1);
        let before = (0..last).rev().find(|at| matches!(next_kind(transcript, *at), Shown::Yes));
        let Some(before) = before.and_then(|at| transcript.pieces.get(at)) else { return };
        let (time, position) = (before.time(), before.position);
        transcript.until = Some(position);
        self.set_clock(time.or(self.clock), now);
        transcript.scroll.following = true;
        transcript.settle();
    }

    /// Another place was loaded: time goes on from there.
    pub fn jumped(&mut self, now: Instant) {
        self.set_clock(None, now);
    }
}

enum Shown {
    Yes,
    Along,
}

/// Heads and feet come along with what they belong to.
fn next_kind(transcript: &Transcript, at: usize) -> Shown {
    use crate::piece::Key;
    match transcript.pieces.get(at).map(|piece| piece.key) {
        Some(Key::Item(_) | Key::User(_)) => Shown::Yes,
        Some(Key::Head | Key::Turn(_) | Key::Foot(_)) | None => Shown::Along,
    }
}
