//! Loads a window from the store: chooses the pieces of turns around an anchor, then loads their
//! parts and presents them.

use std::collections::BTreeMap;

use unspool_model::part::Place;
use unspool_model::session::Turn;
use unspool_model::skeleton::Skeleton;
use unspool_store::store::{StoreError, StoredSession, TurnSize, TurnWindow, View};
use unspool_view::present::notes::NoteViews;
use unspool_view::present::{self, Folding};
use unspool_view::segment::SegmentRange;

use super::slice::{Edge, TurnSlice, count_filtered};
use super::{Anchor, PartFilter, Position, Size, WindowRequest, WindowView};
use crate::subagents::subagents;

/// A filtered window scans at most this many turns.
const MAX_TURNS_SCANNED: usize = 400;
/// A window between two positions starts no further turn after this many parts.
pub const MAX_WINDOW_PARTS: u64 = 4000;

/// Loads one window of a session.
struct WindowLoader<'a, V: View> {
    view: &'a V,
    stored: &'a StoredSession,
    filter: Option<&'a PartFilter>,
    size: Size,
    /// How many more turns may be scanned.
    turns_left: usize,
    sizes: Vec<TurnSize>,
    turns: BTreeMap<u32, TurnSlice>,
}

/// Loads a window. `settle` decides whether turns without an end are still running.
pub async fn window<V: View>(
    view: &V,
    stored: &StoredSession,
    request: WindowRequest<'_>,
    settle: impl Fn(&mut [Turn]),
) -> Result<WindowView, StoreError> {
    let WindowRequest { anchor, filter, size, folding } = request;
    let sizes = view.sizes(stored.row).await?;
    let (turns, turns_left) = (BTreeMap::new(), MAX_TURNS_SCANNED);
    let mut loader = WindowLoader { view, stored, filter, size, turns_left, sizes, turns };
    loader.choose(anchor).await?;
    loader.show(settle, folding).await
}

