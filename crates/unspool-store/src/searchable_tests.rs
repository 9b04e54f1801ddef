use proptest::prelude::*;

use super::unescape_json;

/// The reference: every string that serde can parse is replaced by its value, byte by byte.
fn by_the_rule(raw: &str) -> String {
    let mut out = String::new();
    let mut rest = raw;
    while let Some(at) = rest.find('"') {
        out.push_str(&rest[..at]);
        let bytes = &rest.as_bytes()[at + 1..];
        let mut end = 0;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let behind = at + end.min(bytes.len()) + 2;
        let quoted = rest.get(at..behind).unwrap_or(&rest[at..]);
        match serde_json::from_str::<String>(&unspool_model::json::replace_lone_surrogates(quoted))
        {
            Ok(text) => out.push_str(&text),
            Err(_) => out.push_str(quoted),
        }
        rest = rest.get(behind..).unwrap_or_default();
    }
    out + rest
}

proptest! {
    #[test]
    fn json_is_written_out_by_the_rule(texts in prop::collection::btree_map(".{0,8}", any::<String>(), 0..6), pretty in any::<bool>()) {
        let raw = if pretty { serde_json::to_string_pretty(&texts) } else { serde_json::to_string(&texts) };
        let raw = raw.unwrap();
        prop_assert_eq!(unescape_json(&raw), by_the_rule(&raw));
    }

    #[test]
    fn what_is_nearly_json_is_written_out_by_the_rule(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "\"", "\"", "\\", "\\\\", "\\\"", "\\n", "\\t", "\\r", "\\b", "\\f", "\\/", "\\x", "\\u", "\\u00e9",
            "\\u001B", "\\u+0e9", "\\ud83d", "\\ude00", "\\ud83d\\ude00", "\\u00", "a", "word", "é", "😀", "\n",
            "\t", "\u{1}", " ", "{", "}", ":", ",", "0",
        ]), 0..40),
    ) {
        let raw = pieces.concat();
        prop_assert_eq!(unescape_json(&raw), by_the_rule(&raw));
    }
}

#[test]
fn escapes_are_resolved_and_punctuation_stays() {
    assert_eq!(
        unescape_json(r#"{"a\"b":["c\nd\\",1,"\u00e9\ud83d\ude00\ud83d"],"open\"#),
        "{a\"b:[c\nd\\,1,é😀\u{fffd}],\"open\\"
    );
}
