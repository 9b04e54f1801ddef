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
    use ConditionKind::{Fragment, Phrase, Prefix, Word};
    reads("Alpha  beta alpha", &[(Word, "alpha", true), (Word, "beta", true)]);
    reads("alph*", &[(Prefix, "alph", true)]);
    reads(
        "\"Exact phrase, with: that\" x",
        &[(Fragment, "exact phrase, with: that", true), (Word, "x", true)],
    );
    reads(
        "src/main.rs E0308: can't",
        &[(Phrase, "src/main.rs", true), (Phrase, "e0308:", true), (Phrase, "can't", true)],
    );
    reads("foo::bar_baz", &[(Phrase, "foo::bar_baz", true)]);
    reads(
        "a -beta -c* -\"d e\" -f/g",
        &[
            (Word, "a", true),
            (Word, "beta", false),
            (Prefix, "c", false),
            (Fragment, "d e", false),
            (Phrase, "f/g", false),
        ],
    );
    reads(
        "-> - *alph* src/ma* ** /*",
        &[
            (Phrase, "->", true),
            (Phrase, "-", true),
            (Fragment, "alph", true),
            (Fragment, "src/ma", true),
            (Fragment, "**", true),
            (Fragment, "/*", true),
        ],
    );
    reads("中 中文", &[(Word, "中", true), (Phrase, "中文", true)]);
}

#[test]
fn odd_queries_are_read_too() {
    use ConditionKind::{Fragment, Phrase, Word};
    reads("", &[]);
    reads(" \t\n", &[]);
    reads("\"\" \"  \" \"", &[]);
    reads("\"open end", &[(Fragment, "open end", true)]);
    reads("\"key\":\"value\" x", &[(Fragment, "key\":\"value", true), (Word, "x", true)]);
    reads("say\"so", &[(Phrase, "say\"so", true)]);
    reads("... ;", &[(Phrase, "...", true), (Phrase, ";", true)]);
    reads("-", &[(Phrase, "-", true)]);
    assert!(!TextQuery::parse("...").conditions()[0].has_words());
    assert!(TextQuery::parse("").is_empty());
    assert_eq!(TextQuery::parse(&"x y z. ".repeat(100_000)).conditions().len(), 3);
    let many: String = (0..1000).map(|number| format!("w{number} ")).collect();
    assert_eq!(TextQuery::parse(&many).conditions().len(), 64);
}

/// Reads `typed` as one phrase.
#[track_caller]
fn reads_as_written(typed: &str) {
    reads(typed, &[(ConditionKind::Phrase, &typed.to_lowercase(), true)]);
}

#[test]
fn a_command_line_is_read_as_it_is_written() {
    use ConditionKind::{Fragment, Phrase, Prefix, Word};
    for typed in [
        "rm -rf",
        "rm -rf node_modules",
        "git -C /repo status",
        "ls -la",
        "-rf",
        "--save-dev",
        "npm install --save-dev typescript",
        "foo -bar",
        "go test -race ./...",
        "find . -name Cargo.toml",
        "tar -xzvf logs.tgz",
        "gcc -Wall -O2",
        "make -j16 -keep",
        "clang -std=c++20",
        "kill -9 4711",
        "offset -273.15",
        "-Wall",
        "-exclude first",
        "id INTEGER NOT NULL",
        "NOT NULL",
        "ps aux | grep -v node",
    ] {
        reads_as_written(typed);
    }
    reads("rm   -rf\t/tmp", &[(Phrase, "rm -rf /tmp", true)]);
    // A quote, a star or an exclusion ends the command line.
    reads(
        "git commit -m \"Fix it\" -v now*",
        &[
            (Phrase, "git commit -m", true),
            (Fragment, "fix it", true),
            (Phrase, "-v", true),
            (Prefix, "now", true),
        ],
    );
    reads("rm -rf NOT /tmp", &[(Phrase, "rm -rf", true), (Phrase, "/tmp", false)]);
    reads("tar -x -\"a b\"", &[(Phrase, "tar -x", true), (Fragment, "a b", false)]);
    // No flags.
    reads("a -> b", &[(Word, "a", true), (Phrase, "->", true), (Word, "b", true)]);
}

