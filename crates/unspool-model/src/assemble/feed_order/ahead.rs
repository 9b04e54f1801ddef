//! How far the items ahead of the spine are shifted, kept up to date. `order::AheadShift` says what
//! the shift is for.

use std::hash::Hash;
use std::ops::Bound::{Excluded, Unbounded};

use crate::assemble::order::{AheadShift, MAX_SQUEEZED, RECENT, place_after};
use crate::provenance::Feed;

use super::{FeedOrder, pair_of};

impl<G: Copy + Eq + Hash> FeedOrder<G> {
    /// The shift that the items have if many of them are ahead.
    pub(super) fn shift_if_crowded(&self) -> AheadShift {
        if !self.has_unique_ranks() {
            let items = self.items.iter().filter_map(|(item, _)| item.as_ref());
            return AheadShift::of(items);
        }
        AheadShift::new(|stronger, feed| {
            let ranks = &self.by_rank[stronger.index()];
            let (_, last) = ranks.last_key_value().filter(|_| self.feed_sizes[feed.index()] > 0)?;
            let last = self.item(*last)?.at.of(stronger)?;
            let old = last.saturating_add(1).saturating_sub(RECENT);
            // The ranks of one position are three.
            let recent = ranks.range(3 * u64::from(old)..).filter_map(|(_, at)| self.item(*at));
            let recent = recent.filter(|item| item.at.of(feed).is_some()).count();
            Some((old, self.shared[pair_of(stronger, feed)] - recent))
        })
    }

    pub(super) fn has_unique_ranks(&self) -> bool {
        let is_unique =
            |feed: Feed| self.feed_sizes[feed.index()] == self.by_rank[feed.index()].len();
        Feed::ALL.into_iter().all(is_unique)
    }

    /// Places the items ahead of the spine again if their shift is another now. Returns them.
    pub(super) fn shift_ahead(&mut self) -> Vec<usize> {
        let spine = self.spine();
        let last = spine.and_then(|spine| self.by_rank[spine.index()].last_key_value());
        let Some(last) = last.map(|(_, last)| *last) else { return Vec::new() };
        let mut place = self.items[last as usize].1;
        let ahead = || self.by_place.range((Excluded((place, last)), Unbounded));
        let is_crowded = ahead().nth(MAX_SQUEEZED).is_some();
        let shift = if is_crowded { self.shift_if_crowded() } else { AheadShift::default() };
        if shift == self.shift {
            return Vec::new();
        }
        self.shift = shift;
        let ahead: Vec<u32> = ahead().map(|(_, item)| *item).collect();
        let mut moved = Vec::new();
        for at in ahead {
            let Some(item) = self.item(at) else { continue };
            place = place_after(place, &item, spine, Some(&shift));
            if place != self.items[at as usize].1 {
                self.put(at, place);
                moved.push(at as usize);
            }
        }
        moved
    }
}
