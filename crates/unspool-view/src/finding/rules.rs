//! The rules, one file each. A rule is a function from a session to what it found there, and how
//! often it could have found something.

pub mod context_blow_up;
pub mod denied;
pub mod edit_churn;
pub mod edit_missed;
pub mod fails_again;
pub mod idle_schemas;
pub mod interrupted;
pub mod prefix_changed;
pub mod read_again;
pub mod retries;
pub mod rule_gone;
pub mod rule_ignored;
pub mod same_call_again;
pub mod slow_step;

use std::collections::BTreeMap;

use super::history::{Entry, History};
use super::{Cost, Evidence, Finding, Found, Rule, cut};

/// Entries that show the same, by their signature and in their order.
struct Groups<'a>(BTreeMap<String, Vec<&'a Entry>>);

impl<'a> Groups<'a> {
    /// `signature` is `None` for an entry that shows nothing.
    fn of(
        entries: impl IntoIterator<Item = &'a Entry>,
        signature: impl Fn(&Entry) -> Option<String>,
    ) -> Groups<'a> {
        let mut groups: BTreeMap<String, Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            if let Some(signature) = signature(entry) {
                groups.entry(signature).or_default().push(entry);
            }
        }
        Groups(groups)
    }
}

/// What these calls cost: their number and the time that they ran.
fn cost_of_calls<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Cost {
    let mut cost = Cost::default();
    for call in entries.into_iter().filter_map(Entry::call) {
        cost.add(Cost::of_call(call.time));
    }
    cost
}

/// The evidence of entries, each with what `say` says of it.
fn evidence<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    say: impl Fn(&Entry) -> String,
) -> Vec<Evidence> {
    cut(entries.into_iter().map(|entry| entry.evidence(say(entry))).collect())
}

/// What a call is about.
fn subject(entry: &Entry) -> String {
    entry.call().map(|call| call.subject.clone()).unwrap_or_default()
}

/// `3 times`, `once`.
fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}
