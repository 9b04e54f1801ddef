//! Schemas of a session and its turns.

use serde_json::{Value, json};

use super::json_schema::{
    SchemaField, count, described, is, list, named, nullable, object, one_of, or_null, text, time,
    with,
};

pub fn usage(more: impl IntoIterator<Item = SchemaField>) -> Value {
    let counts = ["input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning"];
    let costs = ["cost_usd", "partial_cost_usd", "estimated_cost_usd"];
    let counts = counts.into_iter().map(|name| (name, count()));
    let costs = costs.into_iter().map(|name| (name, nullable("number")));
    object(counts.chain(costs).chain(more))
}

pub fn session() -> Value {
    object(session_fields())
}

/// A session in a list, with what it does now.
pub fn listed_session() -> Value {
    let states = ["working", "waiting", "maybe-waiting", "silent"];
    let activity =
        with([("state", one_of(&states)), ("since", time())], [("what", nullable("string"))]);
    let activity = described(or_null(activity), "what a live session does now");
    let context = described(or_null(context()), "how full the context of a live session is");
    object(session_fields().into_iter().chain([("activity", activity), ("context", context)]))
}

fn session_fields() -> Vec<SchemaField> {
    let mut fields: Vec<SchemaField> = vec![
        ("id", text()),
        ("agent", text()),
        ("agent_session_id", text()),
        ("project", nullable("string")),
        ("branch", nullable("string")),
        ("version", nullable("string")),
        ("title", nullable("string")),
        ("tags", list(text())),
        ("models", list(text())),
        ("state", one_of(&["live", "idle", "ended"])),
        ("completeness", one_of(&["full", "partial", "final-only", "failed"])),
        ("started_at", time()),
        ("ended_at", time()),
    ];
    let parent = object([
        ("session", text()),
        ("call_id", nullable("string")),
        ("kind", nullable("string")),
    ]);
    fields.push(("parent", or_null(parent)));
    fields.push((
        "forked_from",
        or_null(object([("session", text()), ("turn", nullable("string"))])),
    ));
    fields.extend(["turns", "parts", "tools", "errors"].map(|name| (name, count())));
    fields.extend(["usage", "usage_with_agents"].map(|name| (name, named("Usage"))));
    fields
}

/// How full the model's context is.
pub fn context() -> Value {
    let tokens = "of the last prompt; null right after a compaction";
    let window = "the size of the model's window; null if the agent does not report it";
    let limit =
        "the tokens at which the agent last compacted the session by itself; null if unknown";
    object([
        ("tokens", described(nullable("integer"), tokens)),
        ("window", described(nullable("integer"), window)),
        ("compactions", count()),
        ("compacts_at", described(nullable("integer"), limit)),
    ])
}

pub fn records() -> Value {
    let left_out = json!({ "type": "object", "additionalProperties": count() });
    let counts = ["read", "in_parts", "metadata", "unreadable"].map(|name| (name, count()));
    object(counts.into_iter().chain([("left_out", left_out)]))
}

pub fn turn() -> Value {
    let triggers = ["user", "command", "hook", "schedule", "agent", "continuation"];
    let states = ["running", "completed", "failed", "interrupted", "unknown"];
    let required = [
        ("id", text()),
        ("number", count()),
        ("trigger", one_of(&triggers)),
        ("thinking_mode", is("boolean")),
        ("state", one_of(&states)),
        ("abandoned", is("boolean")),
        ("inherited", is("boolean")),
        ("started_at", time()),
        ("ended_at", time()),
        ("usage", named("Usage")),
        ("user", list(named("UserPart"))),
        ("parts", list(named("Part"))),
        ("content", content()),
    ];
    // Only false, if no source reports how the turn ended.
    with(required, [("observed", is("boolean"))])
}

pub fn content() -> Value {
    described(text(), "derived: the text parts, joined; never shown in place of the parts")
}
