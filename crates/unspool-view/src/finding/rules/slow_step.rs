//! Calls that ran far longer than calls of their tool usually do, and waiting with `sleep`.

use super::super::error_text::signature;
use super::{Cost, Entry, Finding, Found, History, Rule, cost_of_calls, evidence, times};
use crate::present::format;
use unspool_model::tools::Family;

/// Shorter calls are not slow, whatever is usual.
const MIN_MS: u64 = 30_000;
/// How many times as long as 95 % of the calls of its tool.
const FACTOR: u64 = 3;
/// From this many calls in a turn that sleep on, it is polling.
const MIN_LOOKS: usize = 3;

pub fn find(history: &History) -> Found {
    let calls = history.calls().count() as u64;
    let mut findings: Vec<Finding> =
        history.entries.iter().filter_map(|entry| slow(history, entry)).collect();
    findings.extend(history.by_turn().filter_map(|entries| polling(entries, calls)));
    Found { opportunities: calls, findings }
}

fn slow(history: &History, entry: &Entry) -> Option<Finding> {
    let call = entry.call()?;
    let time = call.time?;
    let usual = history.times.p95(&call.tool)?;
    // A sub-agent's own calls are in its session, and a call that waits was made to wait.
    let is_long_by_nature = call.family == Some(Family::StartAgent) || call.is_waiting();
    // Nobody knows how long the person took.
    let has_person = call.asked && time.may_include_waiting;
    let limit = usual.saturating_mul(FACTOR);
    if is_long_by_nature || has_person || time.ran_ms <= MIN_MS || time.ran_ms <= limit {
        return None;
    }
    let (ran, usual) = (format::duration(time.ran_ms), format::duration(usual));
    let perhaps = match time.may_include_waiting {
        true => ", which may include waiting for permission",
        false => "",
    };
    let name = call.name();
    Some(Finding {
        rule: Rule::SlowStep,
        signature: signature(["slow", &name]),
        title: format!(
            "{name} took {ran}{perhaps}; 95 % of the calls of {} end within {usual}",
            call.tool
        ),
        count: 1,
        opportunities: history.calls().filter(|(_, other)| other.name() == name).count() as u64,
        cost: cost_of_calls([entry]),
        evidence: evidence([entry], super::subject),
    })
}

/// Sleeping again and again in one turn.
fn polling(entries: &[Entry], calls: u64) -> Option<Finding> {
    let sleep = |entry: &Entry| entry.call()?.command.as_ref()?.sleeps;
    let looks: Vec<&Entry> = entries.iter().filter(|entry| sleep(entry).is_some()).collect();
    // What was slept is at most what the call took: a loop may have ended early, and so may a call.
    let slept_by = |entry: &Entry| {
        let wanted =
            sleep(entry).map_or(0, |sleeps| u64::try_from(sleeps.as_millis()).unwrap_or(u64::MAX));
        entry.call().and_then(|call| call.time).map_or(wanted, |time| wanted.min(time.ran_ms))
    };
    let slept: u64 = looks.iter().map(|entry| slept_by(entry)).fold(0, u64::saturating_add);
    if looks.len() < MIN_LOOKS || slept <= MIN_MS {
        return None;
    }
    let looked = looks.len() as u64;
    Some(Finding {
        rule: Rule::SlowStep,
        signature: "polling with sleep".to_owned(),
        title: format!(
            "Commands slept {} in one turn, {} in all",
            times(looks.len()),
            format::duration(slept)
        ),
        count: looked,
        opportunities: calls,
        cost: Cost { calls: Some(looked), duration_ms: Some(slept), ..Cost::default() },
        evidence: evidence(looks, super::subject),
    })
}

#[cfg(test)]
#[path = "slow_step_tests.rs"]
mod tests;
