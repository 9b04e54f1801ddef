//! The outline accepts exactly what `serde_json` accepts.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// True if `serde_json` accepts it.
fn is_object(text: &str) -> bool {
    serde_json::from_str::<BTreeMap<String, &RawValue>>(text).is_ok()
}

fn check(text: &str) {
    let mut outline = JsonOutline::default();
    let found = outline.read(text);
    assert_eq!(found.is_ok(), is_object(text), "{text:?}: {:?}", found.err());
}

#[test]
fn what_is_no_json_object_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "{}",
        " {\t}\r ",
        "[]",
        "7",
        "\"a\"",
        "null",
        "{}{}",
        "{} x",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":1"#,
        r#"{a:1}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":[,1]}"#,
        r#"{"a":[1}"#,
        r#"{"a":{]}"#,
        r#"{"a":[]]}"#,
        r#"{"a":tru}"#,
        r#"{"a":truer}"#,
        r#"{"a":nul"#,
        r#"{"a":True}"#,
        r#"{"a":NaN}"#,
        r#"{"a":01}"#,
        r#"{"a":-}"#,
        r#"{"a":-01}"#,
        r#"{"a":1.}"#,
        r#"{"a":.5}"#,
        r#"{"a":+1}"#,
        r#"{"a":1e}"#,
        r#"{"a":1e+}"#,
        r#"{"a":1E-9}"#,
        r#"{"a":-0.0e0}"#,
        r#"{"a":1e999}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12g4"}"#,
        r#"{"a":"\u123"}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"\ud800":1}"#,
        r#"{"a":{"\ud800":1}}"#,
        r#"{"a":"b}"#,
        r#"{"a":"b\"}"#,
        r#"{"a":"b\\"}"#,
        "{\"a\":\"\t\"}",
        "{\"a\":\"\u{1f}\"}",
        "{\"a\":\"\u{7f}\"}",
        "{\"a\t\":1}",
        "{\"a\u{0}\":1}",
        "{\"a\":\"0123456\u{1}\"}",
        "{\"a\":\"01234567890123\n\"}",
        "\u{feff}{}",
        "{\u{a0}}",
        "{\u{b}}",
    ] {
        check(text);
    }
}

#[test]
fn nesting_is_as_deep_as_it_is() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
        let text = format!("{{\"a\":{}1{}}}", open.repeat(50_000), close.repeat(50_000));
        check(&text);
        check(&text[..text.len() - 1]);
        check(&text.replacen(close, "", 1));
    }
}

#[test]
fn what_is_wrong_is_said_in_the_words_of_the_parser() {
    let error = |text: &str| JsonOutline::default().read(text).unwrap_err().to_string();
    assert_eq!(error("7"), "invalid type: integer `7`, expected a JSON object at line 1 column 1");
    assert_eq!(error("{} x"), "trailing characters at line 1 column 4");
    assert_eq!(error(r#"{"a":"#), "EOF while parsing a value at line 1 column 5");
}

#[test]
fn an_outline_is_of_the_last_record_only() {
    let mut outline = JsonOutline::default();
    assert!(outline.read(r#"{"a":[{"b":1}],"c":2}"#).unwrap().has("c"));
    assert!(outline.read(r#"{"a":[{"#).is_err());
    let fields = outline.read(r#"{"d":1}"#).unwrap();
    assert!(fields.has("d") && !fields.has("a") && !fields.has("c"));
}

proptest! {
    /// Pieces of JSON in any order.
    #[test]
    fn any_pieces_are_taken_as_a_parser_takes_them(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\\", "\"a\"", "\"b\":", "1", "-", ".5", "e3",
                "true", "null", " ", "\\n", "\\u00e9", "\\ud800", "é", "\t", "{}", "[]", "\"a\":1",
            ]),
            0..24,
        ),
    ) {
        let inside = pieces.concat();
        check(&inside);
        check(&format!("{{\"x\":{inside}}}"));
        check(&format!("{{{inside}}}"));
        check(&format!("{{\"x\":\"{inside}\"}}"));
    }

    /// A record with one byte changed.
    #[test]
    fn any_change_is_seen_as_a_parser_sees_it(at in any::<prop::sample::Index>(), byte in 0_u8..128) {
        let record = r#"{"type":"user","uuid":"u-1","message":{"content":[{"type":"text","text":"a\nb \u00e9"},
            {"n":-1.5e3,"t":true}]},"timestamp":"2026-11-15T00:28:32.334Z","list":[null,false,0]}"#;
        let mut bytes = record.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        check(&String::from_utf8(bytes).unwrap());
    }
}
