//! Applies what a comparison of runs and texts found: which runs are hidden, what is left of the
//! others, and where the texts of the log stand in the stream.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::assemble::Assembler;
use crate::assemble::fold::PartFold;
use crate::assemble::order::Beside;
use crate::assemble::part::PartIndex;
use crate::change::PartPatch;
use crate::provenance::HiddenReason;

use super::words::{self, Rest};
use super::{GapKey, ProseRole, Role};

/// Up to this size a growing run is compared after every delta, then each time it grew by a quarter.
const SMALL_RUN: usize = 4096;

/// What a comparison found: the parts that it may change.
#[derive(Default)]
struct Compared {
    /// What is left of runs.
    rests: Vec<(usize, Rest)>,
    /// The texts that stand beside a run, and those that no longer do.
    beside: Vec<(usize, Option<(u32, Beside)>)>,
    /// Some text was not found.
    incomplete: bool,
}

impl Compared {
    /// Changes are made in the order in which the parts were opened.
    fn sort(&mut self) {
        self.rests.sort_unstable_by_key(|(run, _)| *run);
        self.beside.sort_unstable_by_key(|(text, _)| *text);
    }
}

impl Rest {
    /// On which side of the run the text stands that was cut out last.
    fn side_of_last_cut(&self) -> Beside {
        let end = self.cut.last().map_or(0, |(at, _)| *at);
        let before = self.shown.get(..end).unwrap_or_default();
        if before.trim().is_empty() { Beside::Before } else { Beside::After }
    }
}

impl PartFold {
    /// The words of a run as the stream reported them.
    fn run_text(&self) -> &str {
        let closed = self.run.as_ref().map(|run| run.text.as_str());
        self.prose.as_ref().map(|prose| prose.text.as_str()).or(closed).unwrap_or_default()
    }
}

impl Assembler {
    /// Compares the gaps that changed.
    pub(in crate::assemble) fn settle_runs(&mut self) {
        while let Some(turn) = self.stale_runs.pop_first() {
            let Some(runs) = &mut self.turns[turn].lookups.runs else { continue };
            let mut changed = false;
            for gap in std::mem::take(&mut runs.stale) {
                let mut incomplete = false;
                for kind in ProseRole::ALL {
                    let Some(compared) = self.compare(turn, gap, kind) else { continue };
                    incomplete |= compared.incomplete;
                    for (run, rest) in compared.rests {
                        changed |= self.show_rest((turn, run), rest);
                    }
                    for (text, beside) in compared.beside {
                        if self.peek((turn, text)).beside != beside {
                            self.part((turn, text)).beside = beside;
                            changed = true;
                        }
                    }
                }
                let Some(runs) = &mut self.turns[turn].lookups.runs else { continue };
                if incomplete {
                    runs.incomplete.insert(gap);
                } else {
                    runs.incomplete.remove(&gap);
                }
            }
            if changed {
                self.arrange_parts(turn);
                self.settle(turn);
            }
        }
    }

