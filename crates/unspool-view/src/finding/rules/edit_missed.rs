//! An edit is to replace text that is not in the file: the file changed, or was never read.

use super::super::error_text::signature;
use super::{Entry, Finding, Found, Groups, History, Rule, cost_of_calls, evidence, times};

pub fn find(history: &History) -> Found {
    let edits = history.calls().filter(|(_, call)| call.is_edit()).count() as u64;
    let missed = |entry: &Entry| {
        let call = entry.call().filter(|call| call.missed)?;
        Some(call.path.clone().unwrap_or_else(|| call.subject.clone()))
    };
    let groups = Groups::of(&history.entries, missed);
    let finding = |(path, entries): (String, Vec<&Entry>)| {
        let error =
            |entry: &Entry| entry.call().and_then(|call| call.error.clone()).unwrap_or_default();
        let count = entries.len();
        Finding {
            rule: Rule::EditMissed,
            title: format!("An edit of {path} missed {}", times(count)),
            signature: signature(["edit", &path]),
            count: count as u64,
            opportunities: edits,
            cost: cost_of_calls(entries.iter().copied()),
            evidence: evidence(entries.iter().copied(), error),
        }
    };
    Found { opportunities: edits, findings: groups.0.into_iter().map(finding).collect() }
}

#[cfg(test)]
#[path = "edit_missed_tests.rs"]
mod tests;
