use serde_json::json;

use super::super::super::test_sessions::{
    bash, call, edit, failed, found, part_id, parts, read, titles,
};
use super::*;

fn status() -> unspool_model::part::Tool {
    bash("git status", "nothing to commit")
}

#[test]
fn the_third_equal_call_is_a_finding() {
    let findings = found(find, vec![status(), bash("ls", "a"), status(), status()]);
    assert_eq!(findings.len(), 1);
    assert_eq!(
        findings[0].title,
        "Bash git status was called 3 times with the same input and result"
    );
    // What was in vain: the second and the third call.
    assert_eq!((findings[0].cost.calls, findings[0].cost.chars), (Some(2), Some(34)));
    assert_eq!(parts(&findings[0]), [part_id(1, 0), part_id(1, 2), part_id(1, 3)]);
}

#[test]
fn a_change_between_makes_it_another_call() {
    let change = edit("/w/a", "x", "y");
    assert!(titles(find, vec![status(), status(), change, status()]).is_empty());
    let unknown = bash("./generate", "done");
    assert!(titles(find, vec![status(), status(), unknown, status()]).is_empty());
    let server = call("mcp__jira__create", json!({}), "done");
    assert!(titles(find, vec![status(), status(), server, status()]).is_empty());
}

#[test]
fn a_command_that_may_write_is_compared_with_itself() {
    let test = |seconds: &str| bash("cargo test", &format!("ok. finished in {seconds}s"));
    // Only the numbers differ.
    assert_eq!(titles(find, vec![test("0.1"), test("0.22"), test("1.3")]).len(), 1);
    let other = bash("cargo test", "FAILED");
    assert!(titles(find, vec![test("0.1"), other, test("1.3"), test("1.3")]).is_empty());
}

#[test]
fn two_calls_failures_and_other_inputs_are_none() {
    assert!(titles(find, vec![status(), status()]).is_empty());
    let fails = || failed(bash("ls x", "Exit code 2"));
    assert!(titles(find, vec![fails(), fails(), fails()]).is_empty());
    let list = |path: &str| bash(&format!("ls {path}"), "a");
    assert!(titles(find, vec![list("a"), list("b"), list("c")]).is_empty());
}

#[test]
fn waiting_and_reading_have_rules_of_their_own() {
    let poll = || call("BashOutput", json!({ "bash_id": "1" }), "still running");
    assert!(titles(find, vec![poll(), poll(), poll()]).is_empty());
    let look = || bash("sleep 5; cat log", "not yet");
    assert!(titles(find, vec![look(), look(), look()]).is_empty());
    let again = || read("/w/a", "text");
    assert!(titles(find, vec![again(), again(), again()]).is_empty());
}
