//! Findings that take several sessions: a failure that comes once in each, and tools that no session
//! needs. A pure function over what each session says, newest first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unspool_model::id::SessionId;

use super::rules::{fails_again, idle_schemas};
use super::{Cost, Evidence, Finding, History, Rule};

/// From this many sessions on.
const MIN_SESSIONS: usize = 3;

/// What a session says that only counts together with others.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Shared {
    /// Failures by signature.
    failures: BTreeMap<String, Failures>,
    calls: BTreeMap<String, u64>,
    servers: BTreeMap<String, Server>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Failures {
    name: String,
    error: String,
    count: u64,
    cost: Cost,
    last: Evidence,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Server {
    chars: u64,
    model_calls: u64,
    called: bool,
    first: Evidence,
}

/// A finding over several sessions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SharedFinding {
    /// Its evidence is in `places`.
    pub finding: Finding,
    pub sessions: u64,
    /// One for each session, newest first.
    pub places: Vec<(SessionId, Evidence)>,
}

impl Shared {
    pub fn of(history: &History) -> Shared {
        let mut shared = Shared::default();
        for (entry, call) in history.calls() {
            let name = call.name();
            if let Some(signature) = fails_again::signature_of(entry) {
                let held = shared.failures.entry(signature).or_insert_with(|| Failures {
                    name: name.clone(),
                    error: call.error.clone().unwrap_or_default(),
                    count: 0,
                    cost: Cost::default(),
                    last: entry.evidence(call.subject.clone()),
                });
                held.count += 1;
                held.cost.add(Cost::of_call(call.time));
                held.last = entry.evidence(call.subject.clone());
            }
            *shared.calls.entry(name).or_default() += 1;
        }
        for (server, held) in idle_schemas::servers(history) {
            let idle_schemas::ServerUse { chars, model_calls, called, first } = held;
            shared.servers.insert(server, Server { chars, model_calls, called, first });
        }
        shared
    }

    /// Changes every text that is from the session, for redaction.
    pub fn for_each_text(&mut self, mut change: impl FnMut(&mut String)) {
        let Shared { failures, calls, servers } = self;
        change_keys(failures, &mut change);
        for Failures { name, error, count: _, cost: _, last } in failures.values_mut() {
            [name, error, &mut last.what].into_iter().for_each(&mut change);
        }
        change_keys(calls, &mut change);
        change_keys(servers, &mut change);
        for Server { chars: _, model_calls: _, called: _, first } in servers.values_mut() {
            change(&mut first.what);
        }
    }
}

fn change_keys<T>(map: &mut BTreeMap<String, T>, change: &mut impl FnMut(&mut String)) {
    let changed = |(mut key, value): (String, T)| {
        change(&mut key);
        (key, value)
    };
    *map = std::mem::take(map).into_iter().map(changed).collect();
}

/// The findings over these sessions.
pub fn across<'a>(
    sessions: impl IntoIterator<Item = (SessionId, &'a Shared)>,
) -> Vec<SharedFinding> {
    let sessions: Vec<(SessionId, &Shared)> = sessions.into_iter().collect();
    let mut findings = failures(&sessions);
    findings.extend(idle_servers(&sessions));
    findings
}

fn failures(sessions: &[(SessionId, &Shared)]) -> Vec<SharedFinding> {
    let mut groups: BTreeMap<&str, Vec<(SessionId, &Failures)>> = BTreeMap::new();
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for (session, shared) in sessions {
        for (signature, failures) in &shared.failures {
            groups.entry(signature).or_default().push((*session, failures));
        }
        for (name, count) in &shared.calls {
            *calls.entry(name).or_default() += count;
        }
    }
    let finding = |(signature, group): (&str, Vec<(SessionId, &Failures)>)| {
        let (_, newest) = group.first().filter(|_| group.len() >= MIN_SESSIONS)?;
        let count: u64 = group.iter().map(|(_, failures)| failures.count).sum();
        let mut cost = Cost::default();
        group.iter().for_each(|(_, failures)| cost.add(failures.cost));
        let finding = Finding {
            rule: Rule::FailsAgain,
            signature: signature.to_owned(),
            title: format!(
                "{} failed {count} times in {} sessions: {}",
                newest.name,
                group.len(),
                newest.error
            ),
            count,
            opportunities: calls.get(newest.name.as_str()).copied().unwrap_or(0),
            cost,
            evidence: Vec::new(),
        };
        let places = group.iter().map(|(session, failures)| (*session, failures.last.clone()));
        Some(SharedFinding { finding, sessions: group.len() as u64, places: places.collect() })
    };
    groups.into_iter().filter_map(finding).collect()
}

fn idle_servers(sessions: &[(SessionId, &Shared)]) -> Vec<SharedFinding> {
    let mut groups: BTreeMap<&str, Vec<(SessionId, &Server)>> = BTreeMap::new();
    for (session, shared) in sessions {
        for (name, server) in &shared.servers {
            groups.entry(name).or_default().push((*session, server));
        }
    }
    let finding = |(name, group): (&str, Vec<(SessionId, &Server)>)| {
        if group.len() < MIN_SESSIONS || group.iter().any(|(_, server)| server.called) {
            return None;
        }
        let chars = group.iter().map(|(_, server)| server.chars).fold(0, u64::saturating_add);
        let calls: u64 = group.iter().map(|(_, server)| server.model_calls).sum();
        let mut cost = Cost::of_chars(chars);
        cost.calls = Some(calls);
        let finding = Finding {
            rule: Rule::IdleSchemas,
            signature: name.to_owned(),
            title: format!(
                "The tools of the MCP server {name} were sent in {} sessions and never called",
                group.len()
            ),
            count: group.len() as u64,
            opportunities: group.len() as u64,
            cost,
            evidence: Vec::new(),
        };
        let places = group.iter().map(|(session, server)| (*session, server.first.clone()));
        Some(SharedFinding { finding, sessions: group.len() as u64, places: places.collect() })
    };
    groups.into_iter().filter_map(finding).collect()
}

#[cfg(test)]
#[path = "across_tests.rs"]
mod tests;
