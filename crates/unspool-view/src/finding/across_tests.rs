use super::super::test_sessions::{bash, failed, history, part_id, read, turn};
use super::*;

fn session(failures: usize) -> Shared {
    let missing = |_| failed(read("/w/a", "<tool_use_error>File does not exist.</tool_use_error>"));
    let mut calls: Vec<_> = (0..failures).map(missing).collect();
    calls.push(read("/w/b", "text"));
    calls.push(bash("ls", "a"));
    Shared::of(&history(&[turn(1, calls)]))
}

fn findings(failures: &[usize]) -> Vec<SharedFinding> {
    let sessions: Vec<Shared> = failures.iter().map(|failures| session(*failures)).collect();
    let id = |nth: usize| SessionId::of("test", &nth.to_string());
    across(sessions.iter().enumerate().map(|(nth, shared)| (id(nth), shared)))
}

#[test]
fn a_failure_in_three_sessions_is_a_finding() {
    let found = findings(&[1, 2, 0, 1]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].finding.title, "Read failed 4 times in 3 sessions: File does not exist.");
    assert_eq!((found[0].finding.count, found[0].finding.opportunities), (4, 8));
    assert_eq!(found[0].sessions, 3);
    let last: Vec<_> = found[0].places.iter().map(|(_, evidence)| evidence.part).collect();
    assert_eq!(last, [Some(part_id(1, 0)), Some(part_id(1, 1)), Some(part_id(1, 0))]);
}

#[test]
fn two_sessions_are_none() {
    assert!(findings(&[9, 9]).is_empty());
    assert!(findings(&[9, 9, 0]).is_empty());
}
