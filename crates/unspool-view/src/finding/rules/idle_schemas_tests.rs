use serde_json::json;
use unspool_model::id::SessionId;

use super::super::super::test_sessions::{TestPrompt, bash, builder, call, prompts, turn};
use super::*;
use crate::finding::{Shared, SharedFinding, across};

/// A session of two model calls that were sent tools of two servers and called those of one.
fn session(called: &str) -> Shared {
    let prompt = |turn| TestPrompt {
        tools: vec![
            ("mcp__docs__search", 300),
            ("mcp__docs__read", 100),
            ("mcp__jira__create", 50),
            ("Bash", 70),
        ],
        ..TestPrompt::new(turn, &[('a', 10)])
    };
    let turns = [turn(1, vec![bash("ls", "a")]), turn(2, vec![call(called, json!({}), "done")])];
    Shared::of(&builder(&turns).with_prompts(prompts(&[prompt(1), prompt(2)])).finish())
}

fn findings(sessions: &[Shared]) -> Vec<SharedFinding> {
    let id = |nth: usize| SessionId::of("test", &nth.to_string());
    across(sessions.iter().enumerate().map(|(nth, shared)| (id(nth), shared)))
}

#[test]
fn tools_that_three_sessions_do_not_call_are_a_finding() {
    let found =
        findings(&[session("mcp__jira__create"), session("mcp__jira__create"), session("Bash")]);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].finding.title,
        "The tools of the MCP server docs were sent in 3 sessions and never called"
    );
    // 400 characters in two calls of three sessions.
    assert_eq!((found[0].finding.cost.chars, found[0].finding.cost.calls), (Some(2400), Some(6)));
    assert_eq!((found[0].sessions, found[0].places.len()), (3, 3));
}

#[test]
fn two_sessions_or_one_call_make_none() {
    assert!(findings(&[session("Bash"), session("Bash")]).is_empty());
    let called =
        findings(&[session("Bash"), session("mcp__docs__read"), session("mcp__jira__create")]);
    assert!(called.is_empty(), "each server is needed in one session");
}

#[test]
fn one_session_alone_says_nothing() {
    let prompt =
        TestPrompt { tools: vec![("mcp__docs__search", 9)], ..TestPrompt::new(1, &[('a', 1)]) };
    let history = builder(&[turn(1, vec![])]).with_prompts(prompts(&[prompt])).finish();
    let found = find(&history);
    assert_eq!((found.findings.len(), found.opportunities), (0, 1));
}