    /// Compares runs and texts of one kind. Looks at the runs that have the texts, and at what a
    /// former comparison changed, but not at the runs behind them: a stream may be far ahead.
    fn compare(&mut self, turn: usize, gap: GapKey, kind: ProseRole) -> Option<Compared> {
        let fold = &mut self.turns[turn];
        let (held, parts) = (fold.lookups.runs.as_mut()?, &fold.parts);
        // The shared part may be gone: then the gap is part of the one before.
        if !gap.is_none_or(|at| held.shared.contains_key(&at)) {
            return None;
        }
        let kind = kind as usize;
        let (in_stream, in_log) = (held.runs_between(gap), held.texts_between(gap));
        let runs = in_stream.of(&held.runs[kind]);
        let run_text = |run: u32| parts[run as usize].run_text();
        let mut read = words::Runs::new(runs.clone().map(|(_, run)| run_text(*run)));
        let texts = in_log.iter().flat_map(|between| between.of(&held.texts[kind]));
        let found = read.find_in_order(texts.filter_map(|(_, text)| match held.roles.get(text)? {
            Role::Text { words, .. } => Some((*text, *words)),
            Role::Run { .. } | Role::Shared { .. } => None,
        }));
        let ranges: Vec<_> = found.texts.iter().map(|(_, range)| range.clone()).collect();
        // The last text that ends in a run stands at the run's position.
        let mut last_of: FxHashMap<usize, u32> = FxHashMap::default();
        let mut holding = BTreeSet::new();
        for (text, range) in &found.texts {
            let (first, last) = (read.run_of(range.start), read.run_of(range.end - 1));
            holding.extend(first..=last);
            last_of.insert(last, *text);
        }
        let end = holding.last().map_or(0, |last| last + 1);
        let mut rests: FxHashMap<u32, Rest> = FxHashMap::default();
        let mut beside: FxHashMap<u32, (u32, Beside)> = FxHashMap::default();
        for (nth, (position, run)) in runs.enumerate().take(end) {
            if !holding.contains(&nth) {
                continue;
            }
            let rest = read.without(nth, &ranges);
            if let Some(text) = last_of.get(&nth) {
                beside.insert(*text, (*position, rest.side_of_last_cut()));
            }
            rests.insert(*run, rest);
        }
        let mut compared = Compared { incomplete: found.incomplete, ..Compared::default() };
        #[cfg(test)]
        let counted = read.count_read() + found.tried;
        for (_, run) in in_stream.of(&held.covered[kind]) {
            let whole = || Rest { shown: run_text(*run).to_owned(), cut: Vec::new() };
            compared.rests.push((*run as usize, rests.remove(run).unwrap_or_else(whole)));
        }
        compared.rests.extend(rests.into_iter().map(|(run, rest)| (run as usize, rest)));
        for (_, text) in in_log.iter().flat_map(|between| between.of(&held.beside[kind])) {
            compared.beside.push((*text as usize, beside.remove(text)));
        }
        compared.beside.extend(beside.into_iter().map(|(text, at)| (text as usize, Some(at))));
        compared.sort();
        #[cfg(test)]
        {
            held.compared += counted;
        }
        Some(compared)
    }

    /// Shows what is left of a run. Returns whether that is new.
    fn show_rest(&mut self, at: PartIndex, rest: Rest) -> bool {
        let hidden = rest.shown.trim().is_empty() && !rest.cut.is_empty();
        let part = self.part(at);
        // A hidden run keeps its words.
        let Rest { shown, cut } =
            if hidden { Rest { shown: part.run_text().to_owned(), cut: Vec::new() } } else { rest };
        let reason = hidden.then_some(HiddenReason::CoveredFragment);
        if part.origin.hidden == reason && part.origin.cut == cut {
            return false;
        }
        let text = (part.origin.cut != cut).then_some(shown);
        part.origin.hidden = reason;
        part.origin.cut = cut;
        match text {
            Some(text) => {
                self.emit_part_patch(at, PartPatch { text: Some(text), ..PartPatch::default() });
            }
            None => self.emit_origin(at),
        }
        true
    }

    /// A run got more words.
    pub(in crate::assemble) fn note_run_growth(&mut self, at: PartIndex) {
        let fold = &mut self.turns[at.0];
        let part = &mut fold.parts[at.1];
        let Some(runs) = fold.lookups.runs.as_mut().filter(|_| part.is_run()) else { return };
        let size = part.run_text().len();
        let run = part.run.get_or_insert_default();
        let compare = size <= SMALL_RUN || size >= run.compared_at + run.compared_at / 4;
        if part.origin.hidden.is_some() || (compare && runs.may_cover_more(at.1)) {
            run.compared_at = size;
            runs.touch(at.1);
            self.stale_runs.insert(at.0);
        }
    }

    /// A run is complete. `replaced`: its words are others than before.
    pub(in crate::assemble) fn note_run_end(&mut self, at: PartIndex, replaced: bool) {
        if let Some(runs) = &mut self.turns[at.0].lookups.runs
            && (replaced || runs.may_cover_more(at.1))
        {
            runs.touch(at.1);
            self.stale_runs.insert(at.0);
        }
    }
}
