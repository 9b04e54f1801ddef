//! The beginning of a prompt is not the prompt of the call before, so that the provider's cache does
//! not have it. A compaction changes it too, and is meant to.

use super::super::error_text::signature;
use super::super::prompts::CallPromptFacts;
use super::{Cost, Finding, Found, History, Rule, cut, times};
use crate::present::format;

/// A change behind which less than this many characters stand costs nothing.
const MIN_CHARS: u64 = 8_000;

pub fn find(history: &History) -> Found {
    let calls = &history.prompts.calls;
    let opportunities = calls.iter().filter(|call| call.change.is_some()).count() as u64;
    let mut groups: std::collections::BTreeMap<&str, Vec<&CallPromptFacts>> =
        std::collections::BTreeMap::new();
    for pair in calls.windows(2) {
        let [before, call] = pair else { continue };
        let Some(change) = call.change.as_ref().filter(|change| !change.compacted) else {
            continue;
        };
        // Another model has another cache.
        if change.lost_chars >= MIN_CHARS && before.model == call.model {
            groups.entry(&change.first).or_default().push(call);
        }
    }
    let finding = |(first, calls): (&str, Vec<&CallPromptFacts>)| {
        let mut cost = Cost::default();
        let mut evidence = Vec::new();
        for call in &calls {
            let lost = call.change.as_ref().map_or(0, |change| change.lost_chars);
            cost.add(Cost {
                tokens: Some(call.uncached_tokens).filter(|tokens| *tokens > 0),
                chars: Some(lost),
                ..Cost::default()
            });
            let cached = format::compact(call.cached_tokens);
            let what = format!(
                "{} characters after the change, {cached} tokens from the cache",
                format::compact(lost)
            );
            evidence.push(history.step_evidence(call.turn, call.step, what));
        }
        Finding {
            rule: Rule::PrefixChanged,
            signature: signature(["changed", first]),
            title: format!(
                "A prompt differs from the one before, first in its {first}, {}",
                times(calls.len())
            ),
            count: calls.len() as u64,
            opportunities,
            cost,
            evidence: cut(evidence),
        }
    };
    Found { opportunities, findings: groups.into_iter().map(finding).collect() }
}

#[cfg(test)]
#[path = "prefix_changed_tests.rs"]
mod tests;
