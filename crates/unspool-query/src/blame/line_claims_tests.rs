//! Tests of giving the claims of commits to the lines of the file.

use unspool_view::present::blame::LineKey;

use super::*;

fn line(text: &str, commit: usize, earlier: Option<(usize, u32)>) -> FileLine {
    FileLine {
        text: text.to_owned(),
        key: LineKey::of(text),
        commit: None,
        origin: Some(Origin { commit: Some(commit), number: 1 }),
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
fn what_is_left_of_a_replaced_block_is_nobodys_if_it_says_nothing() {
    let lines = file(&[("x = load(widget)", 1), ("return None", 0), ("y = load(widget)", 1)]);
    let writers = [None, Some("agent"), None];
    assert_eq!(left_over(&lines, &writers, &[0, 6, 0]), [1]);
    assert!(left_over(&lines, &writers, &[0, 1, 0]).is_empty(), "the edit wrote only this line");
    let telling = file(&[("}", 1), ("load_order(invoice)", 0), ("return None", 0), ("}", 1)]);
    let writers = [None, Some("agent"), Some("agent"), None];
    assert!(left_over(&telling, &writers, &[0, 6, 6, 0]).is_empty(), "a line of it is unique");
    let copies = file(&[("log.info(start)", 1), ("x = 1", 1), ("log.info(start)", 0)]);
    assert_eq!(left_over(&copies, &[None, None, Some("agent")], &[0, 0, 6]), [2]);
}
