use proptest::prelude::*;

use super::model::text;
use super::{TextQuery, snippet};

proptest! {
    #[test]
    fn a_snippet_is_one_short_line(texts in prop::collection::vec(text(), 0..8), typed in "[a-z中é]{1,3}", width in 0..60usize) {
        let text = texts.join("\n");
        let ranges = TextQuery::parse(&typed).widened().ranges(&text);
        let snippet = snippet(&text, &ranges, width);
        prop_assert!(!snippet.text.chars().any(char::is_control));
        prop_assert!(!snippet.text.contains("  "));
        prop_assert!(snippet.text.chars().count() <= width.max(1) + 2 + 32);
        prop_assert!(snippet.ranges.is_sorted_by(|one, other| one.end <= other.start));
        prop_assert!(snippet.ranges.iter().all(|it| snippet.text.get(it.clone()).is_some_and(|it| !it.is_empty())));
        prop_assert!(ranges.is_empty() || width < 10 || !snippet.ranges.is_empty());
    }

    #[test]
    fn odd_ranges_are_survived(text in "\\PC{0,40}", ranges in prop::collection::vec((0..60usize, 0..60usize), 0..5), width in 0..30usize) {
        let ranges: Vec<_> = ranges.into_iter().map(|(start, end)| start..end).collect();
        let snippet = snippet(&text, &ranges, width);
        prop_assert!(snippet.ranges.iter().all(|it| snippet.text.get(it.clone()).is_some()));
    }
}

fn cut(text: &str, typed: &str, width: usize) -> (String, Vec<String>) {
    let snippet = snippet(text, &TextQuery::parse(typed).ranges(text), width);
    let marked = snippet.ranges.iter().map(|it| snippet.text[it.clone()].to_owned()).collect();
    (snippet.text, marked)
}

#[test]
fn the_densest_matches_are_shown() {
    let text =
        format!("alpha {} alpha\n\n\tbeta\u{1b} alpha {}", "x ".repeat(100), "y ".repeat(100));
    let (line, marked) = cut(&text, "alpha beta", 40);
    assert_eq!(marked, ["alpha", "beta", "alpha"]);
    assert!(line.contains("alpha beta alpha"), "{line}");
    assert!(line.starts_with('…') && line.ends_with('…'), "{line}");
    assert_eq!(line.chars().count(), 40 - 4 + 2, "four characters became part of a space");
}

#[test]
fn short_texts_are_shown_whole() {
    assert_eq!(cut("a\r\nb", "b", 10), ("a b".to_owned(), vec!["b".to_owned()]));
    assert_eq!(cut("", "b", 10), (String::new(), vec![]));
    assert_eq!(cut("no match here", "b", 8), ("no match…".to_owned(), vec![]));
    // Width that one side does not use goes to the other.
    assert_eq!(cut("0123456789 b", "b", 6).0, "…6789 b");
    assert_eq!(cut("b 0123456789", "b", 6).0, "b 0123…");
    assert_eq!(cut("a\u{202e}b", "b", 6).0, "a b");
}

#[test]
fn nothing_is_torn() {
    let text = format!("{}x{}", "e\u{301}".repeat(20), "👩\u{200d}👩\u{200d}👧".repeat(9));
    for width in 1..30 {
        let (line, _) = cut(&text, "\"x\"", width);
        let inner = line.trim_matches('…');
        assert!(!inner.starts_with(['\u{301}', '\u{200d}']), "{line}");
        assert!(!inner.ends_with(['\u{200d}']), "{line}");
    }
}
