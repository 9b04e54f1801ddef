use std::collections::BTreeMap;

use unspool_model::adaptation::Item;
use unspool_model::id::SessionId;
use unspool_view::finding::{Finding, Found};

use super::*;
use crate::prompts::{SeenAdaptation, SeenAdaptations};

const ID: &str = "adn.tools.edit-reread";

fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(1_780_000_000 + hour * 3600).unwrap()
}

/// A session that began in this hour, with missed edits of ten; `seen`: calls with the item, of ten.
fn session(hour: i64, missed: u64, seen: u64) -> SessionFindings {
    let finding = Finding {
        rule: Rule::EditMissed,
        signature: "src/lib.rs".to_owned(),
        title: "missed".to_owned(),
        count: missed,
        opportunities: 10,
        cost: Default::default(),
        evidence: Vec::new(),
    };
    let findings = if missed > 0 { vec![finding] } else { Vec::new() };
    let mut items = BTreeMap::new();
    if seen > 0 {
        items.insert(ID.to_owned(), SeenAdaptation { calls: seen, ..Default::default() });
    }
    SessionFindings::for_tests(
        SessionId::of("claude-code", &hour.to_string()),
        at(hour),
        vec![(Rule::EditMissed, Found { opportunities: 10, findings })],
        SeenAdaptations { calls: 10, shows_all: true, items },
    )
}

fn versioned() -> VersionedItem {
    let item = Item {
        id: ID.to_owned(),
        title: "Title".to_owned(),
        content: "Read it again.".to_owned(),
        enabled: true,
        ..Item::default()
    };
    let sha256 = item.digest();
    VersionedItem { item, version: 2, sha256, origin: "shipped".to_owned(), project: None }
}

fn change(hour: i64, version: u64, trial: bool) -> Change {
    let by = super::super::Author { who: "cli", why: None };
    let mut change = Change::of(&versioned(), version, at(hour), by.who, by.why);
    change.version = version;
    change.trial = trial.then_some(unspool_model::adaptation::Trial::Half);
    change
}

fn ask(sessions: Vec<SessionFindings>, changes: &[Change]) -> Verification {
    let sessions: Vec<_> = sessions.into_iter().map(Arc::new).collect();
    let item = versioned();
    let question =
        Question { item: &item, rule: Rule::EditMissed, signature: None, model: None, changes };
    verify(&sessions, &question)
}

// R-002-39
#[test]
fn what_was_seen_decides_and_not_what_was_enabled() {
    let changes = [change(100, 2, false)];
    let before = (0..6).map(|hour| session(hour, 4, 0));
    let after = (100..106).map(|hour| session(hour, 0, 10));
    let verified = ask(before.clone().chain(after).collect(), &changes);
    assert_eq!((verified.verdict, verified.design), ("fewer", "before-after"));
    assert_eq!((verified.without.events, verified.without.opportunities), (24, 60));
    assert_eq!((verified.with.events, verified.with.sessions), (0, 6));
    assert_eq!(verified.cost, CostDocument { chars_per_call: 14, calls: 60, chars: 840 });
    assert!(verified.confounders.iter().any(|named| named.starts_with("time")));
    // Enabled, and in no prompt: these are neither before nor after.
    let unseen = (100..106).map(|hour| session(hour, 0, 0));
    let verified = ask(before.clone().chain(unseen).collect(), &changes);
    assert_eq!((verified.verdict, verified.with.sessions), ("too little to say", 0));
    assert_eq!(verified.left_out[ABSENT], 6);
    let half = (100..106).map(|hour| session(hour, 0, 5));
    let verified = ask(before.chain(half).collect(), &changes);
    assert_eq!((verified.with.sessions, verified.left_out[MIXED]), (0, 6));
}

#[test]
fn no_verdict_below_the_minimum() {
    let changes = [change(100, 2, false)];
    let sessions = (0..4).map(|hour| session(hour, 9, 0));
    let with = (100..109).map(|hour| session(hour, 0, 10));
    let verified = ask(sessions.chain(with).collect(), &changes);
    assert_eq!(verified.verdict, "too little to say");
    assert_eq!(verified.because, "4 of 5 sessions without it");
    assert!(ask(Vec::new(), &changes).because.contains("0 of 20 opportunities with it"));
}

#[test]
fn a_trial_compares_sessions_of_its_time() {
    let changes = [change(0, 2, false), change(100, 3, true), change(200, 4, false)];
    let old = (50..60).map(|hour| session(hour, 10, 0));
    let late = (200..210).map(|hour| session(hour, 10, 0));
    let without = (100..106).map(|hour| session(hour, 4, 0));
    let with = (110..116).map(|hour| session(hour, 4, 10));
    let all = || old.clone().chain(late.clone()).chain(without.clone()).chain(with.clone());
    let verified = ask(all().collect(), &changes);
    assert_eq!((verified.design, verified.verdict), ("trial", "too little to say"));
    assert_eq!((verified.without.sessions, verified.with.sessions), (6, 6));
    assert_eq!(verified.left_out[OUTSIDE], 20);
    assert!(!verified.confounders.iter().any(|named| named.starts_with("time")));
    // Whether it was in the prompt is not known of an agent that does not record prompts.
    let unknown = (100..106).map(|hour| {
        let mut session = session(hour, 4, 0);
        session.adaptations.shows_all = false;
        session
    });
    let verified = ask(unknown.chain(with.clone()).collect(), &changes);
    assert_eq!((verified.without.sessions, verified.left_out[UNKNOWN]), (0, 6));
}

#[test]
fn only_equal_agents_projects_and_models_are_compared() {
    let changes = [change(100, 2, false)];
    let before = (0..6).map(|hour| session(hour, 4, 0));
    let other = (10..20).map(|hour| {
        let mut session = session(hour, 0, 0);
        session.models = vec!["other".to_owned()];
        session
    });
    let after = (100..106).map(|hour| {
        let mut session = session(hour, 0, 10);
        session.version = Some("2".to_owned());
        session.adaptations.items.insert("adn.other".to_owned(), SeenAdaptation::default());
        session
    });
    let verified = ask(before.chain(other).chain(after).collect(), &changes);
    assert_eq!((verified.without.sessions, verified.left_out[OTHER]), (6, 10));
    let named = verified.confounders.join("\n");
    assert!(named.contains("the agent's version: 1 without it, 2 with it"), "{named}");
    assert!(
        named.contains("adn.other: in 0 of 6 sessions without it and 6 of 6 with it"),
        "{named}"
    );
}

#[test]
fn what_rose_is_named() {
    let changes = [change(100, 2, false)];
    let with_churn = |mut session: SessionFindings, count: u64| {
        let finding = Finding {
            rule: Rule::EditChurn,
            signature: String::new(),
            title: String::new(),
            count,
            opportunities: 10,
            cost: Default::default(),
            evidence: Vec::new(),
        };
        session.rules.push((Rule::EditChurn, Found { opportunities: 10, findings: vec![finding] }));
        session
    };
    let before = (0..6).map(|hour| with_churn(session(hour, 4, 0), 1));
    let after = (100..106).map(|hour| with_churn(session(hour, 0, 10), 8));
    let verified = ask(before.chain(after).collect(), &changes);
    assert_eq!(verified.verdict, "fewer");
    assert_eq!(verified.rose.iter().map(|rose| rose.rule).collect::<Vec<_>>(), ["edit-churn"]);
}