impl<V: View> WindowLoader<'_, V> {
    async fn choose(&mut self, anchor: Anchor) -> Result<(), StoreError> {
        let parts = self.size.parts;
        let last = self.sizes.last().map_or(0, |size| size.number);
        match anchor {
            Anchor::End => {
                self.take_before(Position::end_of(last), parts).await?;
            }
            // At the edge of a turn, skip that turn altogether, its header included.
            Anchor::Before(Position { turn, place: Place(..=0) }) => {
                if let Some(turn) = turn.checked_sub(1) {
                    self.take_before(Position::end_of(turn), parts).await?;
                }
            }
            Anchor::After(Position { turn, place: Place(i64::MAX) }) => {
                let next = Position::start_of(turn.saturating_add(1));
                self.take_after(next, Edge::At, parts).await?;
            }
            Anchor::Before(position) => {
                self.take_before(position, parts).await?;
            }
            Anchor::After(position) => {
                self.take_after(position, Edge::After, parts).await?;
            }
            Anchor::From(position) => {
                let left = self.take_after(position, Edge::At, parts).await?;
                self.take_before(position, left).await?;
            }
            Anchor::Around(position) => {
                let left = self.take_after(position, Edge::At, parts).await?;
                self.take_before(position, left + parts / 3).await?;
                if let Some(slice) = self.turns.get_mut(&position.turn) {
                    slice.around = Some(position.place);
                }
            }
            Anchor::Inside(position) => self.take_inside(position).await?,
            Anchor::Between(first, last) => self.take_between(first, last).await?,
        }
        Ok(())
    }

    fn turns_from(&self, number: u32) -> Vec<TurnSize> {
        let at = self.sizes.partition_point(|size| size.number < number);
        self.sizes.get(at..).unwrap_or_default().to_vec()
    }

    fn turns_to(&self, number: u32) -> Vec<TurnSize> {
        let end = self.sizes.partition_point(|size| size.number <= number);
        self.sizes.get(..end).unwrap_or_default().to_vec()
    }

    /// Adds up to `budget` parts before a position. Returns the unused budget.
    async fn take_before(
        &mut self,
        position: Position,
        budget: usize,
    ) -> Result<usize, StoreError> {
        let mut left = budget;
        for size in self.turns_to(position.turn).into_iter().rev() {
            // Without budget, what belongs to the piece at the position is still added.
            let is_spent = left == 0 && size.number != position.turn;
            if (is_spent && !self.turns.is_empty()) || self.turns_left == 0 {
                return Ok(0);
            }
            let Some(slice) = self.slice(size).await? else { continue };
            let end = match size.number == position.turn {
                true => slice.piece_at(position.place, Edge::At),
                false => slice.pieces.len(),
            };
            let mut start = end;
            while start > 0 && (left > 0 || slice.belongs_before(start)) {
                start -= 1;
                left = left.saturating_sub(slice.weight(start));
            }
            slice.take(start..end);
            if start > 0 {
                return Ok(0);
            }
        }
        Ok(left)
    }

    /// Adds up to `budget` parts at or after a position. Returns the unused budget.
    async fn take_after(
        &mut self,
        position: Position,
        edge: Edge,
        budget: usize,
    ) -> Result<usize, StoreError> {
        let mut left = budget;
        for size in self.turns_from(position.turn) {
            if (left == 0 && !self.turns.is_empty()) || self.turns_left == 0 {
                return Ok(0);
            }
            let Some(slice) = self.slice(size).await? else { continue };
            let start = match size.number == position.turn {
                true => slice.piece_at(position.place, edge),
                false => 0,
            };
            let mut end = start;
            while end < slice.pieces.len() && (left > 0 || slice.belongs_before(end)) {
                left = left.saturating_sub(slice.weight(end));
                end += 1;
            }
            slice.take(start..end);
            if end < slice.pieces.len() {
                return Ok(0);
            }
        }
        Ok(left)
    }

    async fn take_inside(&mut self, position: Position) -> Result<(), StoreError> {
        let block = self.size.block;
        let Some(size) = self.turn_size(position.turn) else { return Ok(()) };
        let Some(slice) = self.slice(size).await? else { return Ok(()) };
        let piece = slice.piece_at(position.place, Edge::At);
        let Some(range) = slice.pieces.get(piece).map(SegmentRange::range) else { return Ok(()) };
        let end = slice.bone_at(position.place).clamp(range.start, range.end);
        slice.take(piece..piece + 1);
        slice.filter = Some(end.saturating_sub(block).max(range.start)..end);
        Ok(())
    }

    async fn take_between(&mut self, first: Position, last: Position) -> Result<(), StoreError> {
        let mut left = MAX_WINDOW_PARTS;
        for size in self.turns_from(first.turn) {
            if size.number > last.turn || left == 0 {
                break;
            }
            left = left.saturating_sub(size.parts);
            let Some(slice) = self.slice(size).await? else { continue };
            let start = match size.number == first.turn {
                true => slice.piece_at(first.place, Edge::At),
                false => 0,
            };
            let end = match size.number == last.turn {
                true => slice.piece_at(last.place, Edge::After),
                false => slice.pieces.len(),
            };
            slice.take(start..end.max(start));
        }
        Ok(())
    }

    fn turn_size(&self, number: u32) -> Option<TurnSize> {
        self.sizes.iter().find(|size| size.number == number).copied()
    }

    async fn slice(&mut self, size: TurnSize) -> Result<Option<&mut TurnSlice>, StoreError> {
        if !self.turns.contains_key(&size.number) {
            let skeleton = match self.filter {
                None => skeleton(self.view, self.stored, size, self.size.long).await?,
                Some(_) => self.view.skeleton(self.stored.row, size.number).await?,
            };
            let Some(skeleton) = skeleton else { return Ok(None) };
            self.turns_left = self.turns_left.saturating_sub(1);
            self.turns.insert(size.number, TurnSlice::new(skeleton, self.filter, self.size.block));
        }
        Ok(self.turns.get_mut(&size.number))
    }

    async fn show(
        self,
        settle: impl Fn(&mut [Turn]),
        folding: Folding,
    ) -> Result<WindowView, StoreError> {
        let WindowLoader { view, stored, sizes, filter, turns, .. } = self;
        let (first, last) = (turns.keys().next().copied(), turns.keys().next_back().copied());
        let (mut all, mut slices) = (Vec::new(), Vec::new());
        for (_, mut slice) in turns {
            // Omit turns without a matching part.
            if filter.is_some() && slice.pieces.is_empty() {
                continue;
            }
            let places = slice.places();
            fill(view, stored, &mut slice.skeleton, &places).await?;
            let TurnSlice { skeleton: Skeleton { turn, parts }, pieces, selected, .. } = slice;
            all.push(turn);
            slices.push((parts, pieces.len(), selected));
        }
        settle(&mut all);
        let subagents = subagents(view, &stored.summary.session.agent, &all).await?;
        let notes = NoteViews::of(&view.notes(stored.summary.session.id).await?);
        let options = present::PresentOptions {
            subagents,
            folding,
            notes,
            ..present::PresentOptions::of(&stored.summary.session)
        };
        let earlier = sizes.first().zip(first).filter(|(size, first)| size.number < *first);
        let later = sizes.last().zip(last).filter(|(size, last)| size.number > *last);
        let views = all.iter().zip(&slices).map(|(turn, (part_skeletons, count, selected))| {
            let mut view = present::partial_turn(turn, part_skeletons, &options);
            if filter.is_some() {
                count_filtered(&mut view, *count, selected);
            }
            view
        });
        Ok(WindowView {
            earlier: earlier.map(|(_, first)| Position::start_of(first)),
            later: later.map(|(_, last)| Position::end_of(last)),
            turns: views.collect(),
        })
    }
}

/// The skeleton of a turn; a short turn comes with its parts.
async fn skeleton<V: View>(
    view: &V,
    stored: &StoredSession,
    size: TurnSize,
    long: u64,
) -> Result<Option<Skeleton>, StoreError> {
    if size.parts > long {
        return view.skeleton(stored.row, size.number).await;
    }
    let mut found = view.turns(stored.row, TurnWindow::Turn(size.number)).await?;
    Ok(found.pop().map(|turn| Skeleton { parts: Skeleton::of(&turn), turn }))
}

/// Loads the parts at these places and drops all others.
pub async fn fill<V: View>(
    view: &V,
    stored: &StoredSession,
    skeleton: &mut Skeleton,
    places: &[Place],
) -> Result<(), StoreError> {
    let Skeleton { turn, parts: part_skeletons } = skeleton;
    if turn.parts.len() == part_skeletons.len() {
        turn.parts.retain(|part| places.binary_search(&part.place).is_ok());
    } else {
        turn.parts = view.parts(stored.row, turn.number, places.to_vec()).await?;
        // Parts written since the skeleton was read arrive as live updates.
        turn.parts.retain(|part| {
            let at = part_skeletons
                .binary_search_by_key(&part.place, |part_skeleton| part_skeleton.place);
            at.is_ok_and(|at| {
                part_skeletons.get(at).is_some_and(|part_skeleton| part_skeleton.id == part.id)
            })
        });
    }
    Ok(())
}
