//! Schemas of the parts of a turn, by kind, and of the raw records of a part.

use serde_json::{Value, json};
use unspool_model::part::Kind;
use unspool_query::params::TOOL_STATES;

use super::json_schema::{
    SchemaField, anything, count, described, is, list, nullable, nullable_count, object, one_of,
    or_null, text, time, with,
};

/// The schema of a part by its kind: in a reply, or in the user's message.
pub fn bodies(reply: bool) -> Value {
    let kinds = Kind::ALL.into_iter().map(|kind| match reply {
        true => part_of(kind, kind.name()),
        false => body_of(kind, kind.name(), Vec::new()),
    });
    json!({ "oneOf": kinds.collect::<Vec<Value>>() })
}

/// A part of a reply, with this name of its kind.
pub fn part_of(kind: Kind, name: &str) -> Value {
    let mut fields: Vec<SchemaField> = vec![("id", text()), ("step", nullable_count())];
    fields.extend(["started_at", "ended_at"].map(|name| (name, time())));
    body_of(kind, name, fields)
}

fn body_of(kind: Kind, name: &str, fields: Vec<SchemaField>) -> Value {
    let (more, optional) = body(kind);
    let kind = ("kind", json!({ "const": name }));
    with([kind].into_iter().chain(fields).chain(more), optional)
}

/// The required and the optional fields of a kind.
fn body(kind: Kind) -> (Vec<SchemaField>, Vec<SchemaField>) {
    let nullable_text = || nullable("string");
    let fields = match kind {
        Kind::Text => return (vec![("text", text())], vec![("citations", list(anything()))]),
        Kind::Reasoning => {
            let fields = vec![
                ("text", text()),
                ("duration_ms", nullable_count()),
                ("redacted", is("boolean")),
                ("signature", nullable_text()),
            ];
            return (fields, vec![("signer", text())]);
        }
        // Only false, for a call that the end of its turn interrupted.
        Kind::Tool => {
            let earlier = object([("question", question()), ("answer", answer())]);
            let more = [
                ("observed", is("boolean")),
                ("reported_state", one_of(TOOL_STATES)),
                ("earlier", list(earlier)),
            ];
            return (tool(), more.into());
        }
        Kind::Agent => vec![("call_id", text()), ("agents", list(agent()))],
        Kind::Interjection => vec![("text", text())],
        Kind::TaskList => {
            let states = ["pending", "running", "completed", "cancelled"];
            let item = [("id", nullable_text()), ("text", text()), ("state", one_of(&states))];
            vec![("items", list(object(item)))]
        }
        Kind::SkillLoad => vec![("name", text()), ("call_id", nullable_text()), ("text", text())],
        Kind::McpSnapshot => {
            let server = [("name", text()), ("status", nullable_text()), ("tools", list(text()))];
            vec![("servers", list(object(server)))]
        }
        Kind::ContextInfo => vec![("title", text()), ("text", text())],
        Kind::Compaction => vec![
            ("trigger", nullable_text()),
            ("tokens_before", nullable_count()),
            ("tokens_after", nullable_count()),
            ("duration_ms", nullable_count()),
            ("summary", text()),
        ],
        Kind::File => {
            ["name", "media_type", "url", "text"].map(|name| (name, nullable_text())).into()
        }
        Kind::Source => ["url", "title", "quote"].map(|name| (name, nullable_text())).into(),
        Kind::Patch => {
            vec![("path", nullable_text()), ("diff", text()), ("call_id", nullable_text())]
        }
        Kind::Notice => vec![("code", text()), ("text", text())],
        Kind::Error => {
            vec![("code", nullable_text()), ("status", nullable_count()), ("text", text())]
        }
        Kind::Data => vec![("data_kind", text()), ("payload", anything())],
    };
    (fields, Vec::new())
}

fn question() -> Value {
    let option = object([("label", text()), ("description", nullable("string"))]);
    let item = object([
        ("header", nullable("string")),
        ("question", text()),
        ("options", list(option)),
        ("multi_select", is("boolean")),
    ]);
    object([
        ("request_id", nullable("string")),
        ("kind", one_of(&["permission", "choice", "text"])),
        ("items", list(item)),
    ])
}

fn answer() -> Value {
    let mut answer = object([
        ("decision", one_of(&["allowed", "denied", "answered", "declined"])),
        ("text", text()),
        ("choices", json!({ "type": "object", "additionalProperties": text() })),
        ("observed", is("boolean")),
    ]);
    // Only if a source says who answered.
    answer["properties"]["by"] = text();
    answer
}

fn tool() -> Vec<SchemaField> {
    vec![
        ("call_id", text()),
        ("parent_call_id", nullable("string")),
        ("name", text()),
        ("title", nullable("string")),
        ("input", anything()),
        ("state", one_of(TOOL_STATES)),
        ("output", nullable("string")),
        ("result", anything()),
        ("exit_code", nullable("integer")),
        ("duration_ms", nullable_count()),
        ("question", or_null(question())),
        ("answer", or_null(answer())),
        ("provider_executed", is("boolean")),
    ]
}

fn agent() -> Value {
    let states = ["pending", "running", "background", "completed", "failed", "interrupted"];
    object([
        ("id", text()),
        ("name", text()),
        ("task", text()),
        ("state", one_of(&states)),
        ("background", is("boolean")),
        ("activity", nullable("string")),
        ("session", nullable("string")),
    ])
}

pub fn raw() -> Value {
    let absent = ["unknown", "forgotten", "gone", "changed", "large", "unreadable", ""];
    let names: Vec<Value> = absent
        .iter()
        .map(|name| if name.is_empty() { Value::Null } else { (*name).into() })
        .collect();
    let record = object([
        ("feed", one_of(&["log", "stream", "hooks"])),
        ("file", nullable("string")),
        ("offset", count()),
        ("length", count()),
        ("text", described(nullable("string"), "the record, exactly as in the agent's file")),
        ("absent", json!({ "enum": names, "description": "why there is no text" })),
        ("why", described(nullable("string"), "the same for people")),
    ]);
    let left_out = described(count(), "the number of further records of this part");
    object([("records", list(record)), ("left_out", left_out)])
}
