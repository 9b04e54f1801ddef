use super::super::super::test_sessions::{
    TestPrompt, bash, builder, part_id, parts, prompts, read, turn,
};
use super::*;
use crate::finding::CallCheck;

/// Turn 1 was told the rule, turn 2 was not.
fn session(never: &str) -> History {
    let mut facts = prompts(&[TestPrompt::new(1, &[('a', 10)]), TestPrompt::new(2, &[('b', 10)])]);
    facts.add_check(0, &["0"]);
    let calls = || vec![bash("npm install", "ok"), bash("pnpm test", "ok"), read("npm", "text")];
    let turns = [turn(1, calls()), turn(2, calls())];
    let check = CallCheck::new("Use pnpm, never npm.", never).unwrap();
    builder(&turns).with_prompts(facts).with_checks(vec![check]).finish()
}

#[test]
fn a_forbidden_call_is_a_finding_if_the_rule_was_in_the_prompt() {
    let found = find(&session("tool=Bash input~\"^npm \""));
    assert_eq!((found.findings.len(), found.opportunities), (1, 2));
    let finding = &found.findings[0];
    assert_eq!(finding.title, "“Use pnpm, never npm.” was in the prompt and was not followed once");
    assert_eq!((finding.count, finding.opportunities), (1, 2));
    assert_eq!(parts(finding), [part_id(1, 0)]);
}

#[test]
fn a_rule_that_is_followed_or_unknown_to_the_model_is_none() {
    assert!(find(&session("tool=Bash input~\"^yarn \"")).findings.is_empty());
    let history = session("tool=Bash input~\"^npm \"");
    let untold = History { prompts: Default::default(), ..history };
    assert_eq!(find(&untold), Found::default());
}

#[test]
fn a_rule_without_a_tool_or_without_an_input_speaks_of_all() {
    assert_eq!(find(&session("input~\"npm\"")).findings[0].count, 3);
    assert_eq!(find(&session("tool=Bash")).findings[0].count, 2);
}
