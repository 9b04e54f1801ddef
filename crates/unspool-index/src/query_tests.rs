use proptest::prelude::*;

use super::query::{Term, TermMatch};
use super::{ConditionKind, TextQuery};

fn parsed(typed: &str) -> Vec<(ConditionKind, String, bool)> {
    let query = TextQuery::parse(typed);
    let wanted = query.conditions().iter().map(|it| (it.kind(), it.text().to_owned(), true));
    let excluded = query.excluded().iter().map(|it| (it.kind(), it.text().to_owned(), false));
    wanted.chain(excluded).collect()
}

#[track_caller]
fn reads(typed: &str, expected: &[(ConditionKind, &str, bool)]) {
    let expected: Vec<_> = expected.iter().map(|it| (it.0, it.1.to_owned(), it.2)).collect();
    assert_eq!(parsed(typed), expected, "{typed}");
}

#[test]
fn queries_are_read() {
    use ConditionKind::{Fragment, Prefix, Word};
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
    use ConditionKind::{Fragment, Word};
    reads("", &[]);
    reads(" \t\n", &[]);
    reads("\"\" \"  \" \"", &[]);
    reads("\"open end", &[(Fragment, "open end", true)]);
    reads("\"key\":\"value\" x", &[(Fragment, "key\":\"value", true), (Word, "x", true)]);
    reads("say\"so", &[(Fragment, "say\"so", true)]);
    reads("... ;", &[(Fragment, "...", true), (Fragment, ";", true)]);
    reads("-", &[(Fragment, "-", true)]);
    assert!(!TextQuery::parse("...").conditions()[0].has_words());
    assert!(TextQuery::parse("").is_empty());
    assert_eq!(TextQuery::parse(&"x y z. ".repeat(100_000)).conditions().len(), 3);
    let many: String = (0..1000).map(|number| format!("w{number} ")).collect();
    assert_eq!(TextQuery::parse(&many).conditions().len(), 64);
}

#[test]
fn fragments_need_whole_words_only_inside() {
    let terms = |typed: &str| {
        TextQuery::parse(typed).conditions()[0]
            .terms()
            .into_iter()
            .map(|it| (it.term_match, it.word))
            .collect::<Vec<_>>()
    };
    let term = |term_match, word: &str| (term_match, word.to_owned());
    assert_eq!(
        terms("foo::bar_baz"),
        [
            term(TermMatch::Suffix, "foo"),
            term(TermMatch::Whole, "bar"),
            term(TermMatch::Prefix, "baz")
        ]
    );
    assert_eq!(
        terms("\"(foo bar)\""),
        [term(TermMatch::Whole, "foo"), term(TermMatch::Whole, "bar")]
    );
    assert_eq!(terms("E0308:"), [term(TermMatch::Suffix, "e0308")]);
    assert_eq!(terms("\" foo\""), [term(TermMatch::Prefix, "foo")]);
    assert_eq!(terms("\"foo\""), [term(TermMatch::Infix, "foo")]);
    assert_eq!(terms("\"中x\""), [term(TermMatch::Whole, "中"), term(TermMatch::Prefix, "x")]);
    assert_eq!(terms("\"...\""), []);
    let long = "ab".repeat(40);
    assert_eq!(terms(&long), [term(TermMatch::Whole, &long[..64])]);
    assert_eq!(terms(&format!("{long}.")), [term(TermMatch::Suffix, &long[80 - 29..])]);
    assert_eq!(terms(&format!("\"{long}\"")), [term(TermMatch::Infix, &long[..29])]);
}

proptest! {
    #[test]
    fn any_query_parses(typed in "\\PC{0,60}") {
        let query = TextQuery::parse(&typed);
        for condition in query.conditions().iter().chain(query.excluded()) {
            let terms: Vec<Term> = condition.terms();
            prop_assert_eq!(terms.is_empty(), !condition.has_words());
            prop_assert!(terms.iter().all(|term| !term.word.is_empty()));
        }
        query.widened();
    }

    #[test]
    fn signs_in_any_order_parse(typed in "[-*\" ax.]{0,20}", text in "[-*\" ax.]{0,20}") {
        let query = TextQuery::parse(&typed);
        prop_assert_eq!(query.matches(&[&text]) && !query.conditions().is_empty(), query.matches(&[&text]) && !query.ranges(&text).is_empty());
    }
}
