//! Seeking: from prompt to prompt, error to error, edit to edit. A seek stops at every landmark,
//! also at each of several inside one reasoning block, which it opens. What is not loaded is sought
//! in the archive.

use unspool_model::id::PartId;
use unspool_model::landmark::Landmark;
use unspool_model::part::Place;
use unspool_query::reader::Query;
use unspool_query::window::{Anchor, PartFilter, Position, Size};
use unspool_view::present::Item;

use super::navigation::Direction;
use super::{LoadReason, LoadRequest, TranscriptPane};
use crate::entry::{EntryContent, EntryKey, FoldState};
use crate::scroll::{EntryHeights, ScrollPosition};

/// What a seek stops at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeekTarget {
    Prompt,
    Part(Landmark),
}

/// Parts that are not loaded, directly before a stop.
struct Gap {
    stop: Stop,
    /// The loaded parts on both sides.
    before: Position,
    after: Position,
}

/// An entry, or a part inside the entry of a reasoning block.
type Stop = (usize, Option<usize>);

impl TranscriptPane {
    /// Goes to the next prompt, error or edit, loading beyond the window if needed.
    pub fn seek(&mut self, target: SeekTarget, direction: Direction) -> Option<LoadRequest> {
        match target {
            SeekTarget::Prompt => self.seek_prompt(direction),
            SeekTarget::Part(landmark) => self.seek_landmark(landmark, direction),
        }
    }

    fn seek_prompt(&mut self, direction: Direction) -> Option<LoadRequest> {
        // Start at the top of the screen, wherever in the turn that is.
        let from = self.scroll.top.entry;
        let is_prompt = |at: &usize| {
            self.entries.get(*at).is_some_and(|entry| matches!(entry.key, EntryKey::Turn(_)))
        };
        let here = |at: &usize| *at == from && self.scroll.top.line > 1;
        let found = match direction {
            Direction::Backward => {
                (0..=from).rev().find(|at| is_prompt(at) && (*at < from || here(at)))
            }
            Direction::Forward => (from + 1..self.count()).find(is_prompt),
        };
        if let Some(at) = found {
            self.cursor = self.entries.get(at).map(|entry| entry.key);
            self.update_scroll(|scroll, me| scroll.show_at_top(me, me.view, at));
            return None;
        }
        let turn = match direction {
            Direction::Backward => {
                let edge = self.earlier?;
                if edge.place.0 <= 0 { edge.turn.saturating_sub(1) } else { edge.turn }
            }
            Direction::Forward => self.later?.turn.saturating_add(1),
        };
        Some(self.request_window(Anchor::From(Position::start_of(turn))))
    }

    fn seek_landmark(&mut self, landmark: Landmark, direction: Direction) -> Option<LoadRequest> {
        let from = self.current_stop()?;
        let stops = self.stops(landmark);
        let found = match direction {
            Direction::Backward => stops.iter().rev().find(|stop| **stop < from),
            Direction::Forward => stops.iter().find(|stop| **stop > from),
        };
        if let Some(edge) = self.first_gap(from, found.copied(), direction) {
            return Some(self.request_seek(landmark, edge, direction));
        }
        if let Some((at, part)) = found.copied() {
            self.stop_at(at, part);
            return None;
        }
        let edge = match direction {
            Direction::Backward => self.earlier,
            Direction::Forward => self.later,
        };
        let Some(edge) = edge else {
            self.seek_end = Some(nothing_further(landmark, direction, &stops, from));
            return None;
        };
        Some(self.request_seek(landmark, edge, direction))
    }

    /// The stops of a landmark in the loaded window, in order.
    fn stops(&self, landmark: Landmark) -> Vec<Stop> {
        let mut stops = Vec::new();
        for (at, entry) in self.entries.iter().enumerate().take(self.count()) {
            let EntryContent::Item(item) = &entry.content else { continue };
            match item {
                Item::Part(part) if part.landmarks.contains(&landmark) => stops.push((at, None)),
                Item::Part(_) => {}
                Item::Reasoning(block) => {
                    let parts = block.parts.iter().enumerate();
                    let found = parts.filter(|(_, part)| part.landmarks.contains(&landmark));
                    stops.extend(found.map(|(nth, _)| (at, Some(nth))));
                }
            }
        }
        stops
    }

