//! Releasing closed turns from memory, and restoring them from the store's rows when a late event
//! needs them.

mod stored_turn;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::id::TurnId;
use crate::part::Place;
use crate::provenance::{Feed, Name};
use crate::session::{Session, SessionState, Transcript, Turn, TurnState};

use super::fold::TurnFold;
use super::order::{Item, arrange};
use super::{Assembler, OtherSource};
use stored_turn::fold_turn;
pub(super) use stored_turn::skeleton;

/// A turn that stays in the store: its head without parts and steps, and the digests of all global
/// names of its parts and steps.
pub struct TurnStub {
    pub turn: Turn,
    pub names: Vec<u64>,
}

impl Turn {
    /// The place of each step.
    pub fn step_places(&self) -> Vec<Place> {
        let items: Vec<Item<()>> = self.steps.iter().map(|step| Item::new(step.at, None)).collect();
        let mut places = vec![Place::default(); items.len()];
        for (step, place) in arrange(&items) {
            places[step] = place;
        }
        places
    }

    /// The digests of all global names of its parts, and of its steps from this index on.
    pub fn name_digests(&self, steps_from: usize) -> Vec<u64> {
        let parts = self.parts.iter().flat_map(|part| &part.origin.names);
        let steps = self.steps.iter().skip(steps_from).map(|step| &step.name);
        let names = parts.chain(steps).filter(|name| !name.is_local());
        names.map(Name::digest).collect()
    }
}

/// The last event applied from one source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Cursor {
    #[serde(rename = "telling")]
    pub feed: Feed,
    pub source: u16,
    pub offset: u64,
    pub nth: u32,
}

impl Assembler {
    /// Resumes from a complete stored session.
    pub fn resume(transcript: &Transcript) -> Assembler {
        let mut assembler = Assembler::new(transcript.session.id);
        assembler.facts = transcript.session.facts.clone();
        assembler.state = transcript.session.state;
        for turn in &transcript.turns {
            assembler.restore(turn);
        }
        assembler.restore_end(transcript.turns.iter().filter_map(|turn| turn.started).max());
        assembler.find_disorder();
        assembler
    }

    /// Resumes from a stored session without loading its turns. The assembler knows which names
    /// lead to which turn and requests a turn ([`Assembler::needs`]) when an event refers to it.
    /// Turns that were not settled must be restored before the first event.
    pub fn resume_from_stubs(
        session: &Session,
        outlines: impl IntoIterator<Item = TurnStub>,
    ) -> Assembler {
        let mut assembler = Assembler::new(session.id);
        assembler.facts = session.facts.clone();
        assembler.state = session.state;
        let mut newest = None;
        for TurnStub { turn, names } in outlines {
            let at = assembler.turns.len();
            newest = newest.max(turn.started);
            let mut fold = fold_turn(&turn);
            fold.stored = true;
            for name in &fold.origin.names {
                assembler.index.turns.insert(name, at);
            }
            let turn = super::names::small(at);
            assembler.index.stored.extend(names.into_iter().map(|name| (name, turn)));
            assembler.catch_up(at, &fold);
            assembler.turn_index.insert(fold.id, at);
            assembler.turns.push(fold);
        }
        assembler.restore_end(newest);
        assembler.find_disorder();
        assembler
    }

    /// Archives of earlier builds have the state of a session without the time of its end.
    fn restore_end(&mut self, newest_turn: Option<Timestamp>) {
        self.newest_turn_at = newest_turn;
        if self.state == SessionState::Ended && self.facts.ended_at.is_none() {
            self.facts.ended_at = newest_turn.or(Some(Timestamp::MAX));
        }
    }

