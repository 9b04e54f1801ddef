//! A call that a rule forbids was made while the text of the rule was in the prompt. The rules and
//! what they forbid are the user's (`[[reflect.rules]]` in the config file).

use rustc_hash::FxHashSet;

use super::super::error_text::signature;
use super::{Entry, Finding, Found, History, Rule, cost_of_calls, evidence, times};

pub fn find(history: &History) -> Found {
    let mut found = Found::default();
    for (number, check) in history.checks.iter().enumerate() {
        let prompts = history.prompts.calls.iter().filter(|call| call.checks.contains(&number));
        let told: FxHashSet<(u32, u32)> = prompts.map(|call| (call.turn, call.step)).collect();
        let was_told =
            |entry: &Entry| entry.step.is_some_and(|step| told.contains(&(entry.turn, step)));
        let about: Vec<&Entry> = history
            .calls()
            .filter(|(entry, call)| check.is_about(call) && was_told(entry))
            .map(|(entry, _)| entry)
            .collect();
        let is_forbidden = |entry: &&Entry| entry.call().is_some_and(|call| check.forbids(call));
        let made: Vec<&Entry> = about.iter().copied().filter(is_forbidden).collect();
        found.opportunities += about.len() as u64;
        if made.is_empty() {
            continue;
        }
        found.findings.push(Finding {
            rule: Rule::RuleIgnored,
            signature: signature(["rule", &check.text]),
            title: format!(
                "“{}” was in the prompt and was not followed {}",
                check.text,
                times(made.len())
            ),
            count: made.len() as u64,
            opportunities: about.len() as u64,
            cost: cost_of_calls(made.iter().copied()),
            evidence: evidence(made, super::subject),
        });
    }
    found
}

#[cfg(test)]
#[path = "rule_ignored_tests.rs"]
mod tests;
