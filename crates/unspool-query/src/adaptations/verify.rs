//! Whether an adaptation helped: findings per opportunity in sessions whose prompts have it, and in
//! sessions whose prompts do not. Only sessions of one agent, project and model are compared. What
//! was enabled or delivered does not count, only what was seen.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use unspool_model::document::time;
use unspool_model::id::SessionId;
use unspool_model::verdict::{Arm, SessionCount, Verdict, compare};
use unspool_view::finding::Rule;

use super::history::Change;
use super::state::VersionedItem;
use crate::findings::SessionFindings;

/// What is to be verified.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub item: &'a VersionedItem,
    pub rule: Rule,
    /// Only findings with this signature.
    pub signature: Option<&'a str>,
    pub model: Option<&'a str>,
    /// The versions of the item, oldest first.
    pub changes: &'a [Change],
}

/// The answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verification {
    pub id: String,
    pub rule: &'static str,
    /// What the opportunities are.
    pub unit: &'static str,
    /// `trial`: both groups are of the same time. `before-after`: the group without it is older.
    pub design: &'static str,
    pub verdict: &'static str,
    /// Why there is no verdict, or what it says.
    pub because: String,
    pub agent: Option<String>,
    pub project: Option<String>,
    pub model: Option<String>,
    pub without: ArmDocument,
    pub with: ArmDocument,
    /// The probability that the rate is lower with it.
    pub probability_lower: Option<f64>,
    pub design_effect: f64,
    /// Rules of which more was found with it.
    pub rose: Vec<RoseDocument>,
    /// What else differs between the groups.
    pub confounders: Vec<String>,
    /// Sessions that are in no group, by the reason.
    pub left_out: BTreeMap<&'static str, u64>,
    pub cost: CostDocument,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ArmDocument {
    pub sessions: usize,
    pub events: u64,
    pub opportunities: u64,
    pub rate: Option<f64>,
    /// The 95 % interval of the rate.
    pub interval: Option<[f64; 2]>,
    /// The sessions, newest first.
    pub session_ids: Vec<SessionId>,
    /// What each of them adds, in the same order.
    pub session_counts: Vec<SessionCountDocument>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SessionCountDocument {
    pub started_at: Option<String>,
    pub events: u64,
    pub opportunities: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RoseDocument {
    pub rule: &'static str,
    pub without: Option<f64>,
    pub with: Option<f64>,
    pub probability_higher: f64,
}

/// What the text costs where it was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CostDocument {
    pub chars_per_call: u64,
    pub calls: u64,
    pub chars: u64,
}

/// A group of sessions that may be compared.
type Stratum = (String, Option<String>, Option<String>);

/// The sessions of one stratum.
#[derive(Default)]
struct Groups<'a> {
    without: Vec<&'a SessionFindings>,
    with: Vec<&'a SessionFindings>,
}

const OTHER: &str = "another agent, project or model than the compared ones";
const SUB_AGENT: &str = "a sub-agent";
const MIXED: &str = "it was in some calls only";
const UNKNOWN: &str = "it is not known whether it was in the prompts";
const ABSENT: &str = "it was enabled, and is not in the prompts";
const OUTSIDE: &str = "not in the time of the trial";

/// When an item was first enabled, and the time of its last trial.
struct Times {
    enabled: Option<Timestamp>,
    trial: Option<(Timestamp, Option<Timestamp>)>,
}

impl Times {
    fn of(changes: &[Change]) -> Times {
        let enabled = changes.iter().find(|change| change.enabled).map(|change| change.at);
        let on_trial = |change: &Change| change.enabled && change.trial.is_some();
        let mut trial = None;
        for (nth, change) in changes.iter().enumerate() {
            let begins =
                on_trial(change) && !nth.checked_sub(1).is_some_and(|n| on_trial(&changes[n]));
            if begins {
                let end = changes[nth..].iter().find(|change| !on_trial(change));
                trial = Some((change.at, end.map(|change| change.at)));
            }
        }
        Times { enabled, trial }
    }
}

