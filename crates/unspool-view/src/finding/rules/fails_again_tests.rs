use super::super::super::test_sessions::{
    bash, call, edit, failed, found, history, part_id, parts, read, titles, took, turn,
};
use super::*;
use serde_json::json;

fn missing(path: &str) -> unspool_model::part::Tool {
    failed(took(read(path, "<tool_use_error>File does not exist.</tool_use_error>"), 10))
}

// R-002-42
#[test]
fn the_third_equal_failure_is_a_finding() {
    let calls = vec![missing("/w/a"), read("/w/b", "text"), missing("/w/c"), missing("/w/d")];
    let findings = found(find, calls);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].title, "Read failed 3 times: File does not exist.");
    assert_eq!((findings[0].count, findings[0].opportunities), (3, 4));
    assert_eq!((findings[0].cost.calls, findings[0].cost.duration_ms), (Some(3), Some(30)));
    assert_eq!(parts(&findings[0]), [part_id(1, 0), part_id(1, 2), part_id(1, 3)]);
    assert_eq!(findings[0].evidence[1].what, "/w/c");
}

#[test]
fn two_failures_are_none() {
    assert!(titles(find, vec![missing("/w/a"), missing("/w/b")]).is_empty());
}

#[test]
fn failures_of_different_programs_are_different() {
    let fails = |command: &str| failed(bash(command, "Exit code 1"));
    assert!(
        titles(find, vec![fails("grep a b"), fails("cargo test"), fails("npm test")]).is_empty()
    );
    let same =
        vec![fails("cd /w && cargo test a"), fails("cargo test b"), fails("cargo test -q c")];
    assert_eq!(titles(find, same), ["Bash cargo test failed 3 times: Exit code 1"]);
}

#[test]
fn turns_of_a_session_count_together() {
    let turns = [turn(1, vec![missing("/w/a"), missing("/w/b")]), turn(2, vec![missing("/w/c")])];
    assert_eq!(find(&history(&turns)).findings.len(), 1);
}

#[test]
fn consequences_denials_and_missed_edits_are_no_failures_of_their_own() {
    let sibling =
        || failed(read("/w/a", "<tool_use_error>Sibling tool call errored</tool_use_error>"));
    assert!(titles(find, vec![sibling(), sibling(), sibling()]).is_empty());
    let denied = || super::super::super::test_sessions::denied(bash("rm a", "The user said no"));
    assert!(titles(find, vec![denied(), denied(), denied()]).is_empty());
    let missed = || {
        failed(Tool {
            output: Some("String to replace not found in file.".into()),
            ..edit("/w/a", "x", "y")
        })
    };
    assert!(titles(find, vec![missed(), missed(), missed()]).is_empty());
    let other = || failed(call("Lookup", json!({}), "no such entry 7"));
    assert_eq!(titles(find, vec![other(), other(), other()]).len(), 1);
}

use unspool_model::part::Tool;