    /// The cursor of each source of each feed: the offset of the record, and the index of the
    /// event in it.
    pub fn cursors(&self) -> impl Iterator<Item = Cursor> + '_ {
        self.cursors.iter().map(|(&(feed, source), &(offset, nth))| Cursor {
            feed,
            source,
            offset,
            nth,
        })
    }

    /// The cursors that moved since the last call: what a writer has to store.
    pub fn take_moved_cursors(&mut self) -> Vec<Cursor> {
        let moved = std::mem::take(&mut self.moved_cursors).into_iter();
        let cursor = |(feed, source)| {
            let (offset, nth) = self.cursors.get(&(feed, source)).copied()?;
            Some(Cursor { feed, source, offset, nth })
        };
        moved.filter_map(cursor).collect()
    }

    /// Sets the cursor of a source.
    pub fn set_cursor(&mut self, cursor: Cursor) {
        let Cursor { feed, source, offset, nth } = cursor;
        self.cursors.insert((feed, source), (offset, nth));
        self.moved_cursors.insert((feed, source));
    }

    /// Resumes a source that stopped in this turn.
    pub fn resume_at(&mut self, feed: Feed, source: u16, turn: &Name) {
        let Some(turn) = self.index.turns.get(turn) else { return };
        let start = self.turns[turn].origin.source_starts[feed.index()];
        self.source_starts.extend(start.map(|start| ((feed, source), start)));
        let track = &mut self.tracks[feed.index()];
        if Some(turn) == track.turn {
            track.source = Some(source);
        } else {
            let replays = start == track.latest_start;
            track.others.insert(source, OtherSource { turn: Some(turn), replays });
        }
    }

    /// The feed's latest turn and a name of it, if it runs and is not the one with this name: a log
    /// that was rewritten and whose last turn has this name no longer has it.
    pub fn withdrawn_turn(&self, feed: Feed, last: &Name) -> Option<(TurnId, Name)> {
        let turn = &self.turns[self.tracks[feed.index()].turn?];
        let is_gone = turn.state == TurnState::Running && !turn.origin.names.contains(last);
        let name = turn.origin.names.iter().min().filter(|_| is_gone)?;
        Some((turn.id, name.clone()))
    }

    /// The turns that must be restored before this event can be applied.
    pub fn needs(&self, event: &Event) -> Vec<TurnId> {
        let mut needed: Vec<TurnId> = event
            .kind
            .names()
            .iter()
            .chain(&event.turn)
            .flat_map(|name| self.turns_of(name))
            .map(|turn| &self.turns[turn])
            .chain(self.turn_without_name(event).map(|turn| &self.turns[turn]))
            .filter(|turn| turn.stored)
            .map(|turn| turn.id)
            .collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// The turns that a name leads to.
    fn turns_of(&self, name: &Name) -> impl Iterator<Item = usize> {
        let turn = self.index.turns.get(name.of_turn());
        let step = self.index.steps.get(name).map(|step| step.0);
        let part = self.index.parts.get(name).map(|part| part.0);
        let stored = |digest: u64| self.index.stored.get(&digest).map(|turn| *turn as usize);
        let stored = stored(name.digest()).or_else(|| stored(name.shared_digest()));
        [turn, step, part, stored].into_iter().flatten()
    }

    /// The turn of an event that names none.
    fn turn_without_name(&self, event: &Event) -> Option<usize> {
        let preamble = || self.index.turns.get(&Name::Preamble);
        self.current_turn(event.feed, event.evidence.source, event.at).or_else(preamble)
    }

    /// Releases a settled turn: drops its parts and keeps its names. Returns whether it did.
    pub fn release(&mut self, id: TurnId) -> bool {
        let Some(at) = self.find_turn(id).filter(|at| self.can_release(*at)) else { return false };
        let turn = &mut self.turns[at];
        turn.parts = Vec::new();
        turn.steps = Vec::new();
        turn.lookups = Default::default();
        (turn.order, turn.step_order) = (None, None);
        turn.stored = true;
        true
    }

    /// The turns that feeds are in, or whose prose they may extend. They are not settled, and may
    /// become so without a change.
    pub fn turns_in_use(&self) -> impl Iterator<Item = TurnId> + '_ {
        let current = self.tracks.iter().filter_map(|track| track.turn);
        let growing = self.tracks.iter().flat_map(|track| track.open.iter().chain(&track.nameless));
        current.chain(growing.map(|at| at.0)).map(|turn| self.turns[turn].id)
    }

    /// True if the session has no turns.
    pub fn has_no_turns(&self) -> bool {
        self.turn_index.is_empty()
    }

    /// True if a turn can be released: nothing in it is open or running.
    pub fn is_settled(&self, id: TurnId) -> bool {
        self.find_turn(id).is_some_and(|at| self.can_release(at))
    }

    fn find_turn(&self, id: TurnId) -> Option<usize> {
        self.turn_index.get(&id).copied()
    }

    fn can_release(&self, at: usize) -> bool {
        if self.tracks.iter().any(|track| track.turn == Some(at)) {
            return false;
        }
        let turn = &self.turns[at];
        // A feed may still extend a block that it has not ended.
        let reported =
            self.tracks.iter().flat_map(|track| track.open.iter().chain(&track.nameless));
        let growing = reported.into_iter().any(|open| open.0 == at);
        turn.state != TurnState::Running && !turn.lookups.sets.has_busy_agents() && !growing
    }

    /// Restores a turn from its stored form.
    pub fn restore(&mut self, turn: &Turn) {
        let existing = self.find_turn(turn.id);
        if existing.is_some_and(|at| !self.turns[at].stored) {
            return;
        }
        let at = existing.unwrap_or(self.turns.len());
        let fold = fold_turn(turn);
        for (part, held) in fold.parts.iter().enumerate() {
            for name in &held.origin.names {
                if !name.is_local() {
                    self.index.parts.insert(name, (at, part));
                }
            }
        }
        for (step, held) in fold.steps.iter().enumerate() {
            if !held.name.is_local() {
                self.index.steps.insert(&held.name, (at, step));
            }
        }
        for name in &fold.origin.names {
            self.index.turns.insert(name, at);
        }
        if existing.is_none() {
            self.catch_up(at, &fold);
            self.turn_order = None;
        }
        self.resume_prose(at, &fold);
        if at == self.turns.len() {
            self.turn_index.insert(fold.id, at);
            self.turns.push(fold);
        } else {
            self.turns[at] = fold;
        }
        self.recount_turn(at);
        self.settle_runs();
    }

    /// Each feed continues in the last turn that it reached.
    fn catch_up(&mut self, at: usize, turn: &TurnFold) {
        self.last_number = self.last_number.max(turn.number);
        for feed in Feed::ALL {
            let Some(position) = turn.origin.at.of(feed) else { continue };
            let track = &mut self.tracks[feed.index()];
            track.latest_start = track.latest_start.max(turn.origin.source_starts[feed.index()]);
            if position >= track.turns {
                track.turns = position + 1;
                track.turn = Some(at);
            }
        }
    }

    /// Re-registers open prose. Released turns have none.
    fn resume_prose(&mut self, at: usize, turn: &TurnFold) {
        for (part, fold) in turn.parts.iter().enumerate() {
            let Some(prose) = &fold.prose else { continue };
            let track = &mut self.tracks[prose.owner.index()];
            if fold.origin.names.iter().all(Name::is_local) {
                track.nameless = Some((at, part));
            } else {
                track.open.push((at, part));
            }
        }
    }
}
