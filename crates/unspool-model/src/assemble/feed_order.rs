//! The order of items across feeds, kept up to date. The result always equals `order::arrange` over
//! all items, but a change costs no more than the items that it concerns: `append` knows changes
//! that move few items or none, as when one feed follows another at any distance. For all other
//! changes, `tail` finds the items to order again.

mod ahead;
mod append;
mod between;
mod follow;
mod tail;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::part::Place;
use crate::provenance::Feed;

use super::names::small;
use super::order::{AheadShift, Item, arrange_shifted};
use append::Append;
use tail::Tail;

/// How many changes may wait for `arrange` one by one. More are applied together.
const MAX_WAITING: usize = 16;

/// Items by index, in their order.
#[derive(Clone, Debug)]
pub(super) struct FeedOrder<G> {
    /// Each item, and the place at which it was put.
    items: Vec<(Option<Item<G>>, Place)>,
    by_place: BTreeSet<(Place, u32)>,
    /// The item at each rank of each feed. A map, because positions of an imported session may have
    /// any value. If two items have the same rank, it lacks one of them.
    by_rank: [BTreeMap<u64, u32>; 3],
    /// The number of items of each feed.
    feed_sizes: [usize; 3],
    groups: FxHashMap<G, GroupSizes>,
    /// The number of all items.
    sizes: GroupSizes,
    /// No item that two feeds have is behind this rank of the weaker one, by `pair_of` the feeds.
    last_shared: [Option<u64>; 3],
    /// The number of items that two feeds have.
    shared: [usize; 3],
    /// How far the items ahead of the spine are shifted.
    shift: AheadShift,
    /// Items to set, in the order in which they changed.
    waiting: Vec<(u32, Option<Item<G>>)>,
    /// Items that were set since they were ordered, and what they were then.
    changed: BTreeMap<u32, Option<(Item<G>, Place)>>,
    /// The number of items that were given a place, and of changes that `append` knew.
    #[cfg(test)]
    counted: Counted,
}

#[cfg(test)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub placed: usize,
    pub appended: [usize; 5],
    pub changes: usize,
}

/// What `arrange_tail` ordered again.
pub(super) struct Rearranged {
    /// The item before them.
    pub anchor: Option<usize>,
    pub items: Vec<(usize, Place)>,
}

/// The number of items, of a group or of all, by the set of feeds that have them.
#[derive(Clone, Copy, Debug, Default)]
struct GroupSizes([usize; 8]);

impl GroupSizes {
    /// The number of items whose set of feeds is like this.
    fn count(&self, is_like: impl Fn(FeedSet) -> bool) -> usize {
        (0u8..)
            .zip(self.0)
            .filter(|(feeds, _)| is_like(FeedSet(*feeds)))
            .map(|(_, size)| size)
            .sum()
    }
}

/// The feeds that have an item, one bit each.
#[derive(Clone, Copy)]
struct FeedSet(u8);

impl FeedSet {
    fn of<G>(item: &Item<G>) -> FeedSet {
        let bit = |feed: &Feed| u8::from(item.at.of(*feed).is_some()) << feed.index();
        FeedSet(Feed::ALL.iter().map(bit).sum())
    }

    /// The feed that has the item, if there is exactly one.
    fn only(self) -> Option<Feed> {
        Feed::ALL.into_iter().find(|feed| self.0 == 1 << feed.index())
    }

    fn has(self, feed: Feed) -> bool {
        self.0 >> feed.index() & 1 == 1
    }

    /// True if this feed or a stronger one has the item.
    fn has_from(self, feed: Feed) -> bool {
        self.0 >> feed.index() != 0
    }

    /// True if a feed that is stronger than this one has the item.
    fn has_above(self, feed: Feed) -> bool {
        self.0 >> feed.index() > 1
    }
}

/// The index of two different feeds.
fn pair_of(a: Feed, b: Feed) -> usize {
    a.index() + b.index() - 1
}

impl<G> Default for FeedOrder<G> {
    fn default() -> Self {
        FeedOrder {
            items: Vec::new(),
            by_place: BTreeSet::new(),
            by_rank: Default::default(),
            feed_sizes: [0; 3],
            groups: FxHashMap::default(),
            sizes: GroupSizes::default(),
            last_shared: [None; 3],
            shared: [0; 3],
            shift: AheadShift::default(),
            waiting: Vec::new(),
            changed: BTreeMap::new(),
            #[cfg(test)]
            counted: Counted::default(),
        }
    }
}

impl<G: Copy + Eq + Hash> FeedOrder<G> {
    /// Adds, changes or removes an item. An item that no feed placed has no order.
    pub fn set(&mut self, at: usize, item: Option<Item<G>>) {
        let item = item.filter(|item| item.at.0.iter().any(Option::is_some));
        let part = small(at);
        if !self.changed.is_empty() {
            return self.apply(part, item);
        }
        if let Some((_, waiting)) = self.waiting.iter_mut().find(|(other, _)| *other == part) {
            *waiting = item;
            return;
        }
        if self.items.get(at).and_then(|(held, _)| *held) == item {
            return;
        }
        self.waiting.push((part, item));
        if self.waiting.len() > MAX_WAITING {
            self.apply_waiting();
        }
    }

