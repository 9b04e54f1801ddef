//! A tool fails in the same way again and again. Commands count by their program, since all of them
//! are calls of one tool. Edits of text that is not there have a rule of their own.

use unspool_model::part::ToolState;

use super::super::error_text::{normalise, signature};
use super::{Entry, Finding, Found, Groups, History, Rule, cost_of_calls, evidence, times};

/// From this many equal failures on.
pub const MIN_FAILURES: usize = 3;

/// What is the same in failures of one kind. `None` for a call that did not fail.
pub fn signature_of(entry: &Entry) -> Option<String> {
    let call = entry.call()?;
    let error = call.error.as_deref()?;
    if call.state != ToolState::Failed || call.missed || is_consequence(error) {
        return None;
    }
    Some(signature([call.name().as_str(), normalise(error).as_str()]))
}

/// Claude Code does not run a call if one that was made at the same time failed.
fn is_consequence(error: &str) -> bool {
    error.starts_with("Sibling tool call errored")
        || error.starts_with("Cancelled: parallel tool call")
}

pub fn find(history: &History) -> Found {
    let groups = Groups::of(&history.entries, signature_of);
    let calls = history.calls().count() as u64;
    let again = groups.0.into_iter().filter(|(_, entries)| entries.len() >= MIN_FAILURES);
    let findings = again.map(|(signature, entries)| finding(history, signature, &entries));
    Found { opportunities: calls, findings: findings.collect() }
}

fn finding(history: &History, signature: String, entries: &[&Entry]) -> Finding {
    let call = |entry: &Entry| entry.call().map(|call| (call.name(), call.error.clone()));
    let (name, error) = entries.last().and_then(|last| call(last)).unwrap_or_default();
    let of_tool = history.calls().filter(|(_, call)| call.name() == name).count() as u64;
    Finding {
        rule: Rule::FailsAgain,
        title: format!("{name} failed {}: {}", times(entries.len()), error.unwrap_or_default()),
        signature,
        count: entries.len() as u64,
        opportunities: of_tool,
        cost: cost_of_calls(entries.iter().copied()),
        evidence: evidence(entries.iter().copied(), super::subject),
    }
}

#[cfg(test)]
#[path = "fails_again_tests.rs"]
mod tests;
