use super::super::super::test_sessions::{
    TestPrompt, bash, builder, part_id, parts, prompts, turn,
};
use super::*;

fn found(made: &[TestPrompt]) -> Found {
    let turns: Vec<_> = (1..).take(made.len()).map(|n| turn(n, vec![bash("ls", "a")])).collect();
    find(&builder(&turns).with_prompts(prompts(made)).finish())
}

#[test]
fn a_message_that_changed_before_much_of_the_prompt_is_a_finding() {
    let first = TestPrompt::new(1, &[('a', 50), ('b', 50), ('c', 8_000)]);
    let second = TestPrompt::new(2, &[('a', 50), ('x', 50), ('c', 8_000), ('d', 10)]);
    let found = found(&[first, second]);
    assert_eq!((found.findings.len(), found.opportunities), (1, 1));
    let finding = &found.findings[0];
    assert_eq!(finding.title, "A prompt differs from the one before, first in its replies, once");
    // What stood behind the change, the changed message included.
    assert_eq!((finding.cost.chars, finding.cost.tokens), (Some(8_050), Some(1_000)));
    assert_eq!(parts(finding), [part_id(2, 0)]);
}

#[test]
fn tools_that_changed_are_named() {
    let with = |turn, chars| TestPrompt {
        tools: vec![("mcp__docs__search", chars)],
        ..TestPrompt::new(turn, &[('a', 9_000)])
    };
    let title = &found(&[with(1, 100), with(2, 200)]).findings[0].title;
    assert_eq!(
        title,
        "A prompt differs from the one before, first in its tool schemas mcp__docs__search, once"
    );
}

#[test]
fn a_prompt_that_grows_is_none() {
    let first = TestPrompt::new(1, &[('a', 9_000)]);
    let second = TestPrompt::new(2, &[('a', 9_000), ('b', 9_000)]);
    let found = found(&[first, second]);
    assert_eq!((found.findings.len(), found.opportunities), (0, 1));
}

#[test]
fn a_change_near_the_end_or_of_another_model_is_none() {
    let end = |chars| {
        let first = TestPrompt::new(1, &[('a', 9_000), ('b', chars)]);
        found(&[first, TestPrompt::new(2, &[('a', 9_000), ('x', chars)])]).findings.len()
    };
    assert_eq!((end(7_999), end(8_000)), (0, 1));
    let first = TestPrompt::new(1, &[('a', 9_000)]);
    let other = TestPrompt { model: "other", ..TestPrompt::new(2, &[('b', 9_000)]) };
    assert!(found(&[first, other]).findings.is_empty());
}
