use super::super::super::test_sessions::{edit, found, history, titles, turn};
use super::*;
use unspool_model::part::Tool;

fn lines(word: &str, count: usize) -> String {
    (0..count).map(|n| format!("{word} line {n}\n")).collect()
}

/// One edit after the other replaces what the one before wrote.
fn rewrites(count: usize, lines_each: usize) -> Vec<Tool> {
    let version = |nth: usize| lines(&format!("version{nth}"), lines_each);
    (0..count).map(|nth| edit("/w/a.rs", &version(nth), &version(nth + 1))).collect()
}

#[test]
fn lines_that_are_written_and_rewritten_are_a_finding() {
    let findings = found(find, rewrites(4, 2));
    assert_eq!(findings.len(), 1);
    // Three later edits replace the two lines of the edit before.
    assert_eq!(
        findings[0].title,
        "/w/a.rs was edited 4 times in a turn; 6 lines were written and then rewritten"
    );
    assert_eq!(
        (findings[0].count, findings[0].opportunities, findings[0].evidence.len()),
        (4, 4, 4)
    );
    assert_eq!(findings[0].evidence[0].what, "+2 −2 lines");
}

#[test]
fn many_edits_of_different_lines_are_none() {
    let apart = |nth: usize| {
        edit("/w/a.rs", &lines(&format!("old{nth}"), 5), &lines(&format!("new{nth}"), 5))
    };
    assert!(titles(find, (0..10).map(apart).collect()).is_empty());
}

#[test]
fn three_edits_few_lines_or_two_turns_are_none() {
    assert!(titles(find, rewrites(3, 20)).is_empty(), "three edits");
    assert!(titles(find, rewrites(5, 1)).is_empty(), "four lines");
    assert_eq!(titles(find, rewrites(6, 1)).len(), 1, "five lines");
    let mut calls = rewrites(6, 3);
    let later = calls.split_off(3);
    assert!(find(&history(&[turn(1, calls), turn(2, later)])).findings.is_empty());
}

#[test]
fn lines_that_an_edit_only_moves_are_not_rewritten() {
    let text = lines("same", 10);
    let moves = |nth: usize| edit("/w/a.rs", &text, &format!("{text}new line {nth} of it\n"));
    assert!(titles(find, (0..6).map(moves).collect()).is_empty());
}
