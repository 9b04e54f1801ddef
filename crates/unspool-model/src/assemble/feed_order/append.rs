//! Changes that keep the order, or add one item to it: what happens while one feed follows another,
//! at any distance. Each is recognised and applied without a look at the rest of the items.
//!
//! Why this is right. `order::arrange` begins with the items of the spine and weaves the other feeds
//! in, the stronger one first. A weave puts an item that the feed alone has (a rest item)
//!
//! - between the two shared items around it in its feed, if a shared one follows: behind the earlier
//!   one, or behind the last item of its group if that comes before the later one;
//! - otherwise behind the last item of its group, or at the end if the group has none (ahead).
//!
//! So a weave depends on the sequence that it begins with, on which items are shared, and on the
//! groups of rest items. If it begins with the same sequence and these are the same, so is its
//! result. S is the last item of the spine and X the item that changed:
//!
//! - X changes its group (`regroup`). If all items of both groups are in the spine, then no rest item
//!   looks for them.
//! - The spine reaches X (`advance`), which was ahead in the second feed. X becomes the last item of
//!   the spine. Rest items between the last shared item and X in the second feed stay where they are
//!   if that item is S, as they are behind S and before X; otherwise see `between`. Rest items behind X were at the end or
//!   behind the last item of their group and still are, unless that item was S: then they would come
//!   before X now. The second weave has the same result, and so has the third one.
//! - The spine adds X, which no other feed has (`add_to_spine`). It comes behind S and the rest items
//!   of the group of S, and before all others that are ahead. Items that only the third feed has
//!   must not be around it, since their place depends on the items of stronger feeds beside them.
//! - A weaker feed reaches or adds X: see `follow`.
//!
//! X may also replace the last item of its group in the spine. Rest items of the group then look for
//! X, which is behind everything. That makes no difference if they are ahead and were at the end
//! (the group had no item in the spine, or its last was S), or if there are none.
//!
//! A place depends on the item before, so places change from the first item that moved up to one
//! that keeps its place.

use std::hash::Hash;
use std::ops::Bound::{Excluded, Unbounded};

use crate::assemble::order::{Item, place_after};
use crate::part::Place;
use crate::provenance::Feed;

use super::{FeedOrder, FeedSet, GroupSizes, pair_of};

/// How many items are visited in search of those of a group.
pub(super) const MAX_GROUP_WALK: usize = 64;

/// The kinds of changes, for tests.
#[derive(Clone, Copy, Debug)]
pub(super) enum Append {
    Reach,
    Regroup,
    Advance,
    AddToSpine,
    AddAhead,
}

impl<G: Copy + Eq + Hash> FeedOrder<G> {
    /// Orders an item that changed, if that concerns few others. Returns the items that may have
    /// got another place. `before`: what it was, and its place.
    pub(super) fn append(
        &mut self,
        changed: u32,
        before: Option<(Item<G>, Place)>,
    ) -> Option<Vec<usize>> {
        let item = self.item(changed)?;
        if !self.has_unique_ranks() {
            return None;
        }
        let feeds = FeedSet::of(&item);
        let spine = self.spine()?;
        let (kind, mut moved) = match before {
            None => {
                let feed = feeds.only()?;
                if feed == spine {
                    (Append::AddToSpine, self.add_to_spine(changed, &item, spine)?)
                } else {
                    (Append::AddAhead, self.add_ahead(changed, &item, spine, feed)?)
                }
            }
            Some((was, place)) if was.is_regrouped_to(&item) => {
                self.regroup(&was, &item, spine)?;
                self.put(changed, place);
                (Append::Regroup, Vec::new())
            }
            Some((was, place)) => {
                let feed = was.feed_that_reached(&item)?;
                if feeds.has_above(feed) {
                    self.put(changed, place);
                    let Some(moved) = self.reach(changed, &item, spine, feed) else {
                        self.by_place.remove(&(place, changed));
                        return None;
                    };
                    (Append::Reach, moved)
                } else if feed == spine {
                    (Append::Advance, self.advance(changed, &item, place, spine)?)
                } else {
                    return None;
                }
            }
        };
        self.note_append(kind);
        moved.extend(self.shift_ahead());
        Some(moved)
    }

    /// An item of the spine is in another group.
    fn regroup(&self, was: &Item<G>, item: &Item<G>, spine: Feed) -> Option<()> {
        let is_in_spine =
            |item: &Item<G>| self.sizes(item.group).count(|feeds| !feeds.has(spine)) == 0;
        (item.at.of(spine).is_some() && is_in_spine(was) && is_in_spine(item)).then_some(())
    }

