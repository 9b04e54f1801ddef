use super::super::super::test_sessions::{
    TestPrompt, bash, builder, part_id, parts, prompts, turn,
};
use super::*;

/// Calls of one turn each, with these instruction files.
fn session(files: &[&[&'static str]], agents: &[&[&'static str]]) -> History {
    let prompt = |(turn, files): (u32, &&[&'static str])| TestPrompt {
        files: files.to_vec(),
        ..TestPrompt::new(turn, &[('a', 10)])
    };
    let mut facts = prompts(&(1..).zip(files).map(prompt).collect::<Vec<_>>());
    for files in agents {
        let agent = TestPrompt { files: files.to_vec(), ..TestPrompt::new(1, &[('b', 10)]) };
        facts.add_agent(&prompts(&[agent]));
    }
    let turns: Vec<_> = (1..).take(files.len()).map(|n| turn(n, vec![bash("ls", "a")])).collect();
    builder(&turns).with_prompts(facts).finish()
}

#[test]
fn instructions_that_no_later_call_has_are_a_finding() {
    let found = find(&session(&[&["AGENTS.md", "CLAUDE.md"], &["AGENTS.md"], &["AGENTS.md"]], &[]));
    assert_eq!((found.findings.len(), found.opportunities), (1, 2));
    assert_eq!(
        found.findings[0].title,
        "CLAUDE.md was in the prompts and is not in the last 2 calls"
    );
    assert_eq!(parts(&found.findings[0]), [part_id(1, 0), part_id(2, 0)]);
}

#[test]
fn instructions_that_come_back_or_come_late_are_none() {
    let held: &[&str] = &["CLAUDE.md"];
    assert!(find(&session(&[held, &[], held], &[])).findings.is_empty());
    assert!(find(&session(&[&[], held], &[])).findings.is_empty());
    assert!(find(&session(&[held], &[])).findings.is_empty());
    assert!(find(&session(&[], &[])).findings.is_empty(), "nothing is known");
}

#[test]
fn instructions_that_no_sub_agent_has_are_a_finding() {
    let held: &[&str] = &["CLAUDE.md"];
    let found = find(&session(&[held], &[&[], &[]])).findings;
    assert_eq!(
        found[0].title,
        "CLAUDE.md is in the prompts of the session and in none of its sub-agents"
    );
    assert!(find(&session(&[held], &[&[], held])).findings.is_empty(), "one has it");
}
