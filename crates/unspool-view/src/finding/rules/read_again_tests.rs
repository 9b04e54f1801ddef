use unspool_model::part::{Body, Compaction, Tool};

use super::super::super::test_sessions::{
    bash, found, history, part_id, parts, read, titles, turn, turn_of,
};
use super::*;

fn text() -> String {
    "line of a file\n".repeat(20)
}

fn again() -> Tool {
    read("/w/a.rs", &text())
}

#[test]
fn the_third_read_of_a_text_is_a_finding() {
    let findings =
        found(find, vec![again(), read("/w/b.rs", &"other\n".repeat(100)), again(), again()]);
    assert_eq!(findings.len(), 1);
    // 600 of the 1,500 characters of all outputs.
    assert_eq!(findings[0].title, "/w/a.rs was read 3 times without a change, 40 % of all output");
    assert_eq!((findings[0].cost.chars, findings[0].cost.tokens), (Some(600), Some(150)));
    assert!(findings[0].cost.tokens_are_estimated);
    assert_eq!((findings[0].count, findings[0].opportunities), (3, 4));
    assert_eq!(parts(&findings[0]), [part_id(1, 0), part_id(1, 2), part_id(1, 3)]);
}

#[test]
fn turns_count_together_and_so_does_a_command_that_prints_a_file() {
    let print = || bash("cat /w/a.rs", &text());
    let turns = [turn(1, vec![print()]), turn(2, vec![print()]), turn(3, vec![print()])];
    let findings = find(&history(&turns)).findings;
    assert_eq!(
        findings[0].title,
        "The output of `cat /w/a.rs` was read 3 times without a change, 66 % of all output"
    );
}

#[test]
fn a_file_that_changed_is_another_text() {
    let changed = |nth: usize| read("/w/a.rs", &format!("{}{nth}", text()));
    assert!(titles(find, (0..5).map(changed).collect()).is_empty());
}

#[test]
fn two_reads_and_short_texts_are_none() {
    assert!(titles(find, vec![again(), again()]).is_empty());
    let short = |chars: usize| read("/w/a.rs", &"x".repeat(chars));
    assert!(titles(find, vec![short(199), short(199), short(199)]).is_empty());
    assert_eq!(titles(find, vec![short(200), short(200), short(200)]).len(), 1);
}

#[test]
fn after_a_compaction_the_model_has_to_read_again() {
    let body = |tool: Tool| Body::Tool(Box::new(tool));
    let compaction = Body::Compaction(Compaction::default());
    let bodies = vec![body(again()), body(again()), compaction, body(again()), body(again())];
    assert!(find(&history(&[turn_of(1, bodies)])).findings.is_empty());
}