/// Compares the sessions (R-002-39).
pub fn verify(sessions: &[Arc<SessionFindings>], question: &Question<'_>) -> Verification {
    let times = Times::of(question.changes);
    let mut left_out: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut strata: BTreeMap<Stratum, Groups<'_>> = BTreeMap::new();
    for session in sessions {
        match group(session, question, &times) {
            Ok(is_with) => {
                let model = session.models.first().cloned();
                let stratum = (session.agent.clone(), session.project.clone(), model);
                let groups = strata.entry(stratum).or_default();
                let group = if is_with { &mut groups.with } else { &mut groups.without };
                group.push(session);
            }
            Err(reason) => *left_out.entry(reason).or_default() += 1,
        }
    }
    let counts = |group: &[&SessionFindings]| -> Vec<SessionCount> {
        group.iter().map(|session| count(session, question.rule, question.signature)).collect()
    };
    let weight = |groups: &Groups<'_>| {
        let sum =
            |group: &[&SessionFindings]| counts(group).iter().map(|c| c.opportunities).sum::<u64>();
        let (without, with) = (sum(&groups.without), sum(&groups.with));
        (without.min(with), with, without)
    };
    let best = strata.iter().max_by_key(|(_, groups)| weight(groups));
    let best = best.map(|(stratum, _)| stratum.clone());
    let mut groups = Groups::default();
    for (stratum, of) in strata {
        if Some(&stratum) == best.as_ref() {
            groups = of;
        } else {
            let others = of.without.len() + of.with.len();
            *left_out.entry(OTHER).or_default() += others as u64;
        }
    }
    let compared = compare(&counts(&groups.without), &counts(&groups.with));
    let (agent, project, model) = best.unwrap_or_default();
    Verification {
        id: question.item.item.id.clone(),
        rule: question.rule.name(),
        unit: question.rule.unit(),
        design: if times.trial.is_some() { "trial" } else { "before-after" },
        verdict: compared.verdict.name(),
        because: words::because(&compared),
        agent: Some(agent).filter(|agent| !agent.is_empty()),
        project,
        model,
        without: ArmDocument::new(&compared.without, &groups.without, question),
        with: ArmDocument::new(&compared.with, &groups.with, question),
        probability_lower: compared.lower,
        design_effect: compared.design_effect,
        rose: rose(&groups, question.rule),
        confounders: confounders(&groups, question, &times),
        left_out,
        cost: cost(&groups.with, &question.item.item.id, &question.item.item.content),
    }
}

/// In which group a session is: with it or without it. Else why it is in none.
fn group(
    session: &SessionFindings,
    question: &Question<'_>,
    times: &Times,
) -> Result<bool, &'static str> {
    if session.sub_agent {
        return Err(SUB_AGENT);
    }
    if question.model.is_some_and(|model| session.models.first().is_none_or(|one| one != model)) {
        return Err(OTHER);
    }
    let is_in_trial = match times.trial {
        Some((from, until)) => {
            session.started.is_some_and(|at| at >= from && until.is_none_or(|until| at < until))
        }
        None => true,
    };
    if !is_in_trial {
        return Err(OUTSIDE);
    }
    let seen = &session.adaptations;
    match seen.items.get(&question.item.item.id) {
        // A few calls may have no history at all: those that make titles, for example.
        Some(item) if item.calls * 10 >= seen.calls * 9 => Ok(true),
        Some(_) => Err(MIXED),
        None if times.trial.is_some() => {
            if seen.shows_all {
                Ok(false)
            } else {
                Err(UNKNOWN)
            }
        }
        None => {
            let before = |enabled: Timestamp| session.started.is_some_and(|at| at < enabled);
            if times.enabled.is_none_or(before) { Ok(false) } else { Err(ABSENT) }
        }
    }
}

fn count(session: &SessionFindings, rule: Rule, signature: Option<&str>) -> SessionCount {
    let found = session.rules.iter().find(|(one, _)| *one == rule).map(|(_, found)| found);
    let counted = found.map_or(0, |found| {
        let findings = found.findings.iter();
        let wanted =
            findings.filter(|finding| signature.is_none_or(|one| finding.signature == one));
        wanted.map(|finding| finding.count).sum()
    });
    SessionCount { events: counted, opportunities: found.map_or(0, |found| found.opportunities) }
}

