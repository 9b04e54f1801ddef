use proptest::prelude::*;

use super::model::{lower, naive_matches, text};
use super::{Condition, ConditionKind, TextQuery};

/// A query built from pieces of texts: words, prefixes, fragments, exclusions.
pub(super) fn query_from(texts: &[String], picks: &[(usize, usize, usize, u8)]) -> String {
    let mut typed = String::new();
    for (which, start, length, how) in picks {
        let Some(text) = texts.get(which % texts.len().max(1)) else { continue };
        let start = text.floor_char_boundary(start % (text.len() + 1));
        let end = text.floor_char_boundary((start + length % 40).min(text.len()));
        let piece = &text[start..end.max(start)];
        let word = piece.split(|it: char| !it.is_alphanumeric()).find(|it| !it.is_empty());
        let word = word.unwrap_or("x");
        match how % 8 {
            0 | 1 => typed.push_str(&format!("{word} ")),
            2 => typed.push_str(&format!("{word}* ")),
            3 => typed.push_str(&format!("-{word} ")),
            4 => typed.push_str(&format!("{} ", piece.to_uppercase().replace('"', ""))),
            _ => typed.push_str(&format!("\"{}\" ", piece.replace('"', ""))),
        }
    }
    typed
}

pub(super) fn picks() -> impl Strategy<Value = Vec<(usize, usize, usize, u8)>> {
    prop::collection::vec((0..50usize, 0..400usize, 1..60usize, any::<u8>()), 0..4)
}

proptest! {
    #[test]
    fn matching_is_naive_matching(texts in prop::collection::vec(text(), 1..4), picks in picks()) {
        let query = TextQuery::parse(&query_from(&texts, &picks));
        let fields: Vec<&str> = texts.iter().map(String::as_str).collect();
        prop_assert_eq!(query.matches(&fields), naive_matches(&query, &fields), "{:?}", query);
        let widened = query.widened();
        prop_assert_eq!(widened.matches(&fields), naive_matches(&widened, &fields));
    }

    #[test]
    fn ranges_are_where_it_matches(text in text(), picks in picks()) {
        let query = TextQuery::parse(&query_from(std::slice::from_ref(&text), &picks));
        let ranges = query.ranges(&text);
        prop_assert!(ranges.iter().all(|it| it.start < it.end && text.is_char_boundary(it.start) && text.is_char_boundary(it.end)));
        prop_assert!(ranges.is_sorted_by(|one, other| one.end <= other.start));
        for condition in query.conditions() {
            let alone = TextQuery::parse(&match condition.kind() {
                ConditionKind::Word => condition.text().to_owned(),
                // No other query is certain to have only this phrase.
                ConditionKind::Phrase => continue,
                ConditionKind::Prefix => format!("{}*", condition.text()),
                ConditionKind::Fragment => format!("\"{}\"", condition.text()),
            });
            let found = alone.ranges(&text);
            prop_assert_eq!(!found.is_empty(), alone.matches(&[&text]));
            let joined: usize = found.iter().map(|it| lower(&text[it.clone()]).matches(condition.text()).count()).sum();
            prop_assert!(found.is_empty() || joined > 0);
            prop_assert!(found.iter().all(|it| ranges.iter().any(|all| all.start <= it.start && it.end <= all.end)));
        }
    }
}

#[track_caller]
fn marks(typed: &str, text: &str, expected: &[&str]) {
    let found: Vec<&str> =
        TextQuery::parse(typed).ranges(text).into_iter().map(|it| &text[it]).collect();
    assert_eq!(found, expected, "{typed} in {text}");
}

#[test]
fn words_are_whole_and_fragments_are_not() {
    marks("alpha", "alpha Alpha, alphabet _ALPHA_ xalpha", &["alpha", "Alpha", "ALPHA"]);
    marks("alph*", "alpha xalpha Alphabet", &["alph", "Alph"]);
    marks("\"pha\"", "alpha PHAse", &["pha", "PHA"]);
    marks("b.c", "a.b.c a.bc", &["b.c"]);
    marks("b.c", "ab.c b.cd b.c", &["b.c"]);
    marks("-a -a", "x-a -a -a", &["-a -a"]);
    marks("a.a", "xa.a.a", &["a.a"]);
    marks("\"a b\" b", "a b", &["a b"]);
    marks("中", "日中文", &["中"]);
    marks("x", "中x中 xx", &["x"]);
}

#[test]
fn ranges_are_those_of_the_original() {
    // Characters whose lower case is longer (Ⱥ, 2 to 3 bytes) and shorter (K, 3 to 1; İ stays).
    marks("ⱥb", "xx ȺB ⱥb", &["ȺB", "ⱥb"]);
    marks("kelvin", "Ⱥ \u{212a}elvin Ⱥ kelvin", &["\u{212a}elvin", "kelvin"]);
    marks("\"k\"", "a\u{212a}b", &["\u{212a}"]);
    marks("istanbul", "İstanbul istanbul", &["istanbul"]);
    marks("größe", "GRÖSSE GRÖßE", &["GRÖßE"]);
}

#[test]
fn each_condition_holds_in_one_field() {
    let query = TextQuery::parse("alpha \"beta gamma\" -delta");
    assert!(query.matches(&["alpha", "beta gamma"]));
    assert!(!query.matches(&["alpha beta", "gamma"]));
    assert!(!query.matches(&["alpha", "beta gamma", "delta"]));
    assert!(!query.matches(&[]));
    assert!(TextQuery::parse("").matches(&[]));
    assert!(TextQuery::parse("-\"x\"").matches(&["y"]));
    assert_eq!(Condition::new(ConditionKind::Word, "ÄX").text(), "äx");
}
