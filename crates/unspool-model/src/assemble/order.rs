//! Order across feeds. A turn has one spine, the strongest feed that covers it, which places the
//! parts. Parts seen only by another feed are inserted between them. The order is a function of the
//! positions in each feed, so arrival order cannot change it.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::part::Place;
use crate::provenance::{Feed, Positions};

/// The distance between two parts that the spine placed.
const PLACE_STRIDE: i64 = 1_000_000;

/// The place of the part that the end rule adds: after everything else.
pub(super) const LAST_PLACE: Place = Place(i64::MAX >> 11);

/// The place of the part at this position of the spine.
pub(super) fn spine_place(position: u32) -> Place {
    Place(PLACE_STRIDE * (i64::from(position) + 1))
}

/// An item to order: its position in each feed, and its group (a step).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Item<G> {
    pub at: Positions,
    /// Its stream position is that of another item, and it comes right before or after that one.
    pub beside: Option<Beside>,
    pub group: Option<G>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beside {
    Before,
    After,
}

impl<G> Item<G> {
    pub fn new(at: Positions, group: Option<G>) -> Item<G> {
        Item { at, beside: None, group }
    }

    /// Where it comes in a feed. Unlike positions, these numbers are unique.
    pub fn rank(&self, feed: Feed) -> Option<u64> {
        let position = 3 * u64::from(self.at.of(feed)?);
        Some(match self.beside.filter(|_| feed == Feed::Stream) {
            Some(Beside::Before) => position,
            None => position + 1,
            Some(Beside::After) => position + 2,
        })
    }
}

/// Orders `items`. Returns their indices with their places.
pub(super) fn arrange<G: Copy + Eq + Hash>(items: &[Item<G>]) -> Vec<(usize, Place)> {
    let mut order: Vec<usize> = Vec::with_capacity(items.len());
    let mut spine = None;
    for feed in Feed::ALL.into_iter().rev() {
        let mut placed: Vec<(u64, usize)> =
            (0..items.len()).filter_map(|item| Some((items[item].rank(feed)?, item))).collect();
        placed.sort_unstable();
        if placed.is_empty() {
            continue;
        }
        if spine.is_none() {
            spine = Some(feed);
            order.extend(placed.iter().map(|(_, item)| *item));
        } else {
            order = weave(&order, &placed, items);
        }
    }
    place(&order, items, spine)
}

/// Inserts the items of `placed` that `order` lacks between the items that both have.
fn weave<G: Copy + Eq + Hash>(
    order: &[usize],
    placed: &[(u64, usize)],
    items: &[Item<G>],
) -> Vec<usize> {
    let mut index: Vec<Option<usize>> = vec![None; items.len()];
    let mut last_of: FxHashMap<G, usize> = FxHashMap::default();
    for (at, item) in order.iter().enumerate() {
        index[*item] = Some(at);
        if let Some(group) = items[*item].group {
            last_of.insert(group, at);
        }
    }
    // New items go after an existing one; slot 0 is before all of them.
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); order.len() + 1];
    // For each item, the next one that both have.
    let mut next_of: Vec<Option<usize>> = vec![None; placed.len()];
    let mut next = None;
    for (nth, (_, item)) in placed.iter().enumerate().rev() {
        next = index[*item].or(next);
        next_of[nth] = next;
    }
    let mut slot: Option<usize> = None;
    for (nth, &(_, item)) in placed.iter().enumerate() {
        if let Some(at) = index[item] {
            slot = Some(at + 1);
            continue;
        }
        let group = items[item].group.and_then(|group| last_of.get(&group)).map(|last| last + 1);
        let at = if let Some(next) = next_of[nth] {
            // Between two items that both feeds have: after the earlier one, or directly before
            // the first; and after the items of its step that only the spine has, if those come
            // before the later one.
            let step = group.filter(|at| *at <= next && slot.is_some());
            let at = slot.max(step);
            slot = at;
            at.unwrap_or(next)
        } else {
            // Ahead of the spine, or dropped by it: at the end of its step, otherwise last.
            group.unwrap_or(order.len())
        };
        behind[at].push(item);
    }
    let mut woven = Vec::with_capacity(items.len());
    woven.append(&mut behind[0]);
    for (at, item) in order.iter().enumerate() {
        woven.push(*item);
        woven.append(&mut behind[at + 1]);
    }
    woven
}

/// Items of the spine get the place of their position; the others go in between. Items ahead of
/// the spine get the place that the spine will most likely give them, so that nothing moves when
/// it catches up.
fn place<G>(order: &[usize], items: &[Item<G>], spine: Option<Feed>) -> Vec<(usize, Place)> {
    let by_spine = |item: usize| spine.and_then(|spine| items[item].at.of(spine));
    let ahead = order.iter().rposition(|item| by_spine(*item).is_some()).map_or(0, |at| at + 1);
    let mut last = Place(0);
    order
        .iter()
        .enumerate()
        .map(|(nth, &item)| {
            last = place_after(last, &items[item], spine, nth >= ahead);
            (item, last)
        })
        .collect()
}

/// The place of an item that follows one at `last`. `is_ahead`: no item of the spine follows.
pub(super) fn place_after<G>(
    last: Place,
    item: &Item<G>,
    spine: Option<Feed>,
    is_ahead: bool,
) -> Place {
    let between = Place(last.0 + 2);
    match spine.and_then(|spine| item.at.of(spine)) {
        Some(position) => spine_place(position),
        None if is_ahead => {
            let own = item.at.0.into_iter().rev().flatten().next();
            own.map_or(between, spine_place).max(between)
        }
        None => between,
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
