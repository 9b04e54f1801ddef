//! Schemas of proposals, of the decision about one, and of what an adaptation changed.

use serde_json::{Value, json};
use unspool_view::finding::Rule;

use super::json_schema::{
    count, described, is, list, named, nullable, object, one_of, text, time, with,
};

pub fn proposal() -> Value {
    with(
        [
            ("number", count()),
            ("at", time()),
            ("id", described(text(), "the adaptation")),
            ("patch", named("AdaptationEdit")),
            ("who", text()),
            ("why", text()),
            ("state", one_of(&["open", "applied", "dismissed"])),
            ("chars", described(count(), "characters that each prompt grows by")),
        ],
        [
            ("project", described(text(), "the project whose file has it")),
            ("evidence", described(list(text()), "`SESSION` or `SESSION turn N`")),
        ],
    )
}

/// The body of a decision.
pub fn decision() -> Value {
    with(
        [("number", count()), ("decision", one_of(&["apply", "dismiss"]))],
        [("trial", described(one_of(&["half", "all"]), "in which sessions, if it is applied"))],
    )
}

pub fn effect() -> Value {
    let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    let rose = object([
        ("rule", text()),
        ("without", nullable("number")),
        ("with", nullable("number")),
        ("probability_higher", is("number")),
    ]);
    let cost = object([("chars_per_call", count()), ("calls", count()), ("chars", count())]);
    let left_out = json!({
        "type": "object",
        "description": "sessions that are in no group, by the reason",
        "additionalProperties": { "type": "integer", "minimum": 0 },
    });
    object([
        ("id", text()),
        ("rule", one_of(&rules)),
        ("unit", described(text(), "what the opportunities are")),
        ("design", one_of(&["trial", "before-after"])),
        ("verdict", one_of(&["fewer", "same", "more", "too little to say"])),
        ("because", text()),
        ("agent", nullable("string")),
        ("project", nullable("string")),
        ("model", nullable("string")),
        ("without", described(arm(), "sessions whose prompts did not have it")),
        ("with", described(arm(), "sessions whose prompts had it")),
        ("probability_lower", described(nullable("number"), "that the rate is lower with it")),
        ("design_effect", described(is("number"), "how much less the counts are worth")),
        ("rose", described(list(rose), "rules of which more was found with it")),
        ("confounders", described(list(text()), "what else differs between the groups")),
        ("left_out", left_out),
        ("cost", cost),
    ])
}

fn arm() -> Value {
    let session = object([("started_at", time()), ("events", count()), ("opportunities", count())]);
    let interval = json!({ "type": ["array", "null"], "items": { "type": "number" } });
    object([
        ("sessions", described(count(), "with an opportunity")),
        ("events", count()),
        ("opportunities", count()),
        ("rate", nullable("number")),
        ("interval", described(interval, "in which the rate is with 95 %")),
        ("session_ids", described(list(text()), "newest first")),
        ("session_counts", described(list(session), "of each session, in the same order")),
    ])
}
