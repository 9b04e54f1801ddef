//! The order of items across feeds, kept up to date. A change at the end of its feeds concerns only
//! the items after the last one that all feeds have, so only those are ordered again. The result
//! always equals `order::arrange` over all items.
//!
//! Why an item that every feed has (an anchor) divides the order: if all items after it in one feed
//! come after it in every feed, then no item moves across it, since `arrange` puts an item between
//! its neighbours in its feed. Steps are the exception: `arrange` also looks for the last item of an
//! item's step. So a step on both sides of the anchor must be the anchor's own.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::ops::Bound;

use rustc_hash::FxHashMap;

use crate::part::Place;
use crate::provenance::Feed;

use super::names::small;
use super::order::{Item, arrange};

/// Items by index, in their order.
#[derive(Clone, Debug)]
pub(super) struct FeedOrder<G> {
    /// Each item, and the place at which it was put.
    items: Vec<(Option<Item<G>>, Place)>,
    by_place: BTreeSet<(Place, u32)>,
    /// The item at each rank of each feed. May be outdated; the item says where it is. A map,
    /// because positions of an imported session may have any value.
    by_rank: [BTreeMap<u64, u32>; 3],
    /// The number of items of each feed and of each group.
    feed_sizes: [usize; 3],
    group_sizes: FxHashMap<G, usize>,
    /// Items that changed since they were ordered, and what they were then.
    changed: BTreeMap<u32, Option<(Item<G>, Place)>>,
}

/// What `arrange` ordered again.
pub(super) struct Rearranged {
    /// The item before them.
    pub anchor: Option<usize>,
    pub items: Vec<(usize, Place)>,
}

impl<G> Default for FeedOrder<G> {
    fn default() -> Self {
        FeedOrder {
            items: Vec::new(),
            by_place: BTreeSet::new(),
            by_rank: Default::default(),
            feed_sizes: [0; 3],
            group_sizes: FxHashMap::default(),
            changed: BTreeMap::new(),
        }
    }
}

impl<G: Copy + Eq + Hash> FeedOrder<G> {
    /// Adds, changes or removes an item. An item that no feed placed has no order.
    pub fn set(&mut self, at: usize, item: Option<Item<G>>) {
        let item = item.filter(|item| item.at.0.iter().any(Option::is_some));
        if self.items.len() <= at {
            self.items.resize(at + 1, (None, Place::default()));
        }
        let (held, place) = self.items[at];
        if held == item {
            return;
        }
        self.items[at].0 = item;
        let part = small(at);
        if self.by_place.remove(&(place, part)) {
            self.changed.insert(part, held.map(|held| (held, place)));
        } else {
            self.changed.entry(part).or_insert(None);
        }
        for feed in Feed::ALL {
            let at = feed.index();
            if held.is_some_and(|held| held.at.of(feed).is_some()) {
                self.feed_sizes[at] -= 1;
            }
            if let Some(rank) = item.and_then(|item| item.rank(feed)) {
                self.feed_sizes[at] += 1;
                self.by_rank[at].insert(rank, part);
            }
        }
        if let Some(size) = held.and_then(|held| self.group_sizes.get_mut(&held.group?)) {
            *size -= 1;
        }
        if let Some(group) = item.and_then(|item| item.group) {
            *self.group_sizes.entry(group).or_default() += 1;
        }
    }

    /// Orders again what the changes since the last call concern.
    pub fn arrange(&mut self) -> Rearranged {
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
        let mut placed = arrange(&items);
        // The anchor stays where it is.
        placed.drain(..usize::from(anchor.is_some()));
        for (item, place) in &mut placed {
            *item = found[*item];
            let before = std::mem::replace(&mut self.items[*item].1, *place);
            self.by_place.remove(&(before, small(*item)));
            self.by_place.insert((*place, small(*item)));
        }
        Rearranged { anchor, items: placed }
    }
}

/// The items to order again.
struct Tail<'a, G> {
    order: &'a FeedOrder<G>,
    items: Vec<usize>,
    feeds: [FeedTail; 3],
    /// The number of its items of each group, and of groups that it does not have complete.
    groups: FxHashMap<G, usize>,
    incomplete: usize,
    /// The first place that one of its items had before it changed.
    first_place: Option<Place>,
}

