use proptest::prelude::*;

use super::query::{Need, Reach};
use super::{Kind, Query};

fn parsed(typed: &str) -> Vec<(Kind, String, bool)> {
    let query = Query::parse(typed);
    let wanted = query.conditions().iter().map(|it| (it.kind(), it.text().to_owned(), true));
    let excluded = query.excluded().iter().map(|it| (it.kind(), it.text().to_owned(), false));
    wanted.chain(excluded).collect()
}

#[track_caller]
fn reads(typed: &str, expected: &[(Kind, &str, bool)]) {
    let expected: Vec<_> = expected.iter().map(|it| (it.0, it.1.to_owned(), it.2)).collect();
    assert_eq!(parsed(typed), expected, "{typed}");
}

#[test]
fn queries_are_read() {
    use Kind::{Fragment, Prefix, Word};
    reads("Alpha  beta alpha", &[(Word, "alpha", true), (Word, "beta", true)]);
    reads("alph*", &[(Prefix, "alph", true)]);
    reads(
        "\"Exact phrase, with: that\" x",
        &[(Fragment, "exact phrase, with: that", true), (Word, "x", true)],
    );
    reads(
        "src/main.rs E0308: can't",
        &[(Fragment, "src/main.rs", true), (Fragment, "e0308:", true), (Fragment, "can't", true)],
    );
    reads("foo::bar_baz", &[(Fragment, "foo::bar_baz", true)]);
    reads(
        "a -b -c* -\"d e\" -f/g",
        &[
            (Word, "a", true),
            (Word, "b", false),
            (Prefix, "c", false),
            (Fragment, "d e", false),
            (Fragment, "f/g", false),
        ],
    );
    reads(
        "--release -> - *alph* src/ma* ** /*",
        &[
            (Fragment, "--release", true),
            (Fragment, "->", true),
            (Fragment, "-", true),
            (Fragment, "alph", true),
            (Fragment, "src/ma", true),
            (Fragment, "**", true),
            (Fragment, "/*", true),
        ],
    );
    reads("中 中文", &[(Word, "中", true), (Fragment, "中文", true)]);
}

#[test]
fn odd_queries_are_read_too() {
    use Kind::{Fragment, Word};
    reads("", &[]);
    reads(" \t\n", &[]);
    reads("\"\" \"  \" \"", &[]);
    reads("\"open end", &[(Fragment, "open end", true)]);
    reads("\"key\":\"value\" x", &[(Fragment, "key\":\"value", true), (Word, "x", true)]);
    reads("say\"so", &[(Fragment, "say\"so", true)]);
    reads("... ;", &[(Fragment, "...", true), (Fragment, ";", true)]);
    reads("-", &[(Fragment, "-", true)]);
    assert!(!Query::parse("...").conditions()[0].has_words());
    assert!(Query::parse("").is_empty());
    assert_eq!(Query::parse(&"x y z. ".repeat(100_000)).conditions().len(), 3);
    let many: String = (0..1000).map(|number| format!("w{number} ")).collect();
    assert_eq!(Query::parse(&many).conditions().len(), 64);
}

#[test]
fn fragments_need_whole_words_only_inside() {
    let needs = |typed: &str| {
        Query::parse(typed).conditions()[0]
            .needs()
            .into_iter()
            .map(|it| (it.reach, it.word))
            .collect::<Vec<_>>()
    };
    let need = |reach, word: &str| (reach, word.to_owned());
    assert_eq!(
        needs("foo::bar_baz"),
        [need(Reach::End, "foo"), need(Reach::Whole, "bar"), need(Reach::Start, "baz")]
    );
    assert_eq!(needs("\"(foo bar)\""), [need(Reach::Whole, "foo"), need(Reach::Whole, "bar")]);
    assert_eq!(needs("E0308:"), [need(Reach::End, "e0308")]);
    assert_eq!(needs("\" foo\""), [need(Reach::Start, "foo")]);
    assert_eq!(needs("\"foo\""), [need(Reach::Inside, "foo")]);
    assert_eq!(needs("\"中x\""), [need(Reach::Whole, "中"), need(Reach::Start, "x")]);
    assert_eq!(needs("\"...\""), []);
    let long = "ab".repeat(40);
    assert_eq!(needs(&long), [need(Reach::Whole, &long[..64])]);
    assert_eq!(needs(&format!("{long}.")), [need(Reach::End, &long[80 - 29..])]);
    assert_eq!(needs(&format!("\"{long}\"")), [need(Reach::Inside, &long[..29])]);
}

proptest! {
    #[test]
    fn anything_can_be_asked(typed in "\\PC{0,60}") {
        let query = Query::parse(&typed);
        for condition in query.conditions().iter().chain(query.excluded()) {
            let needs: Vec<Need> = condition.needs();
            prop_assert_eq!(needs.is_empty(), !condition.has_words());
            prop_assert!(needs.iter().all(|need| !need.word.is_empty()));
        }
        query.widened();
    }

    #[test]
    fn signs_in_any_order_can_be_asked(typed in "[-*\" ax.]{0,20}", text in "[-*\" ax.]{0,20}") {
        let query = Query::parse(&typed);
        prop_assert_eq!(query.matches(&[&text]) && !query.conditions().is_empty(), query.matches(&[&text]) && !query.ranges(&text).is_empty());
    }
}
