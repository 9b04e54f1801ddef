//! Runs: prose that a stream reports without names (ACP). If the log has the same turn, each word
//! would be there twice. So the texts of the log are laid over the runs, white space ignored, and
//! what the log has is not shown: a run that it covers is hidden, of others the rest remains. The
//! result depends on the texts alone and not on which feed came first.
//!
//! Texts and runs are compared in gaps: a gap is what lies between two parts, mostly calls, that
//! both feeds have. This file keeps the gaps up to date, `words` compares texts, `settle` applies
//! the result.

mod settle;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use rustc_hash::FxHashMap;

use crate::part::Kind;
use crate::provenance::{Feed, Name};

use super::fold::PartFold;
use super::names::small;

pub(super) use words::{Words, whole_run};

/// How many calls in a row are compared to find the gap of a text: calls at once may be in another
/// order in the log than in the stream.
const MAX_CALLS_AT_ONCE: usize = 64;

/// A gap, by the stream position of the last shared part before it; `None` is the start.
type GapKey = Option<u32>;

/// The runs of one turn, and what they are compared with.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Runs {
    roles: FxHashMap<u32, Role>,
    /// Runs by stream position, texts of the log by log position.
    runs: BTreeMap<u32, u32>,
    texts: BTreeMap<u32, u32>,
    /// Parts that both feeds have: the log position by stream position, and the reverse.
    shared: BTreeMap<u32, u32>,
    shared_in_log: BTreeMap<u32, u32>,
    gaps: FxHashMap<GapKey, Gap>,
    gap_of: FxHashMap<u32, GapKey>,
    /// Gaps to compare again.
    stale: BTreeSet<GapKey>,
}

/// The runs and texts of a gap, by position and part.
#[derive(Clone, PartialEq, Debug, Default)]
struct Gap {
    runs: BTreeSet<(u32, u32)>,
    texts: BTreeSet<(u32, u32)>,
    /// Some text was not found in the runs.
    incomplete: bool,
}

/// What a part is in this comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Role {
    Run { position: u32 },
    Text { kind: Kind, position: u32, words: Words },
    Shared { stream: u32, log: u32 },
}

impl PartFold {
    /// True for prose that only a stream reports, without a name.
    pub fn is_run(&self) -> bool {
        let unnamed = |name: &Name| matches!(name, Name::Nth(Feed::Stream, _));
        self.is_prose() && !self.gone && self.origin.names.iter().all(unnamed)
    }

    fn role(&self) -> Option<Role> {
        let [_, stream, log] = self.origin.at.0;
        match (stream, log) {
            (Some(position), None) if self.is_run() => Some(Role::Run { position }),
            (None, Some(position)) if !self.gone && self.words.length > 0 => {
                // A stream reports errors as text.
                let kind = if self.kind == Kind::Error { Kind::Text } else { self.kind };
                Some(Role::Text { kind, position, words: self.words })
            }
            (Some(stream), Some(log)) if !self.is_prose() && !self.gone => {
                Some(Role::Shared { stream, log })
            }
            (None | Some(_), None | Some(_)) => None,
        }
    }
}

impl Runs {
    pub fn of(parts: &[PartFold]) -> Runs {
        let mut runs = Runs::default();
        parts.iter().enumerate().for_each(|(at, part)| runs.update(at, part));
        runs
    }

    /// Notes a part that may have changed.
    pub fn update(&mut self, at: usize, part: &PartFold) {
        let (at, role) = (small(at), part.role());
        let before = self.roles.get(&at).copied();
        if before == role {
            return;
        }
        if let Some(before) = before {
            self.roles.remove(&at);
            self.remove(at, before);
        }
        if let Some(role) = role {
            self.roles.insert(at, role);
            self.add(at, role);
        }
    }

    fn add(&mut self, at: u32, role: Role) {
        match role {
            Role::Run { position } => {
                self.runs.insert(position, at);
                self.assign(at);
            }
            Role::Text { position, .. } => {
                self.texts.insert(position, at);
                self.assign(at);
                // It divides calls that were made at once.
                self.assign_texts_after(position);
            }
            Role::Shared { stream, log } => {
                self.shared.insert(stream, log);
                self.shared_in_log.insert(log, stream);
                self.assign_around(stream, log);
            }
        }
    }