/// The ranks of one feed in the tail. They are the last ones of the feed if their sum is the
/// greatest that as many ranks can have.
#[derive(Clone, Copy, Default)]
struct FeedTail {
    sum: u64,
    greatest: u64,
    /// The rank down to which `greatest` counts; none yet.
    down_to: Option<u64>,
    /// The first rank that one of its items had before it changed.
    first: Option<u64>,
}

impl<'a, G: Copy + Eq + Hash> Tail<'a, G> {
    fn new(order: &'a FeedOrder<G>) -> Self {
        Tail {
            order,
            items: Vec::new(),
            feeds: Default::default(),
            groups: FxHashMap::default(),
            incomplete: 0,
            first_place: None,
        }
    }

    /// The anchor must be before what a changed item was: it was ordered by that.
    fn exclude(&mut self, before: Option<&(Item<G>, Place)>) {
        let Some((item, place)) = before else { return };
        self.first_place = Some(self.first_place.map_or(*place, |first| first.min(*place)));
        for feed in Feed::ALL {
            let first = &mut self.feeds[feed.index()].first;
            *first = match (*first, item.rank(feed)) {
                (Some(first), Some(rank)) => Some(first.min(rank)),
                (first, rank) => first.or(rank),
            };
        }
        self.add_to_group(item.group, 0);
    }

    fn push(&mut self, item: usize) {
        let Some(pushed) = self.order.items[item].0 else { return };
        self.items.push(item);
        for feed in Feed::ALL {
            if let Some(rank) = pushed.rank(feed) {
                self.feeds[feed.index()].sum += rank;
                self.count_one_more(feed);
            }
        }
        self.add_to_group(pushed.group, 1);
    }

    /// Counts the next rank from the end that an item has.
    fn count_one_more(&mut self, feed: Feed) {
        let next = self.next_rank(feed).unwrap_or_default();
        let tail = &mut self.feeds[feed.index()];
        tail.down_to = Some(next);
        tail.greatest += next;
    }

    /// The last rank that an item has, before those that were counted.
    fn next_rank(&self, feed: Feed) -> Option<u64> {
        let ranks = &self.order.by_rank[feed.index()];
        let counted = self.feeds[feed.index()].down_to;
        let end = counted.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = ranks.range((Bound::Unbounded, end)).rev();
        let found = rest.find(|(rank, item)| {
            let item = self.order.items.get(**item as usize);
            item.and_then(|(item, _)| item.as_ref()?.rank(feed)) == Some(**rank)
        });
        found.map(|(rank, _)| *rank)
    }

    fn add_to_group(&mut self, group: Option<G>, more: usize) {
        let Some(group) = group else { return };
        let size = self.order.group_sizes.get(&group).copied().unwrap_or_default();
        let held = self.groups.get(&group).copied();
        let now = held.unwrap_or_default() + more;
        self.groups.insert(group, now);
        let was_incomplete = held.is_some_and(|held| held != size);
        self.incomplete = self.incomplete + usize::from(now != size) - usize::from(was_incomplete);
    }

    /// True if this item divides the order: the tail comes after it in every feed, everything else
    /// before it.
    fn can_follow(&self, item: usize, place: Place) -> bool {
        let Some(anchor) = &self.order.items[item].0 else { return false };
        let divides = |feed: Feed| {
            let tail = &self.feeds[feed.index()];
            // A feed that lost its last item took part in the order until now.
            (self.order.feed_sizes[feed.index()] == 0 && tail.first.is_none())
                || anchor.rank(feed).is_some_and(|rank| {
                    tail.sum == tail.greatest
                        && self.next_rank(feed) == Some(rank)
                        && tail.first.is_none_or(|first| rank < first)
                })
        };
        let own_group = || {
            let group = anchor.group.and_then(|group| Some((group, *self.groups.get(&group)?)));
            group.is_some_and(|(group, held)| {
                self.order.group_sizes.get(&group).is_some_and(|size| *size != held)
            })
        };
        self.first_place.is_none_or(|first| place < first)
            && (self.incomplete == 0 || (self.incomplete == 1 && own_group()))
            && Feed::ALL.into_iter().all(divides)
    }
}

#[cfg(test)]
#[path = "feed_order_tests.rs"]
mod tests;
