//! Gaps: what lies between two parts that both feeds have. The runs of a gap follow a shared part in
//! the stream. Its texts follow the same part in the log, or another one of the calls that were made
//! at once with it.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

use super::Runs;

/// How many calls in a row are compared to find the gap of a text: calls at once may be in another
/// order in the log than in the stream.
const MAX_CALLS_AT_ONCE: usize = 64;

/// A gap, by the stream position of the last shared part before it; `None` is the start.
pub(super) type GapKey = Option<u32>;

/// Parts by their position in a feed. Two parts may have the same one.
pub(super) type Parts = BTreeSet<(u32, u32)>;

/// Positions between two others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between {
    pub after: Option<u32>,
    pub before: Option<u32>,
}

impl Between {
    pub fn of(self, parts: &Parts) -> impl DoubleEndedIterator<Item = &(u32, u32)> + Clone {
        // A range that ends before it starts would panic.
        let is_empty = self.before.is_some_and(|before| self.after >= Some(before));
        let after = if is_empty { Some(u32::MAX) } else { self.after };
        let before = self.before.filter(|_| !is_empty);
        let start = after.map_or(Unbounded, |after| Excluded((after, u32::MAX)));
        parts.range((start, before.map_or(Unbounded, |before| Excluded((before, 0)))))
    }
}

impl Runs {
    /// The gap of a run: after the last shared part before it.
    pub(super) fn gap_of_run(&self, position: u32) -> GapKey {
        self.shared.range(..position).next_back().map(|(at, _)| *at)
    }

    /// The gap of a text: after the last in the stream of those shared parts that come right before
    /// it in the log.
    pub(super) fn gap_of_text(&self, position: u32) -> GapKey {
        let mut following: Option<u32> = None;
        let mut key = None;
        for (at, stream) in self.shared_in_log.range(..position).rev().take(MAX_CALLS_AT_ONCE) {
            if following.is_some_and(|next| self.has_text_between(*at, next)) {
                break;
            }
            following = Some(*at);
            key = key.max(Some(*stream));
        }
        key
    }

    fn has_text_between(&self, after: u32, before: u32) -> bool {
        let between = Between { after: Some(after), before: Some(before) };
        self.texts.iter().any(|texts| between.of(texts).next().is_some())
    }

    /// The stream positions of the runs of a gap.
    pub(super) fn runs_between(&self, gap: GapKey) -> Between {
        let start = gap.map_or(Unbounded, Excluded);
        let next = self.shared.range((start, Unbounded)).next();
        Between { after: gap, before: next.map(|(at, _)| *at) }
    }

    /// The log positions of the texts of a gap, if it has any.
    pub(super) fn texts_between(&self, gap: GapKey) -> Option<Between> {
        let mut after = match gap {
            Some(stream) => Some(*self.shared.get(&stream)?),
            None => None,
        };
        // Of the calls at once, the last one in the log.
        if let Some(last) = &mut after {
            let following = self.shared_in_log.range((Excluded(*last), Unbounded));
            let mut calls = following.map(|(at, _)| *at).take(MAX_CALLS_AT_ONCE);
            while let Some(call) = calls.next().filter(|call| !self.has_text_between(*last, *call))
            {
                *last = call;
            }
        }
        let start = after.map_or(Unbounded, Excluded);
        let next = self.shared_in_log.range((start, Unbounded)).next();
        let between = Between { after, before: next.map(|(at, _)| *at) };
        let (first, _) = self.texts.iter().find_map(|texts| between.of(texts).next())?;
        (self.gap_of_text(*first) == gap).then_some(between)
    }
}
