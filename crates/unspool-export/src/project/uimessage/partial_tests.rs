//! `partial.jsonl` has what the SDK itself made of texts that grow letter by letter: a line for
//! each text, with the value if there is one.

use serde_json::Value;

use super::value;

#[test]
fn half_written_json_is_read_as_the_sdk_reads_it() {
    let lines = include_str!("partial.jsonl").lines();
    let mut seen = 0;
    for line in lines {
        let case: Vec<Value> = serde_json::from_str(line).unwrap();
        let (text, expected) = (case[0].as_str().unwrap(), case.get(1));
        let found = value(text).map(|json| counted(json.value()));
        assert_eq!(found, expected.cloned().map(counted), "{text}");
        seen += 1;
    }
    assert!(seen > 200, "{seen}");
}

/// To JavaScript, all numbers are of one kind.
fn counted(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64()),
        Value::Array(all) => all.into_iter().map(counted).collect(),
        Value::Object(all) => all.into_iter().map(|(name, one)| (name, counted(one))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

#[test]
fn whatever_it_is_it_is_read_or_not() {
    for text in [
        "}",
        "]]]",
        "{\"a\":}",
        "[,",
        "\"\\u12",
        "\"\\ud83d",
        "{\"a\"1",
        "\u{fffd}{",
        "--",
        "nulll",
    ] {
        let _ = value(text);
    }
    assert_eq!(value("{\"a\":\"b\\ud83d").unwrap().value()["a"], "b\u{fffd}");
}
