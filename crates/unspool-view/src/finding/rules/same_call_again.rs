//! A call is made again in the same turn although nothing changed between, and its result is the
//! same. Reading a file again has a rule of its own, and so has waiting.

use rustc_hash::FxHashMap;
use unspool_model::part::ToolState;
use unspool_model::tools::Family;

use super::super::call::Call;
use super::super::error_text::signature;
use super::{Cost, Entry, Finding, Found, History, Rule, cost_of_calls, evidence, subject, times};

/// From this many equal calls on.
const MIN_CALLS: usize = 3;

/// The tool, its input and its output without numbers.
type Key<'a> = (&'a str, u64, Option<u64>);

pub fn find(history: &History) -> Found {
    let mut findings = Vec::new();
    for entries in history.by_turn() {
        let mut open: FxHashMap<Key<'_>, Vec<&Entry>> = FxHashMap::default();
        for entry in entries {
            let Some(call) = entry.call() else { continue };
            let counts = counts(call);
            if call.may_change_files() {
                // What an equal call changes is the same as before.
                let same = open.remove(&key(call)).filter(|_| counts && !call.is_edit());
                close(&mut open, &mut findings, history);
                open.extend(same.map(|same| (key(call), same)));
            }
            if counts {
                open.entry(key(call)).or_default().push(entry);
            }
        }
        close(&mut open, &mut findings, history);
    }
    Found { opportunities: history.calls().count() as u64, findings }
}

fn key(call: &Call) -> Key<'_> {
    (&call.tool, call.input, call.output.map(|output| output.loose_digest))
}

/// True for a call that has no reason to be made twice.
fn counts(call: &Call) -> bool {
    let has_reason = match call.family {
        Some(
            Family::BackgroundOutput
            | Family::ListTasks
            | Family::AskQuestion
            | Family::ExitPlanMode
            | Family::StartAgent,
        ) => true,
        Some(_) | None => false,
    };
    call.state == ToolState::Completed && !has_reason && !call.is_read() && !call.is_waiting()
}

fn close(
    open: &mut FxHashMap<Key<'_>, Vec<&Entry>>,
    findings: &mut Vec<Finding>,
    history: &History,
) {
    let mut again: Vec<Vec<&Entry>> =
        open.drain().map(|(_, calls)| calls).filter(|calls| calls.len() >= MIN_CALLS).collect();
    again.sort_by_key(|calls| calls.first().map(|entry| entry.part));
    findings.extend(again.iter().filter_map(|calls| finding(calls, history)));
}

fn finding(calls: &[&Entry], history: &History) -> Option<Finding> {
    let call = calls.first()?.call()?;
    let name = call.name();
    let in_vain = &calls[1..];
    let chars: u64 = in_vain.iter().filter_map(|entry| entry.call()).map(Call::output_chars).sum();
    let mut cost = cost_of_calls(in_vain.iter().copied());
    cost.add(Cost::of_chars(chars));
    Some(Finding {
        rule: Rule::SameCallAgain,
        signature: signature([name.as_str(), call.subject.as_str()]),
        title: format!("{name} was called {} with the same input and result", times(calls.len())),
        count: calls.len() as u64,
        opportunities: history.calls().filter(|(_, other)| other.name() == name).count() as u64,
        cost,
        evidence: evidence(calls.iter().copied(), subject),
    })
}

#[cfg(test)]
#[path = "same_call_again_tests.rs"]
mod tests;
