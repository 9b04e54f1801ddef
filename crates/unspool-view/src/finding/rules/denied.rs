//! Calls that a person, a rule or a hook denied, by tool and program.

use unspool_model::part::ToolState;
use unspool_model::tools::AsksUser;

use super::super::error_text::signature;
use super::{Cost, Entry, Finding, Found, Groups, History, Rule, evidence, times};

pub fn find(history: &History) -> Found {
    let calls = history.calls().count() as u64;
    let denied = |entry: &Entry| {
        let call = entry.call().filter(|call| call.state == ToolState::Denied)?;
        // Somebody who does not answer a question has denied nothing.
        if AsksUser::of(&call.tool) == AsksUser::Always {
            return None;
        }
        Some(call.name())
    };
    let finding = |(name, entries): (String, Vec<&Entry>)| {
        let say = |entry: &Entry| {
            let Some(call) = entry.call() else { return String::new() };
            match &call.denial {
                Some(why) if *why != call.subject => format!("{}: {why}", call.subject),
                Some(_) | None => call.subject.clone(),
            }
        };
        Finding {
            rule: Rule::Denied,
            title: format!("{name} was denied {}", times(entries.len())),
            signature: signature(["denied", &name]),
            count: entries.len() as u64,
            opportunities: history.calls().filter(|(_, call)| call.name() == name).count() as u64,
            cost: Cost { calls: Some(entries.len() as u64), ..Cost::default() },
            evidence: evidence(entries.iter().copied(), say),
        }
    };
    let groups = Groups::of(&history.entries, denied);
    Found { opportunities: calls, findings: groups.0.into_iter().map(finding).collect() }
}

#[cfg(test)]
#[path = "denied_tests.rs"]
mod tests;
