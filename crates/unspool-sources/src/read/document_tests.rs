use std::io::Read;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::DocumentLines;

/// Returns a few bytes per read.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.0.len().min(self.1).min(buffer.len());
        let (now, later) = self.0.split_at(length);
        buffer[..length].copy_from_slice(now);
        self.0 = later;
        Ok(length)
    }
}

fn lines(document: &str, drip: usize) -> Vec<String> {
    let mut text = String::new();
    DocumentLines::new(Drip(document.as_bytes(), drip)).read_to_string(&mut text).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_list_becomes_its_elements() {
    let document = "\u{feff}[\n  {\"a\": \"x, y\\\"]\"},\n  {\"b\": [1, 2]}, 3\n]\n";
    assert_eq!(lines(document, 3), ["{\"a\":\"x, y\\\"]\"}", "{\"b\":[1,2]}", "3"]);
    assert!(lines("[]", 1).is_empty());
}

#[test]
fn an_object_becomes_its_head_its_messages_and_its_rest() {
    let document = r#"{ "id": "x", "n": {"messages": [1]}, "messages": [ {"role": "user"}, {"role": "assistant"} ], "end": true }"#;
    let expected = [
        r#"{"id":"x","n":{"messages":[1]}}"#,
        r#"{"role":"user"}"#,
        r#"{"role":"assistant"}"#,
        r#"{"end":true}"#,
    ];
    assert_eq!(lines(document, 7), expected);
    assert_eq!(lines(r#"{"messages":[]}"#, 2), ["{}", "{}"]);
    let runs =
        r#"{"session_id":"s","conversations":[{"steps":[]}, {"messages":[1]}],"messages":[2]}"#;
    let expected =
        [r#"{"session_id":"s"}"#, r#"{"steps":[]}"#, r#"{"messages":[1]}"#, r#"{"messages":[2]}"#];
    assert_eq!(lines(runs, 5), expected, "one list becomes lines, the first");
    assert_eq!(lines(r#"{"messages":"none"}"#, 2), [r#"{"messages":"none"}"#]);
    // Conversations that are not objects stay a normal field.
    for ids in [r#"["a","b"]"#, "[]", "[[1]]", "[7]"] {
        let document =
            format!(r#"{{"id":"x", "conversations": {ids}, "messages":[{{"role":"user"}}]}}"#);
        let head = format!(r#"{{"id":"x","conversations":{ids}}}"#);
        assert_eq!(lines(&document, 1), [&head, r#"{"role":"user"}"#, "{}"]);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\,:\\[\\]{}\n]{0,8}".prop_map(Value::from),
        Just(Value::from("messages")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![Just("messages".to_owned()), "[a-c\"]{0,2}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_list_is_its_elements(elements in prop::collection::vec(value(), 0..5), drip in 1..9usize) {
        let document = serde_json::to_string_pretty(&Value::from(elements.clone())).unwrap();
        let decoded: Vec<Value> =
            lines(&document, drip).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(decoded, elements);
    }

    #[test]
    fn every_object_keeps_its_fields(
        before in prop::collection::btree_map("[a-d]", value(), 0..3),
        messages in prop::collection::vec(value(), 0..4),
        after in prop::collection::btree_map("[e-h]", value(), 0..3),
        drip in 1..9usize,
    ) {
        let fields = |map: &std::collections::BTreeMap<String, Value>| {
            let pairs: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {value}", json!(key))).collect();
            pairs.join(" ,\n ")
        };
        let list = format!("\"messages\" : {}", serde_json::to_string_pretty(&messages).unwrap());
        let all = [fields(&before), list, fields(&after)];
        let all: Vec<&str> = all.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        let decoded: Vec<Value> = lines(&format!("{{{}}}", all.join(",")), drip)
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let mut expected = vec![json!(before)];
        expected.extend(messages);
        expected.push(json!(after));
        prop_assert_eq!(decoded, expected);
    }
}
