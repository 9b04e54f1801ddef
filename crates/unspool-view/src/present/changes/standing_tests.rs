//! Tests of what became of added lines.

use super::*;
use crate::block::{DiffLine, DiffSpan, Hunk};

fn diff(lines: &str) -> Diff {
    let line = |(at, line): (usize, &str)| DiffLine {
        kind: match &line[..1] {
            "+" => DiffKind::Added,
            "-" => DiffKind::Removed,
            _ => DiffKind::Context,
        },
        old: None,
        new: Some(at as u64 + 1),
        spans: vec![DiffSpan { text: line[1..].to_owned(), changed: false }],
        no_newline: false,
    };
    let lines = lines.lines().enumerate().map(line).collect();
    Diff { hunks: vec![Hunk { lines }], ..Diff::default() }
}

fn head<'a>(lines: &[(&'a str, Option<&'a str>)]) -> Vec<HeadLine<'a>> {
    lines.iter().map(|(text, commit)| HeadLine { text, commit: *commit }).collect()
}

#[test]
fn each_added_line_has_a_state() {
    let diff = diff("+kept()\n-old()\n+later()\n+removed()\n+}\n+\n context()");
    let head = head(&[("  kept()", Some("c1")), ("}", None), ("context()", None)]);
    let found = FileStanding::new(&diff, &head, "kept()\n}\ncontext()\nlater()\n");
    let states: Vec<_> = found.lines.iter().map(|line| (line.line, line.state)).collect();
    let (stands, unknown) = (LineState::Stands, LineState::Unknown);
    let (uncommitted, gone) = (LineState::Uncommitted, LineState::Gone);
    let expected = [(1, stands), (3, uncommitted), (4, gone), (5, unknown), (6, unknown)]
        .map(|(line, state)| (Some(line), state));
    assert_eq!(states, expected);
    assert_eq!(found.lines[0].commit.as_deref(), Some("c1"));
    let text: String = found.summary().into_iter().map(|span| span.text).collect();
    let expected =
        "1 of 5 added lines stand at HEAD, 1 is not committed, 1 is gone, 2 say too little to tell";
    assert_eq!(text, expected);
}

#[test]
fn a_line_of_the_file_is_taken_once() {
    let diff = diff("+again()\n+again()\n+again()");
    let head = head(&[("again()", Some("c1"))]);
    let found = FileStanding::new(&diff, &head, "again()\nagain()\n");
    let states: Vec<_> = found.lines.iter().map(|line| line.state).collect();
    assert_eq!(states, [LineState::Stands, LineState::Uncommitted, LineState::Gone]);
}

#[test]
fn nothing_was_added_nothing_is_said() {
    assert!(Standing::default().summary().is_empty());
    assert!(FileStanding::new(&diff("-old()"), &[], "").summary().is_empty());
}
