use std::collections::BTreeMap;

use unspool_model::part::{Body, Compaction, Tool};
use unspool_model::session::Turn;

use super::super::super::test_sessions::{bash, history, part_id, parts, prose, turn, turn_of};
use super::*;

/// In a session whose model has a window of 1,000 tokens.
fn titles(turns: &[Turn]) -> Vec<String> {
    let windows = BTreeMap::from([("model".to_owned(), 1_000)]);
    let history = History { windows, ..history(turns) };
    find(&history).findings.into_iter().map(|finding| finding.title).collect()
}

fn output(chars: usize) -> Turn {
    turn(1, vec![bash("cat big", &"x".repeat(chars))])
}

fn body(tool: Tool) -> Body {
    Body::Tool(Box::new(tool))
}

fn compaction(trigger: &str) -> Body {
    let trigger = Some(trigger.to_owned());
    Body::Compaction(Compaction {
        trigger,
        tokens_before: Some(90_000),
        tokens_after: Some(5_000),
        ..Compaction::default()
    })
}

#[test]
fn an_output_that_fills_more_than_a_tenth_of_the_window_is_a_finding() {
    // Four characters are about a token, and 10 % of the window are 100 tokens.
    assert_eq!(
        titles(&[output(440)]),
        ["The output of Bash cat fills about 11 % of the model's window"]
    );
    assert_eq!(titles(&[output(404)]).len(), 1, "101 tokens");
    assert!(titles(&[output(403)]).is_empty(), "100 tokens are not more than 10 %");
}

#[test]
fn a_window_of_unreported_size_has_no_share() {
    assert!(find(&history(&[output(1_000_000)])).findings.is_empty());
}

#[test]
fn a_compaction_inside_a_turn_is_a_finding_with_what_filled_the_context() {
    let small = body(bash("ls", "a"));
    let large = body(bash("cat big", &"x".repeat(5000)));
    let bodies = vec![small, large, compaction("auto"), body(bash("ls b", "b"))];
    let found = find(&history(&[turn_of(1, bodies)])).findings;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].title, "The conversation was compacted once in the middle of a turn");
    assert_eq!(parts(&found[0]), [part_id(1, 2), part_id(1, 1), part_id(1, 0)]);
    assert_eq!(found[0].evidence[0].what, "from 90.0k to 5,000 tokens");
    assert_eq!(found[0].evidence[1].what, "cat big: 5,000 characters");
}

#[test]
fn a_compaction_between_turns_or_by_the_user_is_none() {
    let call = || body(bash("ls", "a"));
    let at_end = turn_of(1, vec![call(), compaction("auto"), prose("done")]);
    assert!(find(&history(&[at_end])).findings.is_empty());
    let at_start = turn_of(1, vec![compaction("auto"), call()]);
    assert!(find(&history(&[at_start])).findings.is_empty());
    let by_user = turn_of(1, vec![call(), compaction("manual"), call()]);
    assert!(find(&history(&[by_user])).findings.is_empty());
}
