//! A feed and the spine come to share an item X: the items that only the feed has, between the last
//! shared item T and X, were ahead and are now between two shared ones.
//!
//! Why no other item moves. All items are in the spine or rest items of the feed: a third feed has
//! no items of its own, so its weave changes nothing. Rest items before T in the feed stay, since they are between the same shared items as
//! before. Rest items behind X were ahead and are ahead, as no shared item is behind X: they depend
//! on their groups alone, and `append` looks at those. So only the rest items between T and X are
//! woven again, by the rule of `order::weave`: behind T, or behind the last item of their group if
//! that is between T and X, and never before one that precedes them in the feed.
//!
//! Each item is between T and X once, because X is the next T.

use std::hash::Hash;
use std::ops::Bound::{Excluded, Unbounded};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::provenance::Feed;

use super::{FeedOrder, FeedSet, pair_of};

impl<G: Copy + Eq + Hash> FeedOrder<G> {
    /// Weaves the items `rest` of a feed, which are between `shared` and `changed` there, between
    /// these two. `stronger`: the items of the spine between the two; only if `changed` is the last
    /// of the spine may there be any.
    pub(super) fn weave_between(
        &mut self,
        shared: u32,
        changed: u32,
        feed: Feed,
        rest: &[u32],
        stronger: &[u32],
    ) -> Vec<usize> {
        let mut behind = self.slots_between(changed, rest, stronger);
        let woven: FxHashSet<u32> = rest.iter().copied().collect();
        let place = |item: u32| (self.items[item as usize].1, item);
        let (start, end) = (place(shared), place(changed));
        let rank = |item: u32| self.item(item).and_then(|item| item.rank(feed));
        let mut stretch = Vec::new();
        let mut nth = 0;
        for (_, item) in self.by_place.range((Excluded(start), Excluded(end))) {
            let is_stronger = stronger.get(nth) == Some(item);
            if woven.contains(item) {
                continue;
            }
            // Items behind the same one are in the order of their feed.
            if is_stronger || rank(*item) > rank(changed) {
                stretch.append(&mut behind[nth]);
            }
            stretch.push(*item);
            nth += usize::from(is_stronger);
        }
        stretch.append(&mut behind[nth]);
        stretch.push(changed);
        // What follows an item that leaves its place may take another one.
        let mut left = FxHashSet::default();
        for item in rest.iter().map(|item| place(*item)) {
            let before = self.by_place.range(..item).next_back();
            left.extend(before.map(|(_, before)| *before).filter(|_| item < start || end < item));
        }
        let mut moved = self.put_stretch(Some(shared), &stretch, end);
        for before in left.into_iter().filter(|before| !woven.contains(before)) {
            let at = self.items[before as usize].1;
            moved.extend(self.put_stretch(Some(before), &[], (at, before)));
        }
        moved
    }

    /// The items of `rest` that come behind the shared item, and behind each of `stronger`, all of
    /// them before the item `before`.
    fn slots_between(&self, before: u32, rest: &[u32], stronger: &[u32]) -> Vec<Vec<u32>> {
        let mut last_of: FxHashMap<G, usize> = FxHashMap::default();
        for (nth, item) in (1..).zip(stronger) {
            if let Some(group) = self.item(*item).and_then(|item| item.group) {
                last_of.insert(group, nth);
            }
        }
        // The last item of that group is not between them.
        if let Some(group) = self.item(before).and_then(|item| item.group) {
            last_of.remove(&group);
        }
        let mut behind = vec![Vec::new(); stronger.len() + 1];
        let mut slot = 0;
        for item in rest {
            let group = self.item(*item).and_then(|item| item.group);
            slot = group.and_then(|group| last_of.get(&group)).copied().unwrap_or(0).max(slot);
            behind[slot].push(*item);
        }
        behind
    }

    /// True if all items are in the spine or rest items of this feed.
    pub(super) fn are_all(&self, spine: Feed, feed: Feed) -> bool {
        let is_rest = |feeds: FeedSet| feeds.has(feed) && !feeds.has_above(feed);
        self.sizes.count(|feeds| !feeds.has(spine) && !is_rest(feeds)) == 0
    }

    /// True if some items are only in feeds that are weaker than this one.
    pub(super) fn has_items_below(&self, feed: Feed) -> bool {
        self.sizes.count(|feeds| !feeds.has_from(feed)) > 0
    }

    /// True if no item behind this rank is in a stronger feed too.
    pub(super) fn is_last_shared(&self, feed: Feed, rank: u64) -> bool {
        let mut stronger = Feed::ALL.into_iter().filter(|other| *other > feed);
        stronger.all(|stronger| self.last_shared[pair_of(stronger, feed)] <= Some(rank))
    }

    /// True if `item` is the first item behind `after` that is in the spine. Rest items between them
    /// are skipped, as long as there are no more than `most`.
    pub(super) fn follows_in_spine(&self, after: u32, item: u32, spine: Feed, most: usize) -> bool {
        let start = (self.items[after as usize].1, after);
        let following = self.by_place.range((Excluded(start), Unbounded)).take(most + 1);
        let is_in_spine = |at: &u32| self.item(*at).is_some_and(|item| item.at.of(spine).is_some());
        following.map(|(_, at)| *at).find(is_in_spine) == Some(item)
    }
}
