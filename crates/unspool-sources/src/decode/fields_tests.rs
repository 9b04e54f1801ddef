//! A field of an unexpected type reads as absent.

use proptest::prelude::*;

use super::*;
use crate::decode::JsonOutline;

/// Runs `look` on the fields of a text.
fn with<T>(text: &str, look: impl FnOnce(Fields<'_>) -> T) -> T {
    look(JsonOutline::default().read(text).unwrap())
}

#[test]
fn a_field_that_is_not_what_it_should_be_is_absent() {
    let text = r#"{"text":"a","number":7,"large":18446744073709551616,"part":1.5,"less":-1,
        "yes":true,"no":false,"null":null,"object":{"in":{"deep":"b"}},"list":[1,{"x":1},[],{"x":2}]}"#;
    with(text, |fields| {
        assert_eq!(fields.text("text").as_deref(), Some("a"));
        assert_eq!((fields.text("number"), fields.text("object")), (None, None));
        assert_eq!((fields.number("number"), fields.number("large")), (Some(7), None));
        assert_eq!((fields.number("part"), fields.number("less")), (None, None));
        assert_eq!((fields.truth("yes"), fields.truth("no")), (Some(true), Some(false)));
        assert_eq!((fields.truth("text"), fields.flag("number")), (None, false));
        assert!(!fields.has("null") && !fields.has("nothing") && fields.has("no"));
        assert_eq!(fields.fields("object").fields("in").string("deep").unwrap(), "b");
        assert!(!fields.fields("text").is_object() && !fields.fields("list").has("x"));
        let list: Vec<_> = fields.list("list").map(|object| object.number("x")).collect();
        assert_eq!(list, [Some(1), Some(2)]);
        assert_eq!(fields.list("object").count() + fields.list("nothing").count(), 0);
        assert!(fields.is_text("text") && !fields.is_text("number"));
        assert_eq!(fields.raw("object"), Some(r#"{"in":{"deep":"b"}}"#));
        assert_eq!(fields.read::<f64>("part"), Some(1.5));
    });
}

#[test]
fn the_first_of_two_fields_counts_and_names_may_be_escaped() {
    with(r#"{"a":1,"\u0061":2,"b\n":3,"c":null,"c":4}"#, |fields| {
        assert_eq!(fields.number("a"), Some(1));
        assert_eq!(fields.number("b\n"), Some(3));
        assert_eq!(fields.number("c"), None);
        // In `whole`, each name occurs once, and the last value counts.
        assert_eq!(fields.whole().text(), r#"{"a":2,"b\n":3,"c":4}"#);
    });
    with(r#"{"q 1":"yes","q\"2":"\n","q3":7}"#, |fields| {
        let pairs = [("q 1".to_owned(), "yes".to_owned()), ("q\"2".to_owned(), "\n".to_owned())];
        assert_eq!(fields.pairs(), pairs);
    });
    assert_eq!(Fields::default().whole().text(), "{}");
}

#[test]
fn half_a_surrogate_pair_does_not_cost_the_text() {
    let text = r#"{"a":"x\ud83d\ude00\ud83d\ud83d\ude00\udc00\ud83dy\ud800"}"#;
    let expected = "x😀\u{fffd}😀\u{fffd}\u{fffd}y\u{fffd}";
    assert_eq!(with(text, |fields| fields.string("a")), Some(expected.to_owned()));
}

#[test]
fn times_are_read_in_every_form() {
    for time in [
        "2026-11-15T00:28:32.334Z",
        "2024-02-29T23:59:59.999Z",
        "0000-01-01T00:00:00.000Z",
        "9999-12-30T21:59:59.999Z",
        "9999-12-31T23:59:59.999Z",
        "2016-12-31T23:59:60.000Z",
        "2026-11-15T00:28:32Z",
        "2026-11-15T00:28:32.334567Z",
        "2026-11-15T00:28:32.334+02:00",
        "2026-02-30T00:28:32.334Z",
        "2026-1a-15T00:28:32.334Z",
        "2026-11-15T24:28:32.334Z",
        "no time",
        "",
    ] {
        let found = with(&format!("{{\"at\":\"{time}\"}}"), |fields| fields.time("at"));
        assert_eq!(found, time.parse().ok(), "{time}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_as_a_parser_reads_it(text in any::<String>(), name in any::<String>()) {
        let record = serde_json::json!({ "before": 1, (&name): text, "behind": [] }).to_string();
        prop_assume!(name != "before" && name != "behind");
        with(&record, |fields| {
            assert_eq!(fields.string(&name).as_deref(), Some(&*text));
            assert_eq!(fields.number("before"), Some(1));
        });
    }

    #[test]
    fn any_escapes_are_read_as_a_parser_reads_them(
        text in "([a-zé]|\\\\[nrtbf/\"\\\\]|\\\\u[0-9a-cA-C][0-9a-fA-F]{3}|\\\\ud83d\\\\ude0[0-9]){0,12}",
    ) {
        let record = format!("{{\"a\":\"{text}\"}}");
        let expected: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
        prop_assert_eq!(with(&record, |fields| fields.string("a")), Some(expected));
    }
}