    /// The spine reaches an item that was ahead of it at `place`.
    fn advance(
        &mut self,
        changed: u32,
        item: &Item<G>,
        place: Place,
        spine: Feed,
    ) -> Option<Vec<usize>> {
        let last = self.last_of_spine_before(item, spine)?;
        let second = self.weaker(spine)?;
        let rank = item.rank(second)?;
        let last_place = self.items[last as usize].1;
        if place < last_place || !self.may_end_group(item, last, spine) {
            return None;
        }
        let (shared, rest) = self.rest_before(second, rank);
        let between =
            self.by_place.range((Excluded((last_place, last)), Excluded((place, changed))));
        let mut stretch: Vec<u32> = between.map(|(_, item)| *item).collect();
        let group = self.item(last)?.group;
        if group != item.group {
            let behind = self.rest_size(group, spine);
            let known = self.count_rest(group, spine, stretch.iter().rev().copied());
            if behind > known && behind > known + self.count_rest_before(group, spine, last) {
                return None;
            }
        }
        if let Some(shared) = shared.filter(|shared| *shared != last && !rest.is_empty()) {
            if !self.are_all(spine, second) {
                return None;
            }
            let first = self.item(shared)?.rank(spine)?;
            let own = item.rank(spine)?;
            let stronger = self.by_rank[spine.index()].range((Excluded(first), Excluded(own)));
            let stronger: Vec<u32> = stronger.map(|(_, item)| *item).collect();
            self.put(changed, place);
            return Some(self.weave_between(shared, changed, second, &rest, &stronger));
        }
        if rest.iter().any(|other| self.items[*other as usize].1 < last_place) {
            return None;
        }
        stretch.push(changed);
        Some(self.put_stretch(Some(last), &stretch, (place, changed)))
    }

    /// The spine has a new item at its end that no other feed has.
    fn add_to_spine(&mut self, changed: u32, item: &Item<G>, spine: Feed) -> Option<Vec<usize>> {
        let last = self.last_of_spine_before(item, spine)?;
        let second = self.weaker(spine);
        if !self.may_end_group(item, last, spine) {
            return None;
        }
        let last_item = self.item(last)?;
        // Rest items behind S that are before a shared one stay behind S.
        if let Some((second, rank)) =
            second.and_then(|second| Some((second, last_item.rank(second)?)))
            && self.last_shared[pair_of(spine, second)] > Some(rank)
        {
            return None;
        }
        let mut end = (self.items[last as usize].1, last);
        let mut stretch = Vec::new();
        if last_item.group.is_some() && last_item.group != item.group {
            for (place, other) in self.by_place.range((Excluded(end), Unbounded)) {
                if self.item(*other)?.group != last_item.group {
                    break;
                }
                end = (*place, *other);
                stretch.push(*other);
            }
            let rest = self.rest_size(last_item.group, spine);
            if rest > stretch.len()
                && rest > stretch.len() + self.count_rest_before(last_item.group, spine, last)
            {
                return None;
            }
        }
        if second.is_some_and(|second| self.has_items_below(second)) {
            let following = self.by_place.range((Excluded(end), Unbounded)).next();
            let around = stretch.iter().chain(following.map(|(_, item)| item));
            let woven = second.unwrap_or(spine);
            let mut around = around.filter_map(|other| self.item(*other));
            if !around.all(|other| FeedSet::of(&other).has_from(woven))
                || self.sizes(item.group).count(|feeds| !feeds.has_from(woven)) > 0
            {
                return None;
            }
        }
        stretch.push(changed);
        Some(self.put_stretch(Some(last), &stretch, end))
    }

    /// True if this item may become the last of its group in the spine, after `last`: no rest item
    /// of the group moves.
    fn may_end_group(&self, item: &Item<G>, last: u32, spine: Feed) -> bool {
        let sizes = self.sizes(item.group);
        self.item(last).is_some_and(|last| last.group == item.group)
            || sizes.count(|feeds| feeds.has(spine)) <= 1
            || sizes.count(|feeds| !feeds.has(spine)) == 0
    }

