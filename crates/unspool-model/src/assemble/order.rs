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

/// How many items ahead of the spine are put right behind it, each moved whenever the spine grows.
pub(super) const MAX_SQUEEZED: usize = 16;

/// The last positions of a feed, which say nothing yet about what other feeds lack: an item may be
/// merged with that of another feed soon after it appeared.
pub(super) const RECENT: u32 = 16;

/// How far the items ahead of the spine are shifted, by feed.
///
/// If the spine has items that another feed lacks, its positions are greater than those of the other
/// feed for the same items. The places of items that the other feed has ahead would then be behind
/// those of the spine, and each item that the spine gets would move as many items as the feeds
/// differ by. So they are shifted by at least as many positions as the other feed lacks, rounded up
/// to a power of `SHIFT_STEP`: each item moves a few times, however long the turn is.
///
/// It depends on items alone, as places do. While few items are ahead it is zero, so that they stay
/// close to their likely places.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct AheadShift([u32; 3]);

/// The ratio of two shifts.
const SHIFT_STEP: u32 = 16;

impl AheadShift {
    /// `counted`: for a stronger and a weaker feed that both have items, the number of positions in
    /// the stronger one, without recent ones, and of items there that the weaker one has too.
    pub fn new(counted: impl Fn(Feed, Feed) -> Option<(u32, usize)>) -> AheadShift {
        let mut shift = AheadShift::default();
        for feed in Feed::ALL.into_iter().rev() {
            for stronger in Feed::ALL.into_iter().filter(|other| *other > feed) {
                let Some((positions, shared)) = counted(stronger, feed) else { continue };
                let lacking = positions.saturating_sub(u32::try_from(shared).unwrap_or(u32::MAX));
                let behind = shift.0[stronger.index()].saturating_add(rounded_up(lacking));
                shift.0[feed.index()] = behind.max(shift.0[feed.index()]);
            }
        }
        shift
    }

    pub fn of<'a, G: 'a>(items: impl Iterator<Item = &'a Item<G>> + Clone) -> AheadShift {
        AheadShift::new(|stronger, feed| {
            let last = items.clone().filter_map(|item| item.at.of(stronger)).max()?;
            items.clone().find(|item| item.at.of(feed).is_some())?;
            let old = last.saturating_add(1).saturating_sub(RECENT);
            let of_both = items.clone().filter(|item| item.at.of(feed).is_some());
            let shared = of_both.filter(|item| item.at.of(stronger).is_some_and(|at| at < old));
            Some((old, shared.count()))
        })
    }

    fn place(self, feed: Feed, position: u32) -> Place {
        spine_place(position.saturating_add(self.0[feed.index()]))
    }
}

fn rounded_up(lacking: u32) -> u32 {
    let mut shift = u32::from(lacking > 0);
    while shift < lacking {
        shift = shift.saturating_mul(SHIFT_STEP);
    }
    shift
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
    arrange_shifted(items, AheadShift::of(items.iter())).0
}

/// As `arrange`, if `items` are the last of an order, and `shift` is that of all its items. Also
/// returns the shift of the items that are ahead.
pub(super) fn arrange_shifted<G: Copy + Eq + Hash>(
    items: &[Item<G>],
    shift: AheadShift,
) -> (Vec<(usize, Place)>, AheadShift) {
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
    place(&order, items, spine, shift)
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
/// it catches up; many of them are shifted.
fn place<G>(
    order: &[usize],
    items: &[Item<G>],
    spine: Option<Feed>,
    shift: AheadShift,
) -> (Vec<(usize, Place)>, AheadShift) {
    let by_spine = |item: usize| spine.and_then(|spine| items[item].at.of(spine));
    let ahead = order.iter().rposition(|item| by_spine(*item).is_some()).map_or(0, |at| at + 1);
    let is_crowded = order.len() - ahead > MAX_SQUEEZED;
    let shift = if is_crowded { shift } else { AheadShift::default() };
    let mut last = Place(0);
    let placed = order.iter().enumerate().map(|(nth, &item)| {
        last = place_after(last, &items[item], spine, (nth >= ahead).then_some(&shift));
        (item, last)
    });
    (placed.collect(), shift)
}

/// The place of an item that follows one at `last`. `ahead`: the shift, if no item of the spine
/// follows.
pub(super) fn place_after<G>(
    last: Place,
    item: &Item<G>,
    spine: Option<Feed>,
    ahead: Option<&AheadShift>,
) -> Place {
    let between = Place(last.0 + 2);
    if let Some(position) = spine.and_then(|spine| item.at.of(spine)) {
        return spine_place(position);
    }
    let likely = ahead.and_then(|shift| {
        let feed = item.at.strongest()?;
        Some(shift.place(feed, item.at.of(feed)?))
    });
    likely.map_or(between, |likely| likely.max(between))
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