/// Other rules of which clearly more was found.
fn rose(groups: &Groups<'_>, rule: Rule) -> Vec<RoseDocument> {
    let others = Rule::ALL.iter().copied().filter(|other| *other != rule);
    let compared = others.map(|other| {
        let of = |group: &[&SessionFindings]| -> Vec<SessionCount> {
            group.iter().map(|session| count(session, other, None)).collect()
        };
        (other, compare(&of(&groups.without), &of(&groups.with)))
    });
    let rose = compared.filter(|(_, compared)| compared.verdict == Verdict::More);
    rose.map(|(other, compared)| RoseDocument {
        rule: other.name(),
        without: compared.without.rate.map(|rate| rate.value),
        with: compared.with.rate.map(|rate| rate.value),
        probability_higher: 1.0 - compared.lower.unwrap_or(1.0),
    })
    .collect()
}

fn confounders(groups: &Groups<'_>, question: &Question<'_>, times: &Times) -> Vec<String> {
    let mut named = Vec::new();
    let versions = |group: &[&SessionFindings]| -> BTreeSet<String> {
        group.iter().filter_map(|session| session.version.clone()).collect()
    };
    let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
    let (before, after) = (versions(&groups.without), versions(&groups.with));
    if before != after && !before.is_empty() && !after.is_empty() {
        named.push(format!(
            "the agent's version: {} without it, {} with it",
            list(&before),
            list(&after)
        ));
    }
    let others: BTreeSet<&String> = groups
        .without
        .iter()
        .chain(&groups.with)
        .flat_map(|session| session.adaptations.items.keys())
        .filter(|id| **id != question.item.item.id)
        .collect();
    for other in others {
        let share = |group: &[&SessionFindings]| {
            let with = group.iter().filter(|one| one.adaptations.items.contains_key(other)).count();
            format!("{with} of {}", group.len())
        };
        let (without, with) = (share(&groups.without), share(&groups.with));
        if without.split(' ').next() != with.split(' ').next()
            || groups.without.len() != groups.with.len()
        {
            named.push(format!("{other}: in {without} sessions without it and {with} with it"));
        }
    }
    let texts: BTreeSet<&str> = question
        .changes
        .iter()
        .filter(|change| change.enabled)
        .map(|change| change.content.as_str())
        .collect();
    if texts.len() > 1 {
        named.push(format!("its text had {} versions while it was enabled", texts.len()));
    }
    if groups.with.iter().any(|session| {
        session.adaptations.items.get(&question.item.item.id).is_some_and(|seen| seen.is_altered)
    }) {
        named.push("its text was altered on the way into some prompts".to_owned());
    }
    if times.trial.is_none() {
        named.push(
            "time: whatever else changed since then. A trial compares sessions of the same time"
                .to_owned(),
        );
    }
    named
}

fn cost(with: &[&SessionFindings], id: &str, content: &str) -> CostDocument {
    let chars_per_call = content.trim().chars().count() as u64;
    let seen = with.iter().filter_map(|session| session.adaptations.items.get(id));
    let calls = seen.map(|seen| seen.calls).sum();
    CostDocument { chars_per_call, calls, chars: chars_per_call.saturating_mul(calls) }
}

impl ArmDocument {
    fn new(arm: &Arm, sessions: &[&SessionFindings], of: &Question<'_>) -> ArmDocument {
        let counts = sessions.iter().map(|session| {
            let SessionCount { events, opportunities } = count(session, of.rule, of.signature);
            SessionCountDocument { started_at: time(session.started), events, opportunities }
        });
        ArmDocument {
            sessions: arm.sessions,
            events: arm.events,
            opportunities: arm.opportunities,
            rate: arm.rate.map(|rate| rate.value),
            interval: arm.rate.map(|rate| [rate.low, rate.high]),
            session_ids: sessions.iter().map(|session| session.session).collect(),
            session_counts: counts.collect(),
        }
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
