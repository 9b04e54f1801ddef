use unspool_model::part::{Body, Failure, Notice};

use super::super::super::test_sessions::{
    bash, history, part_id, parts, prose, second, turn, turn_of,
};
use super::*;

fn retry(attempt: u32) -> Body {
    let text = format!("Retry, attempt {attempt}: overloaded");
    Body::Notice(Notice { code: "retry".into(), text })
}

// R-002-42
#[test]
fn model_calls_that_failed_are_a_finding_with_the_time_that_they_cost() {
    let mut turn = turn_of(1, vec![prose("a"), retry(1), retry(2), prose("b")]);
    turn.parts[2].started = Some(second(1010));
    turn.parts[3].started = Some(second(1040));
    let found = find(&history(&[turn]));
    assert_eq!(found.findings.len(), 1);
    let finding = &found.findings[0];
    assert_eq!(finding.title, "A model call was made again twice: Retry, attempt 2: overloaded");
    // 9 seconds to the second failure and 30 to the reply.
    assert_eq!(finding.cost.duration_ms, Some(39_000));
    // One call was answered.
    assert_eq!((finding.count, finding.opportunities), (2, 3));
    assert_eq!(parts(finding), [part_id(1, 1), part_id(1, 2)]);
}

#[test]
fn a_failure_that_ends_its_turn_costs_no_time() {
    let failure = Failure { text: "API Error: 529 overloaded".into(), ..Failure::default() };
    let found = find(&history(&[turn_of(1, vec![Body::Error(failure)]), turn(2, vec![])]));
    assert_eq!(
        found.findings[0].title,
        "The agent reported an error once: API Error: 529 overloaded"
    );
    assert_eq!(found.findings[0].cost.duration_ms, None);
}

#[test]
fn an_error_beside_its_retry_is_the_reason_for_it() {
    let failure = |text: &str| Body::Error(Failure { text: text.into(), ..Failure::default() });
    let bodies =
        vec![failure("429 slow down"), retry(1), failure("429 slow down"), retry(2), prose("b")];
    let found = find(&history(&[turn_of(1, bodies)])).findings;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].title, "A model call was made again twice: 429 slow down");
    // A retry that another error follows explains that one only if it comes before it.
    let bodies = vec![retry(1), prose("a"), failure("401 no key")];
    let found = find(&history(&[turn_of(1, bodies)])).findings;
    let titles: Vec<&str> = found.iter().map(|finding| finding.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "A model call was made again once: Retry, attempt 1: overloaded",
            "The agent reported an error once: 401 no key"
        ]
    );
}

#[test]
fn a_session_without_failures_has_none() {
    let notice = Notice { code: "informational".into(), text: "retry later".into() };
    let bodies = vec![prose("a"), Body::Notice(notice)];
    let found = find(&history(&[turn_of(1, bodies), turn(2, vec![bash("ls", "a")])]));
    assert_eq!((found.findings.len(), found.opportunities), (0, 2));
}
