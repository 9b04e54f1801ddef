//! Applies what a comparison of runs and texts found: which runs are hidden, what is left of the
//! others, and where the texts of the log stand in the stream.

use crate::assemble::Assembler;
use crate::assemble::fold::PartFold;
use crate::assemble::order::Beside;
use crate::assemble::part::PartIndex;
use crate::change::PartPatch;
use crate::part::Kind;
use crate::provenance::HiddenReason;

use super::words::{self, Rest, Words};
use super::{GapKey, Role};

/// Up to this size a growing run is compared after every delta, then each time it grew by a quarter.
const SMALL_RUN: usize = 4096;

/// The runs and the texts of one kind in a gap, in order.
struct Compared {
    /// Their parts and stream positions.
    runs: Vec<(usize, u32)>,
    texts: Vec<(usize, Words)>,
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
                for kind in [Kind::Text, Kind::Reasoning] {
                    let (is_new, lacks) = self.compare(turn, gap, kind);
                    changed |= is_new;
                    incomplete |= lacks;
                }
                if let Some(runs) = &mut self.turns[turn].lookups.runs
                    && let Some(gap) = runs.gaps.get_mut(&gap)
                {
                    gap.incomplete = incomplete;
                }
            }
            if changed {
                self.arrange_parts(turn);
                self.settle(turn);
            }
        }
    }

    /// Compares runs and texts of one kind. Returns whether anything changed, and whether a text
    /// was not found.
    fn compare(&mut self, turn: usize, gap: GapKey, kind: Kind) -> (bool, bool) {
        let Some(Compared { runs, texts }) = self.compared(turn, gap, kind) else {
            return (false, false);
        };
        let parts = &self.turns[turn].parts;
        let held = words::Runs::new(runs.iter().map(|(run, _)| parts[*run].run_text()).collect());
        let digests: Vec<Words> = texts.iter().map(|(_, words)| *words).collect();
        let found = held.find_in_order(&digests);
        let ranges: Vec<_> = found.iter().flatten().cloned().collect();
        let rests: Vec<Rest> = (0..runs.len()).map(|run| held.without(run, &ranges)).collect();
        // The last text that ends in a run stands at the run's position.
        let mut beside: Vec<Option<(u32, Beside)>> = vec![None; texts.len()];
        let mut last_of = vec![None; runs.len()];
        for (text, range) in found.iter().enumerate() {
            if let Some(run) = range.as_ref().and_then(|range| held.end_of(range)) {
                last_of[run] = Some(text);
            }
        }
        for (run, text) in last_of.into_iter().enumerate() {
            let Some(text) = text else { continue };
            let Rest { shown, cut } = &rests[run];
            let before = shown.get(..cut.last().map_or(0, |(at, _)| *at)).unwrap_or_default();
            let side = if before.trim().is_empty() { Beside::Before } else { Beside::After };
            beside[text] = Some((runs[run].1, side));
        }
        let mut changed = false;
        for ((run, _), rest) in runs.into_iter().zip(rests) {
            changed |= self.show_rest((turn, run), rest);
        }
        for ((text, _), beside) in texts.into_iter().zip(beside) {
            if self.peek((turn, text)).beside != beside {
                self.part((turn, text)).beside = beside;
                changed = true;
            }
        }
        (changed, found.iter().any(Option::is_none))
    }

    fn compared(&self, turn: usize, gap: GapKey, kind: Kind) -> Option<Compared> {
        let fold = &self.turns[turn];
        let held = fold.lookups.runs.as_ref()?;
        let gap = held.gaps.get(&gap)?;
        let runs = gap.runs.iter().map(|(position, run)| (*run as usize, *position));
        let runs: Vec<_> = runs.filter(|(run, _)| fold.parts[*run].kind == kind).collect();
        let texts = gap.texts.iter().filter_map(|(_, text)| match held.roles.get(text)? {
            Role::Text { kind: of, words, .. } if *of == kind => Some((*text as usize, *words)),
            Role::Text { .. } | Role::Run { .. } | Role::Shared { .. } => None,
        });
        Some(Compared { runs, texts: texts.collect() })
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