    fn remove(&mut self, at: u32, role: Role) {
        match role {
            Role::Run { position } => {
                self.runs.remove(&position);
                self.leave(at, position);
            }
            Role::Text { position, .. } => {
                self.texts.remove(&position);
                self.leave(at, position);
                self.assign_texts_after(position);
            }
            Role::Shared { stream, log } => {
                self.shared.remove(&stream);
                self.shared_in_log.remove(&log);
                self.assign_around(stream, log);
            }
        }
    }

    /// A shared part at these positions is new or gone: what follows it may be in another gap.
    fn assign_around(&mut self, stream: u32, log: u32) {
        let next = self.shared.range((Excluded(stream), Unbounded)).next().map(|(at, _)| *at);
        let end = next.map_or(Unbounded, Excluded);
        let runs: Vec<u32> = self.runs.range((Excluded(stream), end)).map(|(_, at)| *at).collect();
        runs.into_iter().for_each(|run| self.assign(run));
        self.assign_texts_after(log);
    }

    /// Assigns the texts whose gap depends on what is at this position of the log.
    fn assign_texts_after(&mut self, position: u32) {
        let following = self.shared_in_log.range((Excluded(position), Unbounded));
        let mut from = position;
        let mut calls = following.map(|(at, _)| *at).take(MAX_CALLS_AT_ONCE).peekable();
        while let Some(call) = calls.next_if(|call| !self.has_text_between(from, *call)) {
            from = call;
        }
        let next = self.shared_in_log.range((Excluded(from), Unbounded)).next().map(|(at, _)| *at);
        let end = next.map_or(Unbounded, Excluded);
        let texts: Vec<u32> = self.texts.range((Excluded(from), end)).map(|(_, at)| *at).collect();
        texts.into_iter().for_each(|text| self.assign(text));
    }

    fn has_text_between(&self, after: u32, before: u32) -> bool {
        after < before && self.texts.range((Excluded(after), Excluded(before))).next().is_some()
    }

    /// The gap of a run: after the last shared part before it.
    fn gap_of_run(&self, position: u32) -> GapKey {
        self.shared.range(..position).next_back().map(|(at, _)| *at)
    }

    /// The gap of a text: after the last in the stream of those shared parts that come right before
    /// it in the log.
    fn gap_of_text(&self, position: u32) -> GapKey {
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

    /// Puts a run or a text into its gap.
    fn assign(&mut self, at: u32) {
        let (key, position) = match self.roles.get(&at) {
            Some(Role::Run { position }) => (self.gap_of_run(*position), *position),
            Some(Role::Text { position, .. }) => (self.gap_of_text(*position), *position),
            Some(Role::Shared { .. }) | None => return,
        };
        if self.gap_of.get(&at) == Some(&key) {
            return;
        }
        let moved = self.gap_of.contains_key(&at);
        self.leave(at, position);
        let is_run = matches!(self.roles.get(&at), Some(Role::Run { .. }));
        let gap = self.gaps.entry(key).or_default();
        // A new run at the end changes nothing, unless the log has words that were not found.
        // Otherwise a capture without a log would compare all of its runs for each of them.
        let is_last = gap.runs.last().is_none_or(|(last, _)| *last < position);
        let changes = !is_run || moved || gap.incomplete || !is_last;
        if is_run {
            gap.runs.insert((position, at))
        } else {
            gap.texts.insert((position, at))
        };
        self.gap_of.insert(at, key);
        if changes {
            self.stale.insert(key);
        }
    }

    fn leave(&mut self, at: u32, position: u32) {
        let Some(key) = self.gap_of.remove(&at) else { return };
        if let Some(gap) = self.gaps.get_mut(&key) {
            gap.runs.remove(&(position, at));
            gap.texts.remove(&(position, at));
        }
        self.stale.insert(key);
    }

    /// The words of a run changed.
    pub fn touch(&mut self, at: usize) {
        if let Some(key) = self.gap_of.get(&small(at)) {
            self.stale.insert(*key);
        }
    }

    /// True if the log has words in the gap of this run that were not found.
    pub fn may_cover_more(&self, at: usize) -> bool {
        let gap = self.gap_of.get(&small(at)).and_then(|key| self.gaps.get(key));
        gap.is_some_and(|gap| gap.incomplete)
    }

    pub fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }
}
