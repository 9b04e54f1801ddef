//! Order across tellings. A turn has one spine, the strongest telling that covers it, and the
//! spine places the parts. What only another telling saw is set between them. The order is a
//! function of where each telling put each thing, so arrival cannot change it.

use crate::part::Place;
use crate::telling::{Positions, Telling};

/// The room between two parts that the spine placed.
const STRIDE: i64 = 1_000_000;

/// Where the end rule puts what it adds: behind everything.
pub(super) const LAST: Place = Place(i64::MAX >> 11);

/// Where the part at this position of the spine stands.
pub(super) fn spine_place(position: u32) -> Place {
    Place(STRIDE * (i64::from(position) + 1))
}

/// Something to be ordered: where each telling put it, and the group (a step) it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Item<G> {
    pub at: Positions,
    pub group: Option<G>,
}

/// The order of `items`, as their indices, each with its place.
pub(super) fn arrange<G: Copy + PartialEq>(items: &[Item<G>]) -> Vec<(usize, Place)> {
    let mut order: Vec<usize> = Vec::with_capacity(items.len());
    let mut spine = None;
    for telling in Telling::ALL.into_iter().rev() {
        let mut told: Vec<(u32, usize)> =
            (0..items.len()).filter_map(|item| Some((items[item].at.of(telling)?, item))).collect();
        told.sort_unstable();
        if told.is_empty() {
            continue;
        }
        match spine {
            None => {
                spine = Some(telling);
                order.extend(told.iter().map(|(_, item)| *item));
            }
            Some(_) => weave(&mut order, &told, items),
        }
    }
    place(&order, items, spine)
}

/// Sets what `told` has and `order` has not between what both have.
fn weave<G: Copy + PartialEq>(order: &mut Vec<usize>, told: &[(u32, usize)], items: &[Item<G>]) {
    let mut after: Option<usize> = None;
    for (nth, &(_, item)) in told.iter().enumerate() {
        if let Some(found) = order.iter().position(|other| *other == item) {
            after = Some(found);
            continue;
        }
        let next = told[nth + 1..]
            .iter()
            .find_map(|(_, later)| order.iter().position(|other| other == later));
        let at = match (after, next) {
            // Between two things that both tellings have: behind the earlier one.
            (Some(after), Some(_)) => after + 1,
            (None, Some(next)) => next,
            // Ahead of the spine, or dropped by it: behind the rest of its step, else last.
            (_, None) => items[item]
                .group
                .and_then(|group| order.iter().rposition(|o| items[*o].group == Some(group)))
                .map_or(order.len(), |last| last + 1),
        };
        order.insert(at, item);
        after = Some(at);
    }
}

/// What the spine placed keeps the place that its position gives it; the rest goes between.
fn place<G>(order: &[usize], items: &[Item<G>], spine: Option<Telling>) -> Vec<(usize, Place)> {
    let mut last = Place(0);
    order
        .iter()
        .map(|&item| {
            last = match spine.and_then(|spine| items[item].at.of(spine)) {
                Some(position) => spine_place(position),
                None => Place(last.0 + 2),
            };
            (item, last)
        })
        .collect()
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
