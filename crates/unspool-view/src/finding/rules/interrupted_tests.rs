use unspool_model::session::Turn;

use super::super::super::test_sessions::{bash, history, part_id, parts, second, turn};
use super::*;

/// A turn that was stopped after 5 seconds, and a prompt some seconds after it.
fn stopped(after: i64) -> [Turn; 2] {
    let first = Turn {
        state: TurnState::Interrupted,
        ended: Some(second(1005)),
        ..turn(1, vec![bash("ls", "a"), bash("ls b", "b")])
    };
    let next = Turn { started: Some(second(1005 + after)), ..turn(2, vec![]) };
    [first, next]
}

#[test]
fn a_turn_that_is_stopped_before_another_prompt_is_a_finding() {
    let found = find(&history(&stopped(30)));
    assert_eq!((found.findings.len(), found.opportunities), (1, 2));
    let finding = &found.findings[0];
    assert_eq!(finding.title, "The user stopped a turn and asked anew within two minutes once");
    assert_eq!((finding.cost.duration_ms, finding.cost.tokens), (Some(5000), Some(100)));
    assert_eq!(parts(finding), [part_id(1, 1)]);
    assert_eq!(finding.evidence[0].what, "“prompt 1”, then “prompt 2”");
}

#[test]
fn two_minutes_are_at_once_and_more_is_later() {
    assert_eq!(find(&history(&stopped(120))).findings.len(), 1);
    assert!(find(&history(&stopped(121))).findings.is_empty());
}

#[test]
fn a_turn_that_ends_by_itself_or_is_the_last_one_is_none() {
    let [first, next] = stopped(30);
    let completed = Turn { state: TurnState::Completed, ..first.clone() };
    assert!(find(&history(&[completed, next.clone()])).findings.is_empty());
    assert!(find(&history(std::slice::from_ref(&first))).findings.is_empty());
    let by_schedule = Turn { trigger: Trigger::Schedule, ..next };
    assert!(find(&history(&[first, by_schedule])).findings.is_empty());
}
