//! Tests of following text through a formatter run.

use super::*;

fn sources(removed: &str, added: &str) -> Option<Vec<Range<usize>>> {
    let removed: Vec<&str> = removed.lines().collect();
    let added: Vec<&str> = added.lines().collect();
    source_lines(&removed, &added)
}

#[test]
fn other_indentation_carries_each_line() {
    let found = sources("  a = 1\n\n  return a", "    a = 1\n  \n    return a");
    assert_eq!(found, Some(vec![0..1, 1..2, 2..3]));
}

#[test]
fn a_broken_line_consists_of_the_line_before() {
    let found = sources("f(a, b)\ng()", "f(\n    a,\n    b,\n)\n\ng()");
    assert_eq!(found, Some(vec![0..1, 0..1, 0..1, 0..1, 0..0, 1..2]));
}

#[test]
fn a_joined_line_consists_of_several() {
    assert_eq!(
        sources("x = [\n  1,\n  'a',\n]", "x = [1, \"a\"]"),
        Some(std::iter::once(0..4).collect())
    );
}

#[test]
fn a_line_that_says_something_else_is_no_formatter_run() {
    assert_eq!(sources("a = 1\nb = 2", "  a = 1\n  b = 3"), None);
    assert_eq!(sources("return x", "returnx"), None, "words are not joined");
    assert_eq!(sources("a = 1", "a = 1\nb = 2"), None);
    assert_eq!(sources("a, b", "a b"), None, "only a comma before a closing bracket may go");
}