    /// Where a seek starts: the chosen entry, or the part in it that the last seek stopped at.
    fn current_stop(&self) -> Option<Stop> {
        let at = self.chosen()?;
        let entry = self.entries.get(at)?;
        let EntryContent::Item(Item::Reasoning(block)) = &entry.content else {
            return Some((at, None));
        };
        let part = self.stopped_part(entry.key);
        let nth = part.and_then(|id| block.parts.iter().position(|part| part.id == id));
        Some((at, nth))
    }

    /// The part of an entry that the last seek stopped at.
    pub(crate) fn stopped_part(&self, entry: EntryKey) -> Option<PartId> {
        self.stopped_at.filter(|(key, _)| *key == entry).map(|(_, part)| part)
    }

    /// The place to search from if parts between two stops are not loaded.
    fn first_gap(&self, from: Stop, to: Option<Stop>, direction: Direction) -> Option<Position> {
        let is_between = |gap: Stop| match direction {
            Direction::Backward => gap <= from && to.is_none_or(|to| gap > to),
            Direction::Forward => gap > from && to.is_none_or(|to| gap <= to),
        };
        let mut gaps = self.gaps().into_iter().filter(|gap| is_between(gap.stop));
        match direction {
            Direction::Backward => gaps.next_back().map(|gap| gap.after),
            Direction::Forward => gaps.next().map(|gap| gap.before),
        }
    }

    /// Where parts are not loaded inside the window: at the start of its first turn and inside
    /// reasoning blocks.
    fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut last: Option<Position> = None;
        for (at, entry) in self.entries.iter().enumerate().take(self.count()) {
            let EntryContent::Item(item) = &entry.content else { continue };
            let turn = entry.position.turn;
            for (nth, part) in entry.parts().iter().enumerate() {
                let missing = match item {
                    Item::Part(part) => part.before,
                    Item::Reasoning(block) if nth == 0 => block.before + part.before,
                    Item::Reasoning(_) => part.before,
                };
                let after = Position { turn, place: part.place };
                if missing > 0 {
                    let of_turn = last.filter(|last| last.turn == turn);
                    let before = of_turn.unwrap_or(Position { turn, place: Place(-1) });
                    let stop = (at, (nth > 0).then_some(nth));
                    gaps.push(Gap { stop, before, after });
                }
                last = Some(after);
            }
        }
        gaps
    }

    fn stop_at(&mut self, at: usize, part: Option<usize>) {
        let Some(entry) = self.entries.get(at) else { return };
        let key = entry.key;
        self.cursor = Some(key);
        self.stopped_at = None;
        let mut line = 0;
        if let Some(nth) = part {
            self.stopped_at = entry.parts().get(nth).map(|part| (key, part.id));
            line = entry.line_of_part(nth, self.width);
            self.folds.insert(key, FoldState::Open);
        }
        self.show_with_context(ScrollPosition { entry: at, line });
    }

    fn request_seek(
        &mut self,
        landmark: Landmark,
        edge: Position,
        direction: Direction,
    ) -> LoadRequest {
        let filter = match landmark {
            Landmark::Error => PartFilter::Errors,
            Landmark::Edit => PartFilter::Edits,
        };
        let anchor = match direction {
            Direction::Backward => Anchor::Before(edge),
            Direction::Forward => Anchor::After(edge),
        };
        self.loading.clear();
        self.loading.insert(LoadReason::Seek(direction));
        let size = Size { parts: 1, block: 1, long: 0 };
        (
            LoadReason::Seek(direction),
            Query::Window { session: self.session, anchor, filter: Some(filter), size },
        )
    }
}

/// What a seek says at the end: `no edit below; 2 above`.
fn nothing_further(landmark: Landmark, direction: Direction, stops: &[Stop], from: Stop) -> String {
    let name = landmark.name();
    let (here, there) = match direction {
        Direction::Forward => ("below", "above"),
        Direction::Backward => ("above", "below"),
    };
    let others = stops.iter().filter(|stop| match direction {
        Direction::Forward => **stop < from,
        Direction::Backward => **stop > from,
    });
    match others.count() {
        0 => format!("no {name} {here}"),
        count => format!("no {name} {here}; {count} {there}"),
    }
}
