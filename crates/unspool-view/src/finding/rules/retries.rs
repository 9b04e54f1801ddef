//! Model calls that failed: those that were made again, and those that ended their turn.

use super::super::error_text::{normalise, signature};
use super::super::history::What;
use super::{Cost, Entry, Finding, Found, History, Rule, cut, times};

pub fn find(history: &History) -> Found {
    let mut groups: std::collections::BTreeMap<String, Vec<usize>> =
        std::collections::BTreeMap::new();
    for (at, entry) in history.entries.iter().enumerate() {
        if let Some(text) = failure(entry) {
            groups.entry(normalise(text)).or_default().push(at);
        }
    }
    let failed: u64 = groups.values().map(|group| group.len() as u64).sum();
    let opportunities = history.model_calls.saturating_add(failed);
    let finding =
        |(text, group): (String, Vec<usize>)| finding(history, text, &group, opportunities);
    let findings = groups.into_iter().filter_map(finding).collect();
    Found { opportunities, findings }
}

fn failure(entry: &Entry) -> Option<&str> {
    match &entry.what {
        What::Retry(text) | What::Failure(text) => Some(text),
        What::Call(_) | What::Compaction { .. } | What::Other => None,
    }
}

fn finding(
    history: &History,
    text: String,
    group: &[usize],
    opportunities: u64,
) -> Option<Finding> {
    let mut cost = Cost::default();
    let mut evidence = Vec::new();
    for at in group {
        let entry = history.entries.get(*at)?;
        let lost = lost_ms(&history.entries[*at..]);
        cost.add(Cost { duration_ms: lost, calls: Some(1), ..Cost::default() });
        evidence.push(entry.evidence(failure(entry)?));
    }
    let last = failure(history.entries.get(*group.last()?)?)?;
    Some(Finding {
        rule: Rule::Retries,
        signature: signature(["model call", &text]),
        title: format!("A model call failed {}: {last}", times(group.len())),
        count: group.len() as u64,
        opportunities,
        cost,
        evidence: cut(evidence),
    })
}

/// The time from a failure that was tried again to what happened next in the turn.
fn lost_ms(from: &[Entry]) -> Option<u64> {
    let (failed, rest) = from.split_first()?;
    if !matches!(failed.what, What::Retry(_)) {
        return None;
    }
    let next =
        rest.iter().take_while(|entry| entry.turn == failed.turn).find_map(|entry| entry.at)?;
    u64::try_from(next.duration_since(failed.at?).as_millis()).ok()
}

#[cfg(test)]
#[path = "retries_tests.rs"]
mod tests;
