//! Tests of giving the claims of commits to the lines of the file.

use unspool_view::present::blame::{CommitLine, Confidence, LineKey};

use super::*;

fn line(text: &str, commit: usize, earlier: Option<(usize, u32)>) -> FileLine {
    FileLine {
        text: text.to_owned(),
        key: LineKey::of(text),
        commit: None,
        origins: vec![Origin { commit: Some(commit), number: 1 }],
        is_reflowed: false,
        earlier: earlier.map(|(commit, number)| Origin { commit: Some(commit), number }),
    }
}

fn file(lines: &[(&str, usize)]) -> Vec<FileLine> {
    lines.iter().map(|(text, commit)| line(text, *commit, None)).collect()
}

/// An agent wrote commit 0, a person inserted a function after it.
#[test]
fn lines_that_a_later_insertion_may_have_written_are_nobodys() {
    let lines = file(&[("total", 0), ("}", 0), ("fn b()", 1), ("}", 1), ("end", 0)]);
    assert_eq!(disputed(&lines, &["agent", "agent", "hand", "hand", "agent"]), [3, 1]);
    assert!(disputed(&lines, &["agent"; 5]).is_empty(), "one writer, no dispute");
    let older = file(&[("total", 1), ("}", 1), ("fn b()", 0), ("}", 0), ("end", 1)]);
    let writers = ["hand", "hand", "agent", "agent", "hand"];
    assert!(disputed(&older, &writers).is_empty(), "an older block cannot be the inserted one");
}

#[test]
fn a_line_that_says_nothing_is_followed_only_with_its_neighbours() {
    let lines = [
        line("return None", 2, Some((0, 8))),
        line("other", 2, None),
        line("if not widget_total:", 2, Some((0, 20))),
        line("    return None", 2, Some((0, 21))),
        line("    return None", 2, Some((0, 40))),
    ];
    assert_eq!(followed(&lines), [false, false, true, true, false]);
}

#[test]
fn a_line_that_says_nothing_needs_a_neighbour_of_its_edit() {
    let claim = |edit: usize, number: u32| {
        let claim = Claim { edit, confidence: Confidence::Exact };
        Some(LineClaim { claim, from: Origin { commit: Some(0), number } })
    };
    let found = [claim(0, 4), claim(0, 5), None, claim(0, 9), claim(1, 10), claim(0, 20), None];
    assert_eq!(alone(&found, &[false; 7]), [3, 4, 5]);
    let tells = [false, false, false, true, true, false, false];
    assert_eq!(alone(&found, &tells), [5], "a text that says who wrote it stands alone");
}

#[test]
fn a_text_says_who_wrote_it_if_it_was_written_once() {
    let lines =
        file(&[("x = load(widget)", 1), ("log.info(start)", 1), ("}", 0), ("y = load(order)", 0)]);
    let added = |text: &str| CommitLine::new(text.to_owned(), 1, true);
    let commit = |texts: &[&str]| CommitLines {
        lines: texts.iter().map(|text| added(text)).collect(),
        ..CommitLines::default()
    };
    let commits = vec![
        commit(&["x = load(widget)", "log.info(start)", "}", "y = load(order)"]),
        commit(&["  log.info(start)"]),
    ];
    let place = crate::blame::file_history::FilePlace {
        name: String::new(),
        folders: Vec::new(),
        names: Default::default(),
    };
    let history = FileHistory { place, lines, commits, removed: Vec::new() };
    assert_eq!(distinctive(&history), [true, false, false, true]);
}
