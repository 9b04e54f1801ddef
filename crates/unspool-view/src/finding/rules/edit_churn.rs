//! One file is edited many times in a turn, and lines that an edit wrote are gone after a later one.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::super::call::Edit;
use super::super::error_text::signature;
use super::{Entry, Finding, Found, History, Rule, cost_of_calls, evidence, times};

/// From this many edits of a file in a turn on.
const MIN_EDITS: usize = 4;
/// And from this many lines on that were written and then rewritten.
const MIN_LINES: u64 = 5;

#[derive(Default)]
struct File<'a> {
    entries: Vec<&'a Entry>,
    /// The lines that the edits of this turn wrote and that are still there.
    written: FxHashSet<u64>,
    rewritten: u64,
}

pub fn find(history: &History) -> Found {
    let edits = history.calls().map(|(_, call)| call.edits.len() as u64).sum();
    let mut findings = Vec::new();
    for entries in history.by_turn() {
        let mut files: BTreeMap<&str, File<'_>> = BTreeMap::new();
        for entry in entries {
            for edit in entry.call().into_iter().flat_map(|call| &call.edits) {
                files.entry(&edit.path).or_default().add(entry, edit);
            }
        }
        let churned =
            |file: &File<'_>| file.entries.len() >= MIN_EDITS && file.rewritten >= MIN_LINES;
        let churned = files.into_iter().filter(|(_, file)| churned(file));
        findings.extend(churned.map(|(path, file)| finding(path, &file, edits)));
    }
    Found { opportunities: edits, findings }
}

impl<'a> File<'a> {
    fn add(&mut self, entry: &'a Entry, edit: &Edit) {
        self.entries.push(entry);
        if edit.replaces_all {
            let kept: FxHashSet<u64> = edit.added.iter().copied().collect();
            let gone = self.written.iter().filter(|line| !kept.contains(line)).count();
            self.rewritten += gone as u64;
            self.written = kept;
            return;
        }
        for line in &edit.removed {
            self.rewritten += u64::from(self.written.remove(line));
        }
        self.written.extend(&edit.added);
    }
}

fn finding(path: &str, file: &File<'_>, edits: u64) -> Finding {
    let (count, lines) = (file.entries.len(), file.rewritten);
    let wrote = |entry: &Entry| {
        let all = entry.call().into_iter().flat_map(|call| &call.edits);
        let (mut added, mut removed) = (0, 0);
        for edit in all.filter(|edit| edit.path == path) {
            added += edit.added.len();
            removed += edit.removed.len();
        }
        format!("+{added} −{removed} lines")
    };
    let cost = cost_of_calls(file.entries.iter().copied());
    Finding {
        rule: Rule::EditChurn,
        signature: signature(["edit", path]),
        title: format!(
            "{path} was edited {} in a turn; {lines} lines were written and then rewritten",
            times(count)
        ),
        count: count as u64,
        opportunities: edits,
        cost,
        evidence: evidence(file.entries.iter().copied(), wrote),
    }
}

#[cfg(test)]
#[path = "edit_churn_tests.rs"]
mod tests;
