//! The items at the end of an order that a change may move: those after an anchor, an item that
//! every feed has.
//!
//! Why an anchor divides the order: if all items after it in one feed come after it in every feed,
//! then no item moves across it, since `order::arrange` puts an item between its neighbours in its
//! feed. Groups are the exception: `arrange` also looks for the last item of an item's group. So a
//! group on both sides of the anchor must be the anchor's own.

use std::hash::Hash;
use std::ops::Bound;

use rustc_hash::FxHashMap;

use crate::assemble::order::Item;
use crate::part::Place;
use crate::provenance::Feed;

use super::FeedOrder;

/// The items to order again.
pub(super) struct Tail<'a, G> {
    order: &'a FeedOrder<G>,
    pub items: Vec<usize>,
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
    pub fn new(order: &'a FeedOrder<G>) -> Self {
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
    pub fn exclude(&mut self, before: Option<&(Item<G>, Place)>) {
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

    pub fn push(&mut self, item: usize) {
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
        let size = self.order.group_size(group);
        let held = self.groups.get(&group).copied();
        let now = held.unwrap_or_default() + more;
        self.groups.insert(group, now);
        let was_incomplete = held.is_some_and(|held| held != size);
        self.incomplete = self.incomplete + usize::from(now != size) - usize::from(was_incomplete);
    }

    /// True if this item divides the order: the tail comes after it in every feed, everything else
    /// before it.
    pub fn can_follow(&self, item: usize, place: Place) -> bool {
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
            group.is_some_and(|(group, held)| self.order.group_size(group) != held)
        };
        self.first_place.is_none_or(|first| place < first)
            && (self.incomplete == 0 || (self.incomplete == 1 && own_group()))
            && Feed::ALL.into_iter().all(divides)
    }
}
