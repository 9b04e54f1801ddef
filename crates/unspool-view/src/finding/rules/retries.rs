//! Model calls that failed and were made again, and errors that the agent reports: of the provider, or
//! of itself. An error beside its retry is the reason for it.

use std::collections::BTreeMap;

use super::super::error_text::{normalise, signature};
use super::super::history::What;
use super::{Cost, Entry, Finding, Found, History, Rule, cut, times};

/// One failure: its entry, and why.
struct Failed<'a> {
    entry: &'a Entry,
    why: &'a str,
    /// What happened next in the turn.
    lost_ms: Option<u64>,
}

pub fn find(history: &History) -> Found {
    let mut retries: Vec<Failed<'_>> = Vec::new();
    let mut errors: BTreeMap<String, Vec<Failed<'_>>> = BTreeMap::new();
    for entries in history.by_turn() {
        for (at, entry) in entries.iter().enumerate() {
            let rest = &entries[at + 1..];
            let before = at.checked_sub(1).and_then(|before| entries.get(before));
            match &entry.what {
                What::Retry(text) => {
                    let why = before.and_then(error).unwrap_or(text);
                    retries.push(Failed { entry, why, lost_ms: lost_ms(entry, rest) });
                }
                What::Failure(text) if !rest.first().is_some_and(is_retry) => {
                    let failed = Failed { entry, why: text, lost_ms: None };
                    errors.entry(normalise(text)).or_default().push(failed);
                }
                What::Failure(_) | What::Call(_) | What::Compaction { .. } | What::Other => {}
            }
        }
    }
    let failed = retries.len() + errors.values().map(Vec::len).sum::<usize>();
    let opportunities = history.model_calls.saturating_add(failed as u64);
    let mut findings: Vec<Finding> = Vec::new();
    if let Some(last) = retries.last() {
        let title = format!("A model call was made again {}: {}", times(retries.len()), last.why);
        findings.push(finding("retry".to_owned(), title, &retries, opportunities));
    }
    for (text, group) in &errors {
        let Some(last) = group.last() else { continue };
        let title = format!("The agent reported an error {}: {}", times(group.len()), last.why);
        findings.push(finding(signature(["error", text]), title, group, opportunities));
    }
    Found { opportunities, findings }
}

fn error(entry: &Entry) -> Option<&str> {
    if let What::Failure(text) = &entry.what { Some(text) } else { None }
}

fn is_retry(entry: &Entry) -> bool {
    matches!(entry.what, What::Retry(_))
}

fn finding(signature: String, title: String, group: &[Failed<'_>], opportunities: u64) -> Finding {
    let mut cost = Cost::default();
    for failed in group {
        cost.add(Cost { duration_ms: failed.lost_ms, ..Cost::default() });
    }
    Finding {
        rule: Rule::Retries,
        signature,
        title,
        count: group.len() as u64,
        opportunities,
        cost,
        evidence: cut(group.iter().map(|failed| failed.entry.evidence(failed.why)).collect()),
    }
}

/// The time from a failure that was tried again to what happened next in the turn.
fn lost_ms(failed: &Entry, rest: &[Entry]) -> Option<u64> {
    let next = rest.iter().find_map(|entry| entry.at)?;
    u64::try_from(next.duration_since(failed.at?).as_millis()).ok()
}

#[cfg(test)]
#[path = "retries_tests.rs"]
mod tests;
