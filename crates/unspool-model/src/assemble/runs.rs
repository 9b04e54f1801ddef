//! Runs: prose that a stream reports without names (ACP). If the log has the same turn, each word
//! would be there twice. So the texts of the log are laid over the runs, white space ignored, and
//! what the log has is not shown: a run that it covers is hidden, of others the rest remains. The
//! result depends on the texts alone and not on which feed came first.
//!
//! Texts and runs are compared in gaps: a gap is what lies between two parts, mostly calls, that
//! both feeds have. This file keeps the gaps up to date, `words` compares texts, `settle` applies
//! the result.

mod gaps;
mod settle;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::part::Kind;
use crate::provenance::{Feed, Name};

use super::fold::PartFold;
use super::names::small;

use gaps::{Between, GapKey, Parts};
pub(super) use words::{Words, whole_run};

/// The runs of one turn, and what they are compared with. Which gap a run or a text is in follows
/// from the positions of shared parts, and is not kept: a new shared part moves all that is behind
/// it to another gap.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    roles: FxHashMap<u32, Role>,
    /// Runs by stream position, texts of the log by log position, both by kind.
    runs: [Parts; 2],
    texts: [Parts; 2],
    /// The runs of which something is hidden, and the texts that stand beside a run: those that a
    /// comparison must change if it finds nothing. By kind and position.
    covered: [Parts; 2],
    beside: [Parts; 2],
    /// Parts that both feeds have: the log position by stream position, and the reverse.
    shared: BTreeMap<u32, u32>,
    shared_in_log: BTreeMap<u32, u32>,
    /// Gaps with a text that was not found in the runs.
    incomplete: FxHashSet<GapKey>,
    /// Gaps to compare again.
    stale: BTreeSet<GapKey>,
    /// The number of runs and texts that were compared.
    #[cfg(test)]
    pub compared: usize,
}

/// What a part is in this comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Role {
    Run { kind: ProseRole, position: u32 },
    Text { kind: ProseRole, position: u32, words: Words },
    Shared { stream: u32, log: u32 },
}

/// Texts are compared with runs of their kind.
#[derive(Clone, Copy, PartialEq, Debug)]
enum ProseRole {
    Text,
    Reasoning,
}

impl ProseRole {
    const ALL: [ProseRole; 2] = [ProseRole::Text, ProseRole::Reasoning];

    /// A stream reports errors as text.
    fn of(kind: Kind) -> ProseRole {
        if kind == Kind::Reasoning { ProseRole::Reasoning } else { ProseRole::Text }
    }
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
            (Some(position), None) if self.is_run() => {
                Some(Role::Run { kind: ProseRole::of(self.kind), position })
            }
            (None, Some(position)) if !self.gone && self.words.length > 0 => {
                let kind = ProseRole::of(self.kind);
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
        if before != role {
            if let Some(before) = before {
                self.roles.remove(&at);
                self.remove(at, before);
            }
            if let Some(role) = role {
                self.roles.insert(at, role);
                self.add(at, role);
            }
        }
        let (set, position, is_in) = match role {
            Some(Role::Run { kind, position }) => {
                let is_covered = part.origin.hidden.is_some() || !part.origin.cut.is_empty();
                // What covered it before it became a run again may be gone.
                if is_covered && before != role {
                    self.stale.insert(self.gap_of_run(position));
                }
                (&mut self.covered[kind as usize], position, is_covered)
            }
            Some(Role::Text { kind, position, .. }) => {
                (&mut self.beside[kind as usize], position, part.beside.is_some())
            }
            Some(Role::Shared { .. }) | None => return,
        };
        if is_in {
            set.insert((position, at));
        } else {
            set.remove(&(position, at));
        }
    }

    fn add(&mut self, at: u32, role: Role) {
        match role {
            Role::Run { kind, position } => {
                let gap = self.gap_of_run(position);
                // A new run at the end changes nothing, unless the log has words that were not
                // found. Otherwise a capture without a log would compare all of its runs for each
                // of them.
                let later = Between { after: Some(position), ..self.runs_between(gap) };
                let later = |runs: &Parts| later.of(runs).next().is_some();
                if self.incomplete.contains(&gap) || self.runs.iter().any(later) {
                    self.stale.insert(gap);
                }
                self.runs[kind as usize].insert((position, at));
            }
            Role::Text { kind, position, .. } => {
                self.mark_texts_around(position);
                self.texts[kind as usize].insert((position, at));
                self.mark_texts_around(position);
            }
            Role::Shared { stream, log } => {
                self.mark_around(stream, log);
                self.shared.insert(stream, log);
                self.shared_in_log.insert(log, stream);
                self.mark_around(stream, log);
            }
        }
    }

    fn remove(&mut self, at: u32, role: Role) {
        match role {
            Role::Run { kind, position } => {
                self.runs[kind as usize].remove(&(position, at));
                self.covered[kind as usize].remove(&(position, at));
                self.stale.insert(self.gap_of_run(position));
            }
            Role::Text { kind, position, .. } => {
                self.mark_texts_around(position);
                self.texts[kind as usize].remove(&(position, at));
                self.beside[kind as usize].remove(&(position, at));
                self.mark_texts_around(position);
            }
            Role::Shared { stream, log } => {
                self.mark_around(stream, log);
                self.shared.remove(&stream);
                self.shared_in_log.remove(&log);
                self.incomplete.remove(&Some(stream));
                self.mark_around(stream, log);
            }
        }
    }

    /// A shared part at these positions comes or goes: what follows it may be in another gap.
    fn mark_around(&mut self, stream: u32, log: u32) {
        let gap = self.shared.range(..=stream).next_back().map(|(at, _)| *at);
        self.stale.insert(gap);
        self.mark_texts_around(log);
    }

    /// Something at this position of the log comes or goes: the texts beside it may be in another
    /// gap. Those behind them are not, since a text divides calls that were made at once.
    fn mark_texts_around(&mut self, position: u32) {
        let until = Between { after: None, before: position.checked_add(1) };
        let from = Between { after: Some(position), before: None };
        let before = self.texts.iter().filter_map(|texts| until.of(texts).next_back()).max();
        let behind = self.texts.iter().filter_map(|texts| from.of(texts).next()).min();
        for (text, _) in before.into_iter().chain(behind) {
            let gap = self.gap_of_text(*text);
            self.stale.insert(gap);
        }
    }

    /// The words of a run changed.
    pub fn touch(&mut self, at: usize) {
        if let Some(gap) = self.gap_of(at) {
            self.stale.insert(gap);
        }
    }

    /// True if the log has words in the gap of this run that were not found.
    pub fn may_cover_more(&self, at: usize) -> bool {
        self.gap_of(at).is_some_and(|gap| self.incomplete.contains(&gap))
    }

    /// The gap of a run.
    fn gap_of(&self, at: usize) -> Option<GapKey> {
        match self.roles.get(&small(at))? {
            Role::Run { position, .. } => Some(self.gap_of_run(*position)),
            Role::Text { .. } | Role::Shared { .. } => None,
        }
    }

    pub fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
