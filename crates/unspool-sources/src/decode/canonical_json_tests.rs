//! The canonical text copied from a record equals what a parser would write.

use std::path::Path;

use proptest::prelude::*;
use unspool_model::assemble::content_hash;

use super::*;
use crate::decode::JsonOutline;

/// Compares the digest of every field with that of the parsed value. Returns the number of fields.
fn check(text: &str) -> usize {
    let mut outline = JsonOutline::default();
    let Ok(fields) = outline.read(text) else { return 0 };
    let mut count = 0;
    let mut names: Vec<_> = fields.entries().filter_map(|(name, _)| fields.text_of(name)).collect();
    names.sort();
    names.dedup();
    for name in names {
        let expected = fields.raw(&name).and_then(Json::parse);
        let expected = expected.map(|json| json.canonical_digest());
        assert_eq!(fields.canonical_digest(&name), expected, "{name} of {text}");
        count += 1;
    }
    count
}

#[test]
fn every_field_of_every_recording_has_the_digest_of_its_value() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/claude-code");
    let mut count = 0;
    for case in folder.read_dir().unwrap() {
        for file in ["log.jsonl", "stream.jsonl", "hooks.jsonl"] {
            let text = std::fs::read_to_string(case.as_ref().unwrap().path().join(file));
            count += text.unwrap_or_default().lines().map(check).sum::<usize>();
        }
    }
    assert!(count > 50_000, "{count}");
}

#[test]
fn values_of_every_shape_have_the_digest_of_what_they_are() {
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    for value in [
        r#"{"b":1,"a":[true,false,null,-1,0],"":"x"}"#,
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"\u0061":1,"b":2}"#,
        r#"{ "b" : "\n\t\"\\\b\f\r" , "a" : "\u001b\/\u00e9é" }"#,
        r#""\ud83d\ude00 \ud83d \udc00x""#,
        r#"[1.0,1e3,-0,0.1,123456789012345678901234567890,18446744073709551615,-9223372036854775808]"#,
        "[999999999999999999,-999999999999999999,1000000000000000000]",
        "\"\u{7f}\u{2028}\"",
        "{}",
        "[]",
        "[ [ ] , { } ]",
        &deep(63),
        &deep(64),
        &deep(127),
        &deep(128),
        &deep(4000),
    ] {
        assert_eq!(check(&format!("{{\"input\":{value}}}")), 1, "{value}");
    }
}

#[test]
fn calls_are_as_alike_as_the_core_says() {
    for input in [r#"{"command":"ls","timeout":5}"#, r#"{"timeout": 5, "command":"ls"}"#, "null"] {
        let text = format!("{{\"input\":{input}}}");
        let mut outline = JsonOutline::default();
        let fields = outline.read(&text).unwrap();
        let found = fields.content_hash("Bash", "input");
        assert_eq!(found, content_hash("Bash", fields.json("input").as_ref()));
    }
}

fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_map(|value| serde_json::to_string(&value).unwrap()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        "[a-z]{0,6}(\\\\[nrtbf/\"\\\\]|\\\\u[0-9a-f]{4}){0,4}"
            .prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let name = prop_oneof!["[a-c]{0,2}", "\\\\u00[46][0-9a-f]", "\\\\n|é"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|values| format!("[{}]", values.join(" , "))),
            prop::collection::vec((name, inner), 0..6).prop_map(|fields| {
                let fields: Vec<_> = fields.iter().map(|(n, v)| format!("\"{n}\": {v}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_has_the_digest_of_what_it_is(value in any_json()) {
        check(&format!("{{\"input\":{value}}}"));
    }
}