    /// Orders again what the changes since the last call concern. Returns the items whose place may
    /// be another now.
    pub fn arrange(&mut self) -> Vec<(usize, Place)> {
        let mut moved = Vec::new();
        for (item, to) in std::mem::take(&mut self.waiting) {
            self.apply(item, to);
            #[cfg(test)]
            {
                self.counted.changes += 1;
            }
            if self.changed.len() == 1
                && let Some(before) = self.changed.get(&item).copied()
                && let Some(placed) = self.append(item, before)
            {
                self.changed.clear();
                moved.extend(placed);
            }
        }
        moved.extend(self.arrange_changed().items.into_iter().map(|(item, _)| item));
        // An item that moved twice has one place.
        moved.iter().map(|item| (*item, self.items[*item].1)).collect()
    }

    /// As `arrange`, but returns all items after the anchor, in order, also those that stay where
    /// they are: for callers that count them.
    pub fn arrange_tail(&mut self) -> Rearranged {
        self.apply_waiting();
        self.arrange_changed()
    }

    fn apply_waiting(&mut self) {
        for (item, to) in std::mem::take(&mut self.waiting) {
            self.apply(item, to);
        }
    }

    fn apply(&mut self, part: u32, item: Option<Item<G>>) {
        let at = part as usize;
        if self.items.len() <= at {
            self.items.resize(at + 1, (None, Place::default()));
        }
        let (held, place) = self.items[at];
        if held == item {
            return;
        }
        self.items[at].0 = item;
        if self.by_place.remove(&(place, part)) {
            self.changed.insert(part, held.map(|held| (held, place)));
        } else {
            self.changed.entry(part).or_insert(None);
        }
        if let Some(held) = held {
            self.uncount(part, &held);
        }
        if let Some(item) = item {
            self.count(part, &item);
        }
    }

    fn count(&mut self, part: u32, item: &Item<G>) {
        for feed in Feed::ALL {
            let Some(rank) = item.rank(feed) else { continue };
            self.feed_sizes[feed.index()] += 1;
            self.by_rank[feed.index()].insert(rank, part);
            for stronger in Feed::ALL.into_iter().filter(|other| *other > feed) {
                if item.at.of(stronger).is_some() {
                    let last = &mut self.last_shared[pair_of(stronger, feed)];
                    *last = (*last).max(Some(rank));
                    self.shared[pair_of(stronger, feed)] += 1;
                }
            }
        }
        self.sizes.0[usize::from(FeedSet::of(item).0)] += 1;
        if let Some(group) = item.group {
            self.groups.entry(group).or_default().0[usize::from(FeedSet::of(item).0)] += 1;
        }
    }

    fn uncount(&mut self, part: u32, item: &Item<G>) {
        for feed in Feed::ALL {
            let Some(rank) = item.rank(feed) else { continue };
            self.feed_sizes[feed.index()] -= 1;
            let ranks = &mut self.by_rank[feed.index()];
            if ranks.get(&rank) == Some(&part) {
                ranks.remove(&rank);
            }
            for stronger in Feed::ALL.into_iter().filter(|other| *other > feed) {
                let is_shared = item.at.of(stronger).is_some();
                self.shared[pair_of(stronger, feed)] -= usize::from(is_shared);
            }
        }
        self.sizes.0[usize::from(FeedSet::of(item).0)] -= 1;
        if let Some(sizes) = item.group.and_then(|group| self.groups.get_mut(&group)) {
            sizes.0[usize::from(FeedSet::of(item).0)] -= 1;
        }
    }

    fn group_size(&self, group: G) -> usize {
        self.groups.get(&group).map_or(0, |sizes| sizes.count(|_| true))
    }

    /// Orders again the items from the first one that a change concerns.
    fn arrange_changed(&mut self) -> Rearranged {
        let changed = std::mem::take(&mut self.changed);
        if changed.is_empty() {
            return Rearranged { anchor: None, items: Vec::new() };
        }
        let mut tail = Tail::new(self);
        for (item, before) in &changed {
            tail.exclude(before.as_ref());
            tail.push(*item as usize);
        }
        let mut anchor = None;
        for (place, item) in self.by_place.iter().rev() {
            if tail.can_follow(*item as usize, *place) {
                anchor = Some(*item as usize);
                break;
            }
            tail.push(*item as usize);
        }
        let found: Vec<usize> = anchor.into_iter().chain(tail.items).collect();
        let items: Vec<Item<G>> = found.iter().filter_map(|item| self.items[*item].0).collect();
        let (mut placed, shift) = arrange_shifted(&items, self.shift_if_crowded());
        self.shift = shift;
        // The anchor stays where it is.
        placed.drain(..usize::from(anchor.is_some()));
        for (item, place) in &mut placed {
            *item = found[*item];
            self.put(small(*item), *place);
        }
        Rearranged { anchor, items: placed }
    }

    #[cfg(test)]
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// Counts a change that `append` knew.
    fn note_append(&mut self, kind: Append) {
        let _ = kind;
        #[cfg(test)]
        {
            self.counted.appended[kind as usize] += 1;
        }
    }

    fn put(&mut self, item: u32, place: Place) {
        let before = std::mem::replace(&mut self.items[item as usize].1, place);
        self.by_place.remove(&(before, item));
        self.by_place.insert((place, item));
        #[cfg(test)]
        {
            self.counted.placed += 1;
        }
    }
}

#[cfg(test)]
#[path = "feed_order_tests.rs"]
mod tests;

#[cfg(test)]
mod growth_tests;
