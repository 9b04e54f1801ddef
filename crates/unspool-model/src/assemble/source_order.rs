//! The order of a feed's sources. A session that was resumed may have several files of one feed.
//! Which of them is read first must not matter: they follow each other in the order of their first
//! turns, and each source has a current turn of its own.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::change::Change;
use crate::provenance::{Feed, Positions};
use crate::session::TurnState;

use super::{Assembler, Head, OtherSource};

impl Assembler {
    /// The turn of an event that names none.
    pub(super) fn current_turn(
        &self,
        feed: Feed,
        source: u16,
        at: Option<Timestamp>,
    ) -> Option<usize> {
        match self.other_source(feed, source) {
            Some(other) if other.turn.is_some() => other.turn,
            // The turns of a later file are not this one's.
            Some(_) if self.begins_earlier(feed, source, at) => None,
            _ => self.tracks[feed.index()].turn,
        }
    }

    /// The turn that a new turn of this source follows.
    pub(super) fn previous_turn(&self, head: &Head) -> Option<usize> {
        let (feed, source) = (head.feed, head.evidence.source);
        match self.other_source(feed, source) {
            Some(other) if other.replays && !self.begins_earlier(feed, source, head.at) => {
                self.tracks[feed.index()].turn
            }
            _ => self.current_turn(feed, source, head.at),
        }
    }

    /// True if the source repeats what its feed already has.
    pub(super) fn replays(&self, head: &Head) -> bool {
        self.other_source(head.feed, head.evidence.source).is_some_and(|other| other.replays)
    }

    /// True if the source is in a turn that it repeats.
    pub(super) fn repeats_turn(&self, head: &Head) -> bool {
        let other = self.other_source(head.feed, head.evidence.source);
        other.is_some_and(|other| other.replays && other.turn.is_some())
    }

    fn other_source(&self, feed: Feed, source: u16) -> Option<&OtherSource> {
        self.tracks[feed.index()].others.get(&source)
    }

    /// True if the source began before another one that has turns. `at` is the time of its event,
    /// if it has none yet.
    fn begins_earlier(&self, feed: Feed, source: u16, at: Option<Timestamp>) -> bool {
        let start = self.source_starts.get(&(feed, source)).copied();
        let start = start.or(at.map(Timestamp::as_millisecond));
        start.is_some() && start < self.tracks[feed.index()].latest_start
    }

    /// The first turn of a further source says when it began, also if it repeats that turn: a file
    /// that is read again begins where it did before.
    pub(super) fn note_source_start(&mut self, head: &Head) {
        let (feed, source) = (head.feed, head.evidence.source);
        if let Some(at) = head.at
            && self.other_source(feed, source).is_some()
        {
            self.source_starts.entry((feed, source)).or_insert(at.as_millisecond());
        }
    }

    /// True if a later file placed the turn only because it has a late record of it.
    pub(super) fn is_from_earlier_file(&self, head: &Head, turn: usize) -> bool {
        let (feed, source) = (head.feed, head.evidence.source);
        let own = self.source_starts.get(&(feed, source)).copied();
        let placed = self.turns[turn].origin.source_starts[feed.index()];
        self.other_source(feed, source).is_some() && own.is_some() && own < placed
    }

    /// True if an earlier file has placed the turn.
    pub(super) fn is_from_later_file(&self, head: &Head, turn: usize) -> bool {
        let own = self.source_starts.get(&(head.feed, head.evidence.source)).copied();
        let placed = self.turns[turn].origin.source_starts[head.feed.index()];
        placed.is_some() && placed < own
    }

    /// The source moves to a turn that it has just placed. The furthest source is the one that
    /// began last.
    pub(super) fn advance_source(&mut self, head: &Head, turn: usize) {
        let (feed, source) = (head.feed, head.evidence.source);
        let other = self.other_source(feed, source).is_some();
        let earlier = other && self.begins_earlier(feed, source, head.at);
        let track = &mut self.tracks[feed.index()];
        let mut start = self.source_starts.get(&(feed, source)).copied();
        if start.is_none() && !other {
            // A source that was resumed goes on where the feed is.
            start = track.latest_start;
        }
        start = start.or(head.at.map(Timestamp::as_millisecond));
        self.source_starts.extend(start.map(|start| ((feed, source), start)));
        self.turns[turn].origin.source_starts[feed.index()] = start;
        track.out_of_order |= earlier;
        track.latest_start = track.latest_start.max(start);
        if earlier {
            track.others.insert(source, OtherSource { turn: Some(turn), replays: false });
            return;
        }
        if other {
            track.others.remove(&source);
            if let Some(furthest) = track.source.replace(source) {
                track.others.insert(furthest, OtherSource { turn: track.turn, replays: false });
            }
        }
        track.turn = Some(turn);
    }

