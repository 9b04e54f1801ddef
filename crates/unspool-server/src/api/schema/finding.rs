//! The schema of findings.

use serde_json::{Value, json};
use unspool_view::finding::Rule;

use super::json_schema::{count, described, is, list, nullable, object, one_of, text};

pub fn findings() -> Value {
    let opportunities = json!({
        "type": "object",
        "description": "how often each rule could have found something",
        "additionalProperties": { "type": "integer", "minimum": 0 },
    });
    let session = object([
        ("id", text()),
        ("agent", text()),
        ("title", text()),
        ("project", nullable("string")),
        ("started_at", nullable("string")),
        ("opportunities", opportunities),
        ("findings", described(count(), "how many findings it has")),
    ]);
    object([
        ("sessions", described(list(session), "the sessions that were looked at, newest first")),
        ("findings", described(list(finding()), "by rule, those over several sessions first")),
    ])
}

fn finding() -> Value {
    let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    let cost = object([
        ("calls", nullable("integer")),
        ("duration_ms", nullable("integer")),
        (
            "may_include_waiting",
            described(is("boolean"), "the duration may include waiting for a person"),
        ),
        ("tokens", nullable("integer")),
        ("tokens_are_estimated", described(is("boolean"), "computed from characters")),
        ("chars", nullable("integer")),
    ]);
    let evidence = object([
        ("session", text()),
        ("turn", count()),
        ("step", described(nullable("integer"), "the model call, if it is about a prompt")),
        ("part", described(nullable("string"), "null for a model call without a reply")),
        ("what", text()),
    ]);
    object([
        ("rule", one_of(&rules)),
        ("signature", described(text(), "what is the same when it happens again")),
        ("title", described(text(), "what happened, in one line")),
        ("sessions", described(count(), "in how many sessions")),
        ("count", described(count(), "how often")),
        ("opportunities", described(count(), "how often it could have happened")),
        ("cost", described(cost, "null where it is not known")),
        ("evidence", described(list(evidence), "the parts that show it")),
    ])
}
