//! Splits a turn into pieces (parts and reasoning blocks) and selects those in a window.

use std::ops::Range;

use unspool_model::part::{Kind, Place};
use unspool_model::skeleton::Skeleton;
use unspool_view::call_groups::call_groups;
use unspool_view::present::{self, Item, TurnView};
use unspool_view::segment::{SegmentRange, segment_ranges};

use super::PartFilter;

/// A long reasoning block shows its first part and its last ones, this many in all.
pub const MAX_BLOCK_PARTS: usize = 40;

/// A window shows the beginning of a group of parallel calls, where its title is, if the group has
/// at most this many parts.
const MAX_GROUP_PARTS: usize = 40;

/// The pieces of a turn and the range of them that is selected.
pub struct TurnSlice {
    pub skeleton: Skeleton,
    pub pieces: Vec<SegmentRange>,
    pub selected: Range<usize>,
    /// A long block is shown around this place instead of at its end.
    pub around: Option<Place>,
    /// Show only this range of parts.
    pub filter: Option<Range<usize>>,
    /// Number of parts shown of a block.
    pub block: usize,
    /// The groups of parallel calls that a window shows from their beginning.
    groups: Vec<Range<usize>>,
}

/// Whether a range starts at the piece that contains a place or after it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    At,
    After,
}

impl TurnSlice {
    pub fn new(skeleton: Skeleton, filter: Option<&PartFilter>, block: usize) -> TurnSlice {
        let pieces = match filter {
            None => pieces(&skeleton),
            Some(filter) => {
                let all = skeleton.parts.iter().enumerate();
                all.filter(|(_, part_skeleton)| filter.has(part_skeleton))
                    .map(|(at, _)| SegmentRange::Part(at))
                    .collect()
            }
        };
        let groups = match filter {
            None => call_groups(&skeleton.parts).into_iter().map(|group| group.range).collect(),
            Some(_) => Vec::new(),
        };
        let (selected, around) = (0..0, None);
        TurnSlice { skeleton, pieces, selected, around, filter: None, block, groups }
    }

    pub fn take(&mut self, more: Range<usize>) {
        self.selected = match self.selected.is_empty() {
            true => more,
            false => self.selected.start.min(more.start)..self.selected.end.max(more.end),
        };
    }

    pub fn bone_at(&self, place: Place) -> usize {
        self.skeleton.parts.partition_point(|part_skeleton| part_skeleton.place < place)
    }

    /// The index of the piece at this place, or of the next piece for `Edge::After`.
    pub fn piece_at(&self, place: Place, edge: Edge) -> usize {
        let part_skeleton = match edge {
            Edge::At => self.bone_at(place),
            Edge::After => {
                self.skeleton.parts.partition_point(|part_skeleton| part_skeleton.place <= place)
            }
        };
        match edge {
            Edge::At => self.pieces.partition_point(|piece| piece.range().end <= part_skeleton),
            Edge::After => self.pieces.partition_point(|piece| piece.range().start < part_skeleton),
        }
    }

    /// How much of the window's budget a piece uses.
    pub fn weight(&self, piece: usize) -> usize {
        self.pieces.get(piece).map_or(0, |piece| piece.range().len().min(self.block))
    }

    /// True if this piece must be shown with the one before it: a tree of agents is drawn in place
    /// of its call, and parallel calls stand below the title of their group.
    pub fn belongs_before(&self, piece: usize) -> bool {
        let Some(first) = self.pieces.get(piece).map(|piece| piece.range().start) else {
            return false;
        };
        let part_skeleton = self.skeleton.parts.get(first);
        part_skeleton.is_some_and(|part_skeleton| part_skeleton.kind == Kind::Agent)
            || self.is_inside_group(first)
    }

    /// True for a part of a group that is not its first.
    fn is_inside_group(&self, at: usize) -> bool {
        let nth = self.groups.partition_point(|group| group.end <= at);
        let group = self.groups.get(nth).filter(|group| group.len() <= MAX_GROUP_PARTS);
        group.is_some_and(|group| group.start < at)
    }

    /// The places of the parts to load.
    pub fn places(&self) -> Vec<Place> {
        let part_skeletons = &self.skeleton.parts;
        let selected = self.pieces.get(self.selected.clone()).unwrap_or_default();
        let around = self.around.map(|place| self.bone_at(place));
        // A tree of agents is drawn in place of its call, so load the call too.
        let is_tree = |at: usize| {
            part_skeletons.get(at).is_some_and(|part_skeleton| part_skeleton.kind == Kind::Agent)
        };
        let mut places = Vec::new();
        let mut take = |range: Range<usize>| {
            places.extend(
                part_skeletons
                    .get(range)
                    .unwrap_or_default()
                    .iter()
                    .map(|part_skeleton| part_skeleton.place),
            );
        };
        for piece in selected {
            match &self.filter {
                Some(filter) => take(filter.clone()),
                None => visible_ranges(piece.range(), around, self.block)
                    .into_iter()
                    .for_each(&mut take),
            }
        }
        let calls = selected.iter().map(|piece| piece.range().start).filter(|at| is_tree(*at));
        places.extend(
            calls
                .filter_map(|at| part_skeletons.get(at.checked_sub(1)?))
                .map(|part_skeleton| part_skeleton.place),
        );
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// Recounts missing parts for a filtered view, where filtered-out parts do not count.
pub fn count_filtered(view: &mut TurnView, count: usize, selected: &Range<usize>) {
    view.after = count.saturating_sub(selected.end);
    for (at, item) in view.items.iter_mut().enumerate() {
        let missing = if at == 0 { selected.start } else { 0 };
        match item {
            Item::Part(part) => part.before = missing,
            Item::Reasoning(block) => {
                block.before = missing;
                block.parts.iter_mut().for_each(|part| part.before = 0);
                // The matching part must be visible.
                block.open = true;
            }
        }
    }
}

/// The parts of a piece that are shown: all of a short one, the first and the last of a long block.
pub fn block_parts(range: Range<usize>) -> Vec<Range<usize>> {
    visible_ranges(range, None, MAX_BLOCK_PARTS)
}

/// Like `block_parts`, with a given count, or centred on one part.
fn visible_ranges(range: Range<usize>, around: Option<usize>, count: usize) -> Vec<Range<usize>> {
    if range.len() <= count {
        return vec![range];
    }
    let end = match around.filter(|at| range.contains(at)) {
        Some(at) => (at + count.div_ceil(2)).clamp(range.start + count, range.end),
        None => range.end,
    };
    // The first part of the block takes one of the `count` slots.
    let start = end + 1 - count;
    match start <= range.start + 1 {
        true => std::iter::once(range.start..end).collect(),
        false => vec![range.start..range.start + 1, start..end],
    }
}

/// The pieces of a turn.
fn pieces(skeleton: &Skeleton) -> Vec<SegmentRange> {
    let kinds: Vec<Kind> = skeleton.parts.iter().map(|part_skeleton| part_skeleton.kind).collect();
    let rule = present::PresentOptions::default().rule;
    segment_ranges(&kinds, skeleton.turn.thinking_mode, rule)
}
