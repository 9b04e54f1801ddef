//! Replays a session, or one turn of it, with its own timing (R-001-32, R-002-42, R-X-15): entries
//! appear at their recorded times. It reveals the stored session with its own ids and times; no
//! events are emitted again.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::entry::Entry;
use crate::scroll::EntryHeights;
use crate::transcript::TranscriptPane;

pub const SPEEDS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// The time between two updates while playing.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);

/// What is replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayRange {
    Session,
    /// One turn, by its number. Earlier turns stay above it, later ones are not revealed.
    Turn(u32),
}

impl ReplayRange {
    /// The turn at which it starts.
    pub fn first_turn(self) -> u32 {
        match self {
            ReplayRange::Session => 0,
            ReplayRange::Turn(number) => number,
        }
    }

    fn contains(self, entry: &Entry) -> bool {
        match self {
            ReplayRange::Session => true,
            ReplayRange::Turn(number) => entry.position.turn == number,
        }
    }
}

pub struct Replay {
    pub playing: bool,
    range: ReplayRange,
    /// A factor of the recorded speed.
    pub speed: u32,
    /// The session time at `since`.
    pub clock: Option<Timestamp>,
    since: Instant,
}

impl Replay {
    pub fn new(range: ReplayRange, now: Instant) -> Replay {
        Replay { playing: true, range, speed: 1, clock: None, since: now }
    }

    pub fn range(&self) -> ReplayRange {
        self.range
    }

    /// The next entry to reveal.
    fn next<'t>(&self, transcript: &'t TranscriptPane) -> Option<&'t Entry> {
        transcript.entries.get(transcript.count()).filter(|entry| self.range.contains(entry))
    }

    /// True if everything is revealed.
    fn is_done(&self, transcript: &TranscriptPane) -> bool {
        let later = transcript.entries.get(transcript.count());
        transcript.is_loaded() && (later.is_some() || transcript.has_end())
    }

    pub fn next_frame_at(&self, now: Instant) -> Option<Instant> {
        self.playing.then(|| now + FRAME_INTERVAL)
    }

    /// The session time now.
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

    /// Reveals the entries whose time has come.
    pub fn play(&mut self, transcript: &mut TranscriptPane, now: Instant) {
        if !self.playing {
            return;
        }
        while let Some(next) = self.next(transcript) {
            if let Some(at) = next.time() {
                match self.time(now) {
                    None => self.set_clock(Some(at), now),
                    Some(time) if at > time => return,
                    Some(_) => {}
                }
            }
            transcript.until = Some(next.position);
        }
        if self.is_done(transcript) {
            self.set_clock(self.time(now), now);
            self.playing = false;
        }
        transcript.settle();
    }

    /// Reveals the next visible entry, whatever its time, and pauses.
    pub fn step(&mut self, transcript: &mut TranscriptPane, now: Instant) {
        self.playing = false;
        while let Some(next) = self.next(transcript) {
            let (time, position) = (next.time(), next.position);
            let at = transcript.count();
            transcript.until = Some(position);
            self.set_clock(time.or(self.clock), now);
            if transcript.height(at) > 0 && matches!(steppable(transcript, at), Steppable::Yes) {
                break;
            }
        }
        transcript.scroll.following = true;
        transcript.settle();
    }

    pub fn step_back(&mut self, transcript: &mut TranscriptPane, now: Instant) {
        self.playing = false;
        let last = transcript.count().saturating_sub(1);
        let before =
            (0..last).rev().find(|at| matches!(steppable(transcript, *at), Steppable::Yes));
        let before = before.and_then(|at| transcript.entries.get(at));
        let Some(before) = before.filter(|entry| self.range.contains(entry)) else { return };
        let (time, position) = (before.time(), before.position);
        transcript.until = Some(position);
        self.set_clock(time.or(self.clock), now);
        transcript.scroll.following = true;
        transcript.settle();
    }

    /// The progress by session time, from 0 to 1.
    pub fn progress(&self, transcript: &TranscriptPane, now: Instant) -> f64 {
        let (Some((from, to)), Some(time)) = (self.span(transcript), self.time(now)) else {
            return 0.0;
        };
        let whole = to.duration_since(from).as_secs_f64();
        let seen = time.duration_since(from).as_secs_f64();
        if whole > 0.0 { (seen / whole).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Jumps to a fraction of the session time. False if that point is not loaded.
    pub fn jump(&mut self, transcript: &mut TranscriptPane, part: f64, now: Instant) -> bool {
        let Some((from, to)) = self.span(transcript) else { return false };
        let whole = to.duration_since(from).as_secs_f64();
        let Ok(passed) = SignedDuration::try_from_secs_f64(whole * part) else { return false };
        let Ok(target) = from.checked_add(passed) else { return false };
        let times = || self.entries(transcript).filter_map(|entry| entry.time());
        let begun = times().next().is_some_and(|first| first <= target);
        let behind = times().any(|time| time >= target) || transcript.has_end();
        if !(begun && behind) {
            return false;
        }
        let came = |time: Option<Timestamp>| time.is_none_or(|time| time <= target);
        let last = self.entries(transcript).take_while(|entry| came(entry.time())).last();
        let Some(position) = last.map(|entry| entry.position) else { return false };
        transcript.until = Some(position);
        transcript.scroll.following = true;
        self.set_clock(Some(target), now);
        transcript.settle();
        true
    }

    /// The loaded entries that are replayed.
    fn entries<'t>(&self, transcript: &'t TranscriptPane) -> impl Iterator<Item = &'t Entry> {
        let range = self.range;
        transcript.entries.iter().filter(move |entry| range.contains(entry))
    }

    /// The start and end of what is replayed; of a turn, as far as it is loaded.
    fn span(&self, transcript: &TranscriptPane) -> Option<(Timestamp, Timestamp)> {
        match self.range {
            ReplayRange::Session => {
                let session_row = transcript.session_row.as_ref()?;
                session_row.started.zip(session_row.ended)
            }
            ReplayRange::Turn(_) => {
                let times = || self.entries(transcript).filter_map(Entry::time);
                times().min().zip(times().max())
            }
        }
    }

    /// After a jump to another window: the clock restarts at its first entry.
    pub fn reset_clock(&mut self, now: Instant) {
        self.set_clock(None, now);
    }
}

enum Steppable {
    Yes,
    No,
}

/// A step stops at parts and user text; headers and footers appear along with them.
fn steppable(transcript: &TranscriptPane, at: usize) -> Steppable {
    use crate::entry::EntryKey;
    match transcript.entries.get(at).map(|entry| entry.key) {
        Some(EntryKey::Item(_) | EntryKey::User(_)) => Steppable::Yes,
        Some(EntryKey::Head | EntryKey::Turn(_) | EntryKey::Foot(_)) | None => Steppable::No,
    }
}
