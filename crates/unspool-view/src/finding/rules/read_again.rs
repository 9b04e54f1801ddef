//! The same text is read into the prompt again and again. A file that changed meanwhile is another
//! text, and after a compaction the model has to read again what it needs.

use std::collections::BTreeMap;

use unspool_model::part::ToolState;

use super::super::call::Call;
use super::super::error_text::signature;
use super::super::history::What;
use super::{Cost, Entry, Finding, Found, History, Rule, cost_of_calls, evidence, subject, times};

/// From this many reads of one text on.
const MIN_READS: usize = 3;
/// Shorter texts cost nothing.
const MIN_CHARS: u64 = 200;

pub fn find(history: &History) -> Found {
    let reads = history.calls().filter(|(_, call)| call.is_read()).count() as u64;
    let all_chars: u64 = history.calls().map(|(_, call)| call.output_chars()).sum();
    let mut findings = Vec::new();
    let mut open: BTreeMap<u64, Vec<&Entry>> = BTreeMap::new();
    for entry in &history.entries {
        match &entry.what {
            What::Compaction { .. } => close(&mut open, &mut findings, reads, all_chars),
            What::Call(call) => {
                if let Some(digest) = text_read(call) {
                    open.entry(digest).or_default().push(entry);
                }
            }
            What::Retry(_) | What::Failure(_) | What::Other => {}
        }
    }
    close(&mut open, &mut findings, reads, all_chars);
    Found { opportunities: reads, findings }
}

/// The digest of what a call read.
fn text_read(call: &Call) -> Option<u64> {
    let output = call.output.filter(|output| output.chars >= MIN_CHARS)?;
    (call.is_read() && call.state == ToolState::Completed).then_some(output.digest)
}

fn close(
    open: &mut BTreeMap<u64, Vec<&Entry>>,
    findings: &mut Vec<Finding>,
    reads: u64,
    all_chars: u64,
) {
    let again = std::mem::take(open).into_values().filter(|entries| entries.len() >= MIN_READS);
    findings.extend(again.filter_map(|entries| finding(&entries, reads, all_chars)));
}

fn finding(entries: &[&Entry], reads: u64, all_chars: u64) -> Option<Finding> {
    let call = entries.first()?.call()?;
    let in_vain = &entries[1..];
    let chars: u64 = in_vain.iter().filter_map(|entry| entry.call()).map(Call::output_chars).sum();
    let mut cost = cost_of_calls(in_vain.iter().copied());
    cost.add(Cost::of_chars(chars));
    let percent = chars.saturating_mul(100) / all_chars.max(1);
    let share = match percent {
        0 => String::new(),
        percent => format!(", {percent} % of all output"),
    };
    let what = call.path.clone().unwrap_or_else(|| format!("The output of `{}`", call.subject));
    Some(Finding {
        rule: Rule::ReadAgain,
        signature: signature(["read", &what]),
        title: format!("{what} was read {} without a change{share}", times(entries.len())),
        count: entries.len() as u64,
        opportunities: reads,
        cost,
        evidence: evidence(entries.iter().copied(), subject),
    })
}

#[cfg(test)]
#[path = "read_again_tests.rs"]
mod tests;