    /// The source starts a turn that its feed already has. A source never moves back, unless it
    /// repeats the feed.
    pub(super) fn return_to(&mut self, head: &Head, turn: usize) {
        let source = head.evidence.source;
        let at = |turn: usize| self.turns[turn].origin.at.of(head.feed);
        let forward = |from: Option<usize>| from.is_none_or(|from| at(from) <= at(turn));
        let track = &self.tracks[head.feed.index()];
        let own = track.others.get(&source);
        let held = own.map_or(track.turn, |own| own.turn);
        let moves = own.is_some_and(|own| own.replays) || forward(held);
        let reaches_end = forward(track.turn);
        let track = &mut self.tracks[head.feed.index()];
        if reaches_end {
            track.turn = Some(turn);
        }
        if let Some(own) = track.others.get_mut(&source).filter(|_| moves) {
            own.turn = Some(turn);
        }
    }

    /// True if a file goes on in its last turn while a later file has turns already. That turn is
    /// superseded only when the file ends.
    pub(super) fn is_growing_before_end(&mut self, head: &Head, turn: usize) -> bool {
        let other = self.other_source(head.feed, head.evidence.source);
        let growing = other.is_some_and(|other| !other.replays && other.turn == Some(turn));
        self.tracks[head.feed.index()].out_of_order |= growing;
        growing
    }

    /// Finds feeds whose turns are stored out of order: the recorder was killed after it had read a
    /// file and before it called `order_sources`.
    pub(super) fn find_disorder(&mut self) {
        for feed in Feed::ALL {
            let mut starts: Vec<(u32, i64)> = Vec::new();
            for turn in self.turns.iter().filter(|turn| !turn.is_preamble()) {
                let start = turn.origin.source_starts[feed.index()];
                starts.extend(turn.origin.at.of(feed).zip(start));
            }
            starts.sort_unstable();
            let ordered = starts.is_sorted_by_key(|(_, start)| *start);
            self.tracks[feed.index()].out_of_order |= !ordered;
        }
    }

    /// Puts the turns of feeds whose files were read in another order than they were written into
    /// the order of the files. Takes time in proportion to the number of turns, so it is called
    /// once at the end of a file, not with each event.
    pub fn order_sources(&mut self) -> Vec<Change> {
        for feed in Feed::ALL {
            if std::mem::take(&mut self.tracks[feed.index()].out_of_order) {
                self.order_sources_of(feed);
            }
        }
        self.recount();
        self.forget_emitted();
        std::mem::take(&mut self.out)
    }

    fn order_sources_of(&mut self, feed: Feed) {
        let placed = |turn: &usize| self.turns[*turn].origin.at.of(feed).is_some();
        let mut turns: Vec<usize> = (0..self.turns.len()).filter(placed).collect();
        turns.sort_by_key(|turn| {
            let origin = &self.turns[*turn].origin;
            let start = origin.source_starts[feed.index()];
            // A file without times keeps its place after those with times.
            (self.turns[*turn].is_preamble(), Reverse(start.is_some()), start, origin.at.of(feed))
        });
        // The preamble has no number; it stays first.
        let preamble = turns.iter().filter(|turn| self.turns[**turn].is_preamble()).count();
        turns.rotate_right(preamble);
        for (position, turn) in (0..).zip(&turns) {
            let Positions(at) = &mut self.turns[*turn].origin.at;
            if at[feed.index()].replace(position) != Some(position) {
                self.emit_turn_origin(*turn);
            }
        }
        let track = &mut self.tracks[feed.index()];
        track.turns = turns.len() as u32;
        track.turn = turns.last().copied();
        self.turn_order = None;
        self.number_all_turns();
        // A turn that another one follows is over.
        turns.pop();
        for turn in turns {
            let fold = &self.turns[turn];
            if !fold.stored && fold.state == TurnState::Running {
                self.supersede(feed, turn);
            }
        }
    }
}
