//! The prompts of a session lose an instruction file: a later call does not have it any more, or a
//! sub-agent never had it.

use std::collections::BTreeMap;

use super::super::error_text::signature;
use super::{Cost, Evidence, Finding, Found, History, Rule};

pub fn find(history: &History) -> Found {
    let calls = &history.prompts.calls;
    // The first and the last call with each file.
    let mut files: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        for file in call.instructions.iter() {
            files.entry(file).or_insert((at, at)).1 = at;
        }
    }
    let opportunities = files.len() as u64;
    let mut findings = Vec::new();
    for (file, (_, last)) in files {
        let mut evidence: Vec<Evidence> = Vec::new();
        let later = calls.get(last + 1);
        if let (Some(call), Some(without)) = (calls.get(last), later) {
            evidence.push(history.step_evidence(
                call.turn,
                call.step,
                format!("{file} is in the prompt"),
            ));
            let gone = format!("{file} is gone, and in no later prompt");
            evidence.push(history.step_evidence(without.turn, without.step, gone));
        }
        let agents = history.prompts.of_agents.iter();
        let without = agents.filter(|files| !files.iter().any(|held| held == file)).count();
        if evidence.is_empty() && (without == 0 || without < history.prompts.of_agents.len()) {
            continue;
        }
        let calls_without = later.map_or(0, |_| calls.len() - 1 - last);
        let title = match later {
            Some(_) => format!(
                "{file} was in the prompts and is not in the last {}",
                crate::present::format::count(calls_without, "call")
            ),
            None => {
                format!("{file} is in the prompts of the session and in none of its sub-agents")
            }
        };
        if evidence.is_empty() {
            let first = calls.get(last);
            evidence.extend(first.map(|call| {
                history.step_evidence(call.turn, call.step, format!("{file} is in the prompt"))
            }));
        }
        findings.push(Finding {
            rule: Rule::RuleGone,
            signature: signature(["gone", file]),
            title,
            count: 1,
            opportunities: 1,
            cost: Cost {
                calls: Some(calls_without as u64).filter(|calls| *calls > 0),
                ..Cost::default()
            },
            evidence,
        });
    }
    Found { opportunities, findings }
}

#[cfg(test)]
#[path = "rule_gone_tests.rs"]
mod tests;
