//! Changes by a feed that is weaker than the spine, while it follows the spine or runs ahead of it.
//! `append` says what a weave does and why these changes are right if the weave begins with the same
//! sequence and gives the same result. F is the feed, X the item that changed, and a rest item is one
//! that no stronger feed has:
//!
//! - F reaches X (`reach`). Rest items between other shared items than before are those between X
//!   and its neighbours in F. If there are none, nothing moves. Those between the last shared item T
//!   and X, the end of F, were behind their group or at the end. If they are between T and X
//!   already, in the order of F, that is behind their groups, where they belong. If they are at the
//!   end, because stronger feeds do not have their groups, they now come behind T. If X is in the
//!   middle of F, see `between`.
//! - F adds X at its end (`add_ahead`). It comes last if its group has no items of stronger feeds,
//!   or the group is that of the last item of the spine. Otherwise it comes behind the last item of
//!   its group and the rest items there (`add_to_group`).
//!
//! Where items move, the weave of a still weaker feed begins with another sequence, so it must have
//! no rest items, or none of them may be near.

use std::hash::Hash;
use std::ops::Bound::{Excluded, Unbounded};

use crate::assemble::order::Item;
use crate::part::Place;
use crate::provenance::Feed;

use super::append::MAX_GROUP_WALK;
use super::{FeedOrder, FeedSet};

impl<G: Copy + Eq + Hash> FeedOrder<G> {
    /// A weaker feed reaches an item.
    pub(super) fn reach(
        &mut self,
        changed: u32,
        item: &Item<G>,
        spine: Feed,
        feed: Feed,
    ) -> Option<Vec<usize>> {
        let rank = item.rank(feed)?;
        let is_last_shared = self.is_last_shared(feed, rank);
        let next = self.next(feed, rank);
        // Rest items behind the last shared one do not depend on it.
        if next.is_some_and(|next| self.is_rest(next, feed)) && !is_last_shared {
            return None;
        }
        let (shared, rest) = self.rest_before(feed, rank);
        if rest.is_empty() {
            return Some(Vec::new());
        }
        let shared = shared?;
        // Before another shared item, the groups behind that one do not count.
        if next.is_none() {
            let place = self.place(changed);
            let places = || rest.iter().map(|item| self.place(*item));
            if places().is_sorted() && places().all(|at| self.place(shared) < at && at < place) {
                return Some(Vec::new());
            }
            if let Some(moved) = self.move_from_end(&rest, shared, feed) {
                return Some(moved);
            }
        }
        let most = rest.len() + MAX_GROUP_WALK;
        if !is_last_shared
            || !self.are_all(spine, feed)
            || !self.follows_in_spine(shared, changed, spine, most)
        {
            return None;
        }
        Some(self.weave_between(shared, changed, feed, &rest, &[]))
    }

    /// The last item before this rank that a stronger feed has too, and the rest items between.
    pub(super) fn rest_before(&self, feed: Feed, rank: u64) -> (Option<u32>, Vec<u32>) {
        let before = self.by_rank[feed.index()].range(..rank).rev().map(|(_, item)| *item);
        let mut rest = Vec::new();
        for item in before {
            if !self.is_rest(item, feed) {
                rest.reverse();
                return (Some(item), rest);
            }
            rest.push(item);
        }
        rest.reverse();
        (None, rest)
    }

    /// Moves the last items, which only this feed has, behind one that stronger feeds have too.
    fn move_from_end(&mut self, rest: &[u32], behind: u32, feed: Feed) -> Option<Vec<usize>> {
        let are_last = || {
            let last = self.by_place.iter().rev().map(|(_, item)| *item);
            last.take(rest.len()).eq(rest.iter().rev().copied())
        };
        let has_group = |item: &u32| {
            let group = self.item(*item).and_then(|item| item.group);
            self.sizes(group).count(|feeds| feeds.has_above(feed)) > 0
        };
        let end = (self.place(behind), behind);
        if self.has_items_below(feed)
            || !are_last()
            || rest.iter().any(has_group)
            || !self.ends_before_shared(end, feed)
        {
            return None;
        }
        Some(self.put_stretch(Some(behind), rest, end))
    }

    /// A weaker feed has a new item at its end that no other feed has.
    pub(super) fn add_ahead(
        &mut self,
        changed: u32,
        item: &Item<G>,
        spine: Feed,
        feed: Feed,
    ) -> Option<Vec<usize>> {
        let (_, last) = self.by_rank[feed.index()].last_key_value()?;
        let (_, last_of_spine) = self.by_rank[spine.index()].last_key_value()?;
        if *last != changed {
            return None;
        }
        let sizes = self.sizes(item.group);
        let is_second = Feed::ALL
            .into_iter()
            .all(|other| other <= feed || other == spine || self.feed_sizes[other.index()] == 0);
        let continues = is_second && self.item(*last_of_spine)?.group == item.group;
        if sizes.count(|feeds| feeds.has_above(feed)) > 0 && !continues {
            return self.add_to_group(changed, item, feed);
        }
        let (place, end) = *self.by_place.last()?;
        if self.has_items_below(feed)
            && (!FeedSet::of(&self.item(end)?).has_from(feed)
                || sizes.count(|feeds| !feeds.has_from(feed)) > 0)
        {
            return None;
        }
        Some(self.put_stretch(Some(end), &[changed], (place, end)))
    }

    /// As `add_ahead`, if stronger feeds have items of its group.
    fn add_to_group(&mut self, changed: u32, item: &Item<G>, feed: Feed) -> Option<Vec<usize>> {
        let previous = self.previous(feed, item.rank(feed)?)?;
        let start = (self.place(previous), previous);
        let is_mate = |at: &&(Place, u32)| {
            let other = self.item(at.1).filter(|_| !self.is_rest(at.1, feed));
            other.is_some_and(|other| other.group == item.group)
        };
        let behind = self.by_place.range((Excluded(start), Unbounded)).take(MAX_GROUP_WALK);
        let before = self.by_place.range(..=start).rev().take(MAX_GROUP_WALK);
        let mates: Vec<(Place, u32)> = behind.chain(before).filter(is_mate).copied().collect();
        if self.has_items_below(feed)
            || mates.len() != self.sizes(item.group).count(|feeds| feeds.has_above(feed))
        {
            return None;
        }
        let mut end = mates.into_iter().max()?;
        // The previous item of the feed may be there already.
        let mut shared = self.by_place.range(..=start).rev().take(MAX_GROUP_WALK);
        if shared.find(|(_, other)| !self.is_rest(*other, feed)) == Some(&end) {
            end = start;
        }
        if !self.ends_before_shared(end, feed) {
            return None;
        }
        Some(self.put_stretch(Some(end.1), &[changed], end))
    }

    /// True if no rest item follows this one.
    fn ends_before_shared(&self, item: (Place, u32), feed: Feed) -> bool {
        let next = self.by_place.range((Excluded(item), Unbounded)).next();
        next.is_none_or(|(_, next)| !self.is_rest(*next, feed))
    }

    /// True if no feed that is stronger than this one has the item.
    fn is_rest(&self, item: u32, feed: Feed) -> bool {
        self.item(item).is_some_and(|item| !FeedSet::of(&item).has_above(feed))
    }

    fn place(&self, item: u32) -> Place {
        self.items[item as usize].1
    }
}
