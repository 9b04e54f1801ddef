use unspool_model::id::SessionId;
use unspool_model::part::{Question, QuestionKind, Tool};
use unspool_model::session::{Facts, Session, SessionState};

use super::super::super::HistoryBuilder;
use super::super::super::test_sessions::{bash, builder, call, part_id, parts, took, turn};
use super::super::super::times::ToolTimes;
use super::*;

fn findings(calls: Vec<Tool>, p95_ms: u64) -> Vec<Finding> {
    let times = ToolTimes::new([
        ("Bash", 20, Some(p95_ms)),
        ("Task", 20, Some(10)),
        ("Rare", 19, Some(10)),
    ]);
    find(&builder(&[turn(1, calls)]).with_times(times).finish()).findings
}

fn titles(calls: Vec<Tool>, p95_ms: u64) -> Vec<String> {
    findings(calls, p95_ms).into_iter().map(|finding| finding.title).collect()
}

// R-002-42
#[test]
fn a_call_that_takes_far_longer_than_usual_is_a_finding() {
    let found = findings(vec![bash("ls", "a"), took(bash("cargo build", "ok"), 45_000)], 8_000);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].title,
        "Bash cargo build took 45.0 s; 95 % of the calls of Bash end within 8.0 s"
    );
    assert_eq!((found[0].cost.calls, found[0].cost.duration_ms), (Some(1), Some(45_000)));
    assert_eq!(parts(&found[0]), [part_id(1, 1)]);
}

#[test]
fn it_has_to_be_long_and_longer_than_usual() {
    let build = |ms: u64| vec![took(bash("cargo build", "ok"), ms)];
    assert!(titles(build(30_000), 100).is_empty(), "30 s are not more than 30 s");
    assert_eq!(titles(build(30_001), 100).len(), 1);
    assert!(titles(build(60_000), 20_000).is_empty(), "three times as long is not more");
    assert_eq!(titles(build(60_001), 20_000).len(), 1);
}

#[test]
fn sub_agents_rare_tools_and_people_are_not_slow() {
    let task = took(call("Task", serde_json::json!({ "prompt": "look" }), "found"), 600_000);
    assert!(titles(vec![task], 100).is_empty(), "a sub-agent");
    let rare = took(call("Rare", serde_json::json!({}), "done"), 600_000);
    assert!(titles(vec![rare], 100).is_empty(), "too few calls to know what is usual");
    let question = Question { request_id: None, kind: QuestionKind::Permission, items: Vec::new() };
    // One second from call to result, and no duration from the agent.
    let mut asked = turn(1, vec![Tool { question: Some(question), ..bash("cargo build", "ok") }]);
    let long_after = super::super::super::test_sessions::second(9000);
    asked.parts[0].ended = Some(long_after);
    let times = ToolTimes::new([("Bash", 20, Some(10))]);
    assert!(
        find(&builder(&[asked.clone()]).with_times(times.clone()).finish()).findings.is_empty()
    );
    if let unspool_model::part::Body::Tool(tool) = &mut asked.parts[0].body {
        tool.question = None;
    }
    let found = find(&builder(&[asked]).with_times(times).finish()).findings;
    assert!(found[0].title.contains("may include waiting for permission"), "{}", found[0].title);
}

#[test]
fn sleeping_again_and_again_is_polling() {
    let look = |seconds: u64| {
        took(bash(&format!("sleep {seconds}; tail log"), "not yet"), seconds * 1000 + 20)
    };
    let found = findings(vec![look(20), look(20), look(20)], 60_000);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].title, "Commands slept 3 times in one turn, 1 m 0 s in all");
    assert_eq!(found[0].cost.duration_ms, Some(60_000));
    assert!(titles(vec![look(60), look(60)], 100_000).is_empty(), "twice");
    assert!(titles(vec![look(10), look(10), look(10)], 100_000).is_empty(), "30 seconds");
    // Cut off by the agent after a second.
    let cut = || took(bash("sleep 600", ""), 1_000);
    assert!(titles(vec![cut(), cut(), cut()], 100_000).is_empty());
}

/// OpenCode's time of a call includes its permission: nobody is slow who waited for a person, and a time
/// that may include one says so.
#[test]
fn a_reported_time_with_the_permission_in_it_is_no_time_of_the_tool() {
    let session = |agent: &str| Session {
        id: SessionId::of(agent, "s"),
        agent: agent.to_owned(),
        agent_session_id: "s".to_owned(),
        facts: Facts::default(),
        state: SessionState::Idle,
        parent: None,
        forked_from: None,
    };
    let found = |agent: &str, question: Option<Question>| {
        let mut builder = HistoryBuilder::new(&session(agent));
        let call = Tool { question, ..took(bash("make", "ok"), 45_000) };
        builder.add(&turn(1, vec![call]));
        find(&builder.with_times(ToolTimes::new([("Bash", 20, Some(100))])).finish()).findings
    };
    let question = Question { request_id: None, kind: QuestionKind::Permission, items: Vec::new() };
    assert_eq!(found("codex", Some(question.clone())).len(), 1, "its time is the tool's");
    assert!(found("opencode", Some(question)).is_empty());
    let perhaps = found("opencode", None);
    assert!(perhaps[0].title.contains("may include waiting for permission"), "{perhaps:?}");
    assert!(perhaps[0].cost.may_include_waiting);
    assert_eq!(crate::present::findings::cost(&perhaps[0].cost), "1 call, up to 45.0 s");
    let codex = found("codex", None);
    assert_eq!(crate::present::findings::cost(&codex[0].cost), "1 call, 45.0 s");
}