    /// Puts items behind `after`, in this order, and the items that follow behind them. `end`: the
    /// place and item in front of these until now.
    pub(super) fn put_stretch(
        &mut self,
        after: Option<u32>,
        stretch: &[u32],
        end: (Place, u32),
    ) -> Vec<usize> {
        let spine = self.spine();
        let last_of_spine = spine
            .and_then(|spine| self.by_rank[spine.index()].last_key_value())
            .map(|(_, item)| *item);
        for item in stretch {
            let place = self.items[*item as usize].1;
            self.by_place.remove(&(place, *item));
        }
        let place_of = |item: u32| self.items[item as usize].1;
        let mut last = after.map_or(Place(0), place_of);
        let mut is_ahead =
            last_of_spine.is_none_or(|item| !stretch.contains(&item) && place_of(item) <= last);
        let following = self.by_place.range((Excluded(end), Unbounded)).map(|(_, item)| *item);
        let mut placed = Vec::with_capacity(stretch.len());
        for (nth, at) in stretch.iter().copied().chain(following).enumerate() {
            let Some(item) = &self.items[at as usize].0 else { continue };
            last = place_after(last, item, spine, is_ahead.then_some(&self.shift));
            if nth >= stretch.len() && last == place_of(at) {
                break;
            }
            is_ahead |= last_of_spine == Some(at);
            placed.push((at, last));
        }
        for (item, place) in &placed {
            self.put(*item, *place);
        }
        placed.into_iter().map(|(item, _)| item as usize).collect()
    }

    pub(super) fn item(&self, at: u32) -> Option<Item<G>> {
        self.items.get(at as usize).and_then(|(item, _)| *item)
    }

    pub(super) fn spine(&self) -> Option<Feed> {
        Feed::ALL.into_iter().rev().find(|feed| self.feed_sizes[feed.index()] > 0)
    }

    /// The strongest feed with items below this one.
    pub(super) fn weaker(&self, than: Feed) -> Option<Feed> {
        let mut weaker = Feed::ALL.into_iter().rev().filter(|feed| *feed < than);
        weaker.find(|feed| self.feed_sizes[feed.index()] > 0)
    }

    pub(super) fn previous(&self, feed: Feed, rank: u64) -> Option<u32> {
        self.by_rank[feed.index()].range(..rank).next_back().map(|(_, item)| *item)
    }

    pub(super) fn next(&self, feed: Feed, rank: u64) -> Option<u32> {
        let next = self.by_rank[feed.index()].range((Excluded(rank), Unbounded)).next();
        next.map(|(_, item)| *item)
    }

    /// The item before this one in the spine, if this one is last.
    fn last_of_spine_before(&self, item: &Item<G>, spine: Feed) -> Option<u32> {
        let rank = item.rank(spine)?;
        self.next(spine, rank).is_none().then(|| self.previous(spine, rank)).flatten()
    }

    pub(super) fn sizes(&self, group: Option<G>) -> GroupSizes {
        group.and_then(|group| self.groups.get(&group)).copied().unwrap_or_default()
    }

    /// The number of items of a group that the spine lacks.
    fn rest_size(&self, group: Option<G>, spine: Feed) -> usize {
        self.sizes(group).count(|feeds| !feeds.has(spine))
    }

    fn count_rest(&self, group: Option<G>, spine: Feed, among: impl Iterator<Item = u32>) -> usize {
        let items = among.filter_map(|item| self.item(item));
        items.filter(|item| item.group == group && item.at.of(spine).is_none()).count()
    }

    /// As `count_rest`, among the items just before this one.
    fn count_rest_before(&self, group: Option<G>, spine: Feed, item: u32) -> usize {
        let before = self.by_place.range(..(self.items[item as usize].1, item)).rev();
        self.count_rest(group, spine, before.take(MAX_GROUP_WALK).map(|(_, item)| *item))
    }
}

impl<G: Copy + Eq> Item<G> {
    /// True if only the group is another.
    fn is_regrouped_to(&self, item: &Item<G>) -> bool {
        self.at == item.at && self.beside == item.beside && self.group != item.group
    }

    /// The feed that this item has got a position in, if nothing else changed.
    fn feed_that_reached(&self, item: &Item<G>) -> Option<Feed> {
        let mut changed = Feed::ALL.into_iter().filter(|feed| self.rank(*feed) != item.rank(*feed));
        let feed = changed.next()?;
        let is_new = self.at.of(feed).is_none() && item.at.of(feed).is_some();
        (is_new && changed.next().is_none() && self.group == item.group).then_some(feed)
    }
}