#[test]
fn words_are_excluded_behind_a_dash_or_not() {
    use ConditionKind::{Fragment, Prefix, Word};
    reads("foo -retry", &[(Word, "foo", true), (Word, "retry", false)]);
    reads("foo NOT bar", &[(Word, "foo", true), (Word, "bar", false)]);
    reads("foo NOT ba* x", &[(Word, "foo", true), (Word, "x", true), (Prefix, "ba", false)]);
    reads("foo NOT \"A B\"", &[(Word, "foo", true), (Fragment, "a b", false)]);
    reads("-\"a b\" foo", &[(Word, "foo", true), (Fragment, "a b", false)]);
    // An operator needs something on both sides, and capitals.
    reads("NOT found", &[(Word, "not", true), (Word, "found", true)]);
    reads("why NOT", &[(Word, "why", true), (Word, "not", true)]);
    reads("not found", &[(Word, "not", true), (Word, "found", true)]);
}

#[test]
fn other_readings_have_only_one_reading() {
    let others = |typed: &str| -> Vec<String> {
        TextQuery::other_readings(typed).into_iter().map(|it| it.query).collect()
    };
    assert_eq!(others("rm -rf"), ["rm NOT rf"]);
    assert_eq!(others("git -C /repo log"), ["git /repo log NOT c", "\"git -C\" /repo log"]);
    assert_eq!(others("npm i --save-dev x"), ["npm \"i --save-dev\" x"]);
    assert_eq!(others("id NOT NULL x"), ["id x NOT null", "\"id NOT NULL\" x"]);
    assert_eq!(others("-exclude first"), ["first NOT exclude", "\"-exclude\" first"]);
    assert_eq!(others("foo -retry"), ["\"foo -retry\""]);
    assert_eq!(others("foo NOT retry"), ["\"foo NOT retry\""]);
    assert_eq!(others("foo bar"), ["\"foo bar\""]);
    for typed in ["", "foo", "--save-dev", "\"a b\"", "foo*", "foo -ba*", "foo -\"x y\""] {
        assert_eq!(others(typed), [""; 0], "{typed}");
    }
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
        terms("\"foo::bar_baz\""),
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
    assert_eq!(terms("\"E0308:\""), [term(TermMatch::Suffix, "e0308")]);
    assert_eq!(terms("\" foo\""), [term(TermMatch::Prefix, "foo")]);
    assert_eq!(terms("\"foo\""), [term(TermMatch::Infix, "foo")]);
    assert_eq!(terms("\"中x\""), [term(TermMatch::Whole, "中"), term(TermMatch::Prefix, "x")]);
    assert_eq!(terms("\"...\""), []);
    assert_eq!(terms("ls -la"), [term(TermMatch::Whole, "ls"), term(TermMatch::Whole, "la")]);
    let long = "ab".repeat(40);
    assert_eq!(terms(&long), [term(TermMatch::Whole, &long[..64])]);
    assert_eq!(terms(&format!("\"{long}.\"")), [term(TermMatch::Suffix, &long[80 - 29..])]);
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
    fn signs_in_any_order_parse(typed in "([-*\" ax.]|NOT |longer){0,20}", text in "[-*\" ax.]{0,20}") {
        let query = TextQuery::parse(&typed);
        for other in TextQuery::other_readings(&typed) {
            prop_assert!(TextQuery::parse(&other.query) != query, "{typed:?} is {other:?} already");
        }
        prop_assert_eq!(query.matches(&[&text]) && !query.conditions().is_empty(), query.matches(&[&text]) && !query.ranges(&text).is_empty());
    }
}
