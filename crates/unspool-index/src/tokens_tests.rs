use proptest::prelude::*;
use serde_json::Value;

use super::model::{naive_words, text, words_of_json, words_of_text};
use super::tokens::{MAX_INFIX_BYTES, pieces};

/// The index words of the naive words.
fn expected(text: &str) -> Vec<String> {
    let mut expected = Vec::new();
    for word in naive_words(text) {
        let mut end = word.floor_char_boundary(1024);
        if !word.is_char_boundary(1024) && word.len() > 1024 {
            end = word.floor_char_boundary(1024);
        }
        pieces(&word[..end], |piece| expected.push(piece.to_owned()));
    }
    expected
}

/// The expected words of a document: those of each string, and the numbers.
fn expected_of_json(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => words.extend(words_of_text(&number.to_string())),
        Value::String(text) => words.extend(words_of_text(text)),
        Value::Array(values) => values.iter().for_each(|value| expected_of_json(value, words)),
        Value::Object(fields) => {
            for (key, value) in fields {
                words.extend(words_of_text(key));
                expected_of_json(value, words);
            }
        }
    }
}

/// Writes a string as JSON, with random choices among the escapes that JSON allows.
fn escape(text: &str, choices: &[u8]) -> String {
    let mut raw = String::from("\"");
    for (index, character) in text.chars().enumerate() {
        let choice = choices.get(index % choices.len().max(1)).copied().unwrap_or(0);
        let escaped = choice < 60;
        match character {
            '"' if choice % 2 == 0 => raw.push_str("\\\""),
            '\\' if choice % 2 == 0 => raw.push_str("\\\\"),
            '\n' if choice % 2 == 0 => raw.push_str("\\n"),
            '\t' if choice % 2 == 0 => raw.push_str("\\t"),
            '/' if choice % 2 == 0 => raw.push_str("\\/"),
            '"' | '\\' | '\0'..' ' => raw.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ if escaped => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    raw.push_str(&format!("\\u{unit:04X}"));
                }
            }
            _ => raw.push(character),
        }
    }
    raw.push('"');
    raw
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn words_are_those_of_the_naive_splitter(text in text()) {
        prop_assert_eq!(words_of_text(&text), expected(&text));
    }

    #[test]
    fn words_of_any_text_are_those_of_the_naive_splitter(text in "\\PC{0,200}") {
        prop_assert_eq!(words_of_text(&text), expected(&text));
    }

    #[test]
    fn words_of_json_are_those_of_its_strings(value in json(), pretty in any::<bool>()) {
        let raw = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let mut expected = Vec::new();
        expected_of_json(&value, &mut expected);
        prop_assert_eq!(words_of_json(&raw.unwrap()), expected);
    }

    #[test]
    fn escapes_change_nothing(text in text(), shift in 0..70usize, choices in prop::collection::vec(any::<u8>(), 1..40)) {
        let raw = escape(&text, &choices);
        prop_assert_eq!(&serde_json::from_str::<String>(&raw).unwrap(), &text);
        let shifted = format!("{}{raw}", " ".repeat(shift));
        prop_assert_eq!(words_of_json(&shifted), words_of_text(&text));
    }

    #[test]
    fn escapes_change_nothing_in_base64(
        text in "([A-Za-z0-9]{1,40}[+/_-]){1,120}",
        shift in 0..70usize,
        choices in prop::collection::vec(any::<u8>(), 1..40),
        rare in any::<bool>(),
    ) {
        let choices: Vec<u8> = choices.iter().map(|it| if rare { it | 0x40 } else { *it }).collect();
        let shifted = format!("{}{}", " ".repeat(shift), escape(&text, &choices));
        prop_assert_eq!(words_of_json(&shifted), words_of_text(&text));
    }

    #[test]
    fn json_never_panics(raw in "[\"\\\\u0dD8cab\\n{}:, né]{0,300}") {
        words_of_json(&raw);
    }

    #[test]
    fn anything_short_inside_a_long_word_stands_in_a_piece(word in "[a-zé中]{1,300}", start in 0..300usize, length in 1..=MAX_INFIX_BYTES) {
        let start = word.floor_char_boundary(start);
        let end = word.floor_char_boundary(start + length);
        let mut all = Vec::new();
        pieces(&word, |piece| all.push(piece.to_owned()));
        prop_assert!(all.iter().any(|piece| piece.contains(&word[start..end])));
        prop_assert!(all.iter().all(|piece| piece.len() <= 64));
        let tail = word.ceil_char_boundary(word.len().saturating_sub(MAX_INFIX_BYTES));
        prop_assert!(all.last().unwrap().ends_with(&word[tail..]));
        prop_assert!(word.starts_with(all.first().unwrap().as_str()));
    }
}

#[test]
fn separators_separate() {
    assert_eq!(
        words_of_text("foo_bar-baz.qux/a::B can't"),
        ["foo", "bar", "baz", "qux", "a", "b", "can", "t"]
    );
    assert_eq!(words_of_text("Größe中文x"), ["größe", "中", "文", "x"]);
    assert_eq!(words_of_text(""), [""; 0]);
    assert_eq!(words_of_text("…—😀 \0"), [""; 0]);
}

#[test]
fn escapes_separate_words_or_are_letters() {
    let words = words_of_json(
        r#"{"one\ntwo":"caf\u00E9s \ud83d\ude00x\u0041","n":[1.5e-3,true,null,"true"]}"#,
    );
    assert_eq!(words, ["one", "two", "cafés", "xa", "n", "1", "5e", "3", "true"]);
    assert_eq!(words_of_json(r#""a\\nb\\\nc\"d\/e""#), ["a", "nb", "c", "d", "e"]);
    // Lone surrogates and invalid escapes.
    assert_eq!(words_of_json(r#""a\ud83db\ude00c""#), ["a", "b", "c"]);
    assert_eq!(words_of_json(r#""a\u12 b\u"#), ["a", "12", "b"]);
}

#[test]
fn words_across_the_edges_of_chunks_stay_whole() {
    for before in 0..140 {
        let text = format!("{}word other", " ".repeat(before));
        assert_eq!(words_of_text(&text), ["word", "other"], "{before}");
        let raw = format!("{}\"w\\u006frd\\nother\"", " ".repeat(before));
        assert_eq!(words_of_json(&raw), ["word", "other"], "{before}");
        for length in 1..140 {
            let text = format!("{}{}", " ".repeat(before), "a".repeat(length));
            assert_eq!(words_of_text(&text), expected(&text), "{before} {length}");
        }
    }
}

#[test]
fn of_base64_only_the_beginning_is_indexed() {
    let piece = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo";
    let blob = vec![piece; 1000].join("/");
    let words = words_of_text(&format!("before {blob} behind"));
    assert!(words.len() < 40, "{}", words.len());
    assert_eq!(words.last().unwrap(), "behind");
    // Long paths and checksums are not base64.
    let path = vec!["directory"; 1000].join("/");
    assert_eq!(words_of_text(&path).len(), 1000);
    assert_eq!(words_of_text(&"a".repeat(1 << 20)).len(), 31);
}

#[test]
fn hostile_text_takes_no_longer_than_other() {
    let size = 4 << 20;
    for piece in ["\\", "\\u", "\"", "a", "é", "中", "\\u0041", "\\ud83d", "a/", "\u{301}"] {
        let text = piece.repeat(size / piece.len());
        let start = std::time::Instant::now();
        words_of_text(&text);
        words_of_json(&text);
        // A quadratic pass would take hours.
        assert!(start.elapsed().as_secs() < 20, "{piece}");
    }
}
