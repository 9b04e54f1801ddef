//! One output fills a large share of the model's window, or the conversation is compacted in the
//! middle of a turn.

use std::collections::BTreeMap;

use unspool_model::part::ToolState;

use super::super::CHARS_PER_TOKEN;
use super::super::call::Call;
use super::super::error_text::signature;
use super::super::history::What;
use super::{Cost, Entry, Evidence, Finding, Found, History, Rule, cut, subject, times};
use crate::present::format;

/// Percent of the window.
const MAX_SHARE: u64 = 10;
/// The largest outputs before a compaction that are named.
const MAX_NAMED: usize = 3;

pub fn find(history: &History) -> Found {
    let mut findings = large_outputs(history);
    findings.extend(compactions(history));
    Found { opportunities: history.model_calls, findings }
}

fn large_outputs(history: &History) -> Vec<Finding> {
    let models: BTreeMap<u32, &str> = history
        .turns
        .iter()
        .filter_map(|turn| Some((turn.number, turn.model.as_deref()?)))
        .collect();
    let large = |(entry, call): (&Entry, &Call)| {
        let window = *history.windows.get(*models.get(&entry.turn)?)?;
        let tokens = call.output_chars() / CHARS_PER_TOKEN;
        let percents = tokens.saturating_mul(100);
        if percents <= window.saturating_mul(MAX_SHARE) || call.state == ToolState::Denied {
            return None;
        }
        let share = percents.checked_div(window)?;
        let name = call.name();
        Some(Finding {
            rule: Rule::ContextBlowUp,
            signature: signature(["large output", &name]),
            title: format!("The output of {name} fills about {share} % of the model's window"),
            count: 1,
            opportunities: history.model_calls,
            cost: Cost::of_chars(call.output_chars()),
            evidence: vec![entry.evidence(format!(
                "{}: {} characters",
                call.subject,
                format::compact(call.output_chars())
            ))],
        })
    };
    history.calls().filter_map(large).collect()
}

/// Compactions with work of the same turn before and after them.
fn compactions(history: &History) -> Option<Finding> {
    let mut evidence: Vec<Evidence> = Vec::new();
    let mut cost = Cost::default();
    let mut count = 0;
    // Since the last compaction.
    let mut before: Vec<(&Entry, u64)> = Vec::new();
    for entries in history.by_turn() {
        let is_work = |entry: &Entry| matches!(entry.what, What::Call(_));
        for (at, entry) in entries.iter().enumerate() {
            match &entry.what {
                What::Compaction { automatic, tokens_before, tokens_after, duration_ms } => {
                    let inside =
                        entries[..at].iter().any(is_work) && entries[at..].iter().any(is_work);
                    if *automatic && inside {
                        count += 1;
                        cost.add(Cost { duration_ms: *duration_ms, ..Cost::default() });
                        evidence.push(entry.evidence(compacted(*tokens_before, *tokens_after)));
                        evidence.extend(largest(&mut before));
                    }
                    before.clear();
                }
                What::Call(call) => before.push((entry, call.output_chars())),
                What::Retry(_) | What::Failure(_) | What::Other => {}
            }
        }
    }
    (count > 0).then(|| Finding {
        rule: Rule::ContextBlowUp,
        signature: "compaction inside a turn".to_owned(),
        title: format!("The conversation was compacted {} in the middle of a turn", times(count)),
        count: count as u64,
        opportunities: history.model_calls,
        cost,
        evidence: cut(evidence),
    })
}

fn compacted(before: Option<u64>, after: Option<u64>) -> String {
    let tokens =
        |tokens: Option<u64>| tokens.map_or("an unknown number".to_owned(), format::compact);
    match (before, after) {
        (None, None) => "compacted".to_owned(),
        (before, after) => format!("from {} to {} tokens", tokens(before), tokens(after)),
    }
}

fn largest(before: &mut [(&Entry, u64)]) -> Vec<Evidence> {
    before.sort_by_key(|(_, chars)| std::cmp::Reverse(*chars));
    let named = before.iter().take(MAX_NAMED).filter(|(_, chars)| *chars > 0);
    let say = |(entry, chars): &(&Entry, u64)| {
        entry.evidence(format!("{}: {} characters", subject(entry), format::compact(*chars)))
    };
    named.map(say).collect()
}

#[cfg(test)]
#[path = "context_blow_up_tests.rs"]
mod tests;
