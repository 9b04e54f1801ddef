//! JSON Schemas of the responses. A test checks every response both ways: no field of the schema is
//! missing, and no field is undeclared. Fields may be added in later versions.

use serde_json::{Map, Value, json};
use unspool_core::part::Kind;
use unspool_engine::query::params::TOOL_STATES;

fn is(kind: &str) -> Value {
    json!({ "type": kind })
}

fn nullable(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

fn text() -> Value {
    is("string")
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn nullable_count() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0 })
}

fn time() -> Value {
    json!({ "type": ["string", "null"], "format": "date-time" })
}

fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

/// A reference to another schema.
pub fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn or_null(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

/// Any JSON, as the source wrote it.
fn anything() -> Value {
    json!({ "description": "as the source has it" })
}

type Field = (&'static str, Value);

fn object(required: impl IntoIterator<Item = Field>) -> Value {
    with(required, [])
}

fn with(
    required: impl IntoIterator<Item = Field>,
    optional: impl IntoIterator<Item = Field>,
) -> Value {
    let mut fields = Map::new();
    let mut names = Vec::new();
    for (name, schema) in required {
        names.push(name);
        fields.insert(name.to_owned(), schema);
    }
    fields.extend(optional.into_iter().map(|(name, schema)| (name.to_owned(), schema)));
    json!({ "type": "object", "properties": fields, "required": names })
}

fn described(mut schema: Value, what: &str) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("description".to_owned(), what.into());
    }
    schema
}

/// All of them, by name.
pub fn all() -> Value {
    let mut schemas = Map::new();
    let mut add = |name: &str, schema: Value| schemas.insert(name.to_owned(), schema);
    add("Usage", usage([]));
    add("Session", session());
    add(
        "SessionWithTurns",
        object([
            ("session", named("Session")),
            ("turns", list(named("Turn"))),
            ("records", records()),
            ("warnings", list(object([("file", text()), ("line", count()), ("what", text())]))),
            ("seq", described(count(), "live updates continue from here")),
        ]),
    );
    add("Turn", turn());
    add("Part", bodies(true));
    add("UserPart", bodies(false));
    add(
        "PartInTurn",
        object([
            ("session", text()),
            ("turn", count()),
            ("part", named("Part")),
            ("raw", or_null(raw())),
        ]),
    );
    add("Message", message());
    add("Group", group());
    add("ToolCalls", tool_calls());
    add("Hit", hit());
    add("Stats", stats());
    add(
        "Problem",
        object([
            ("type", text()),
            ("title", text()),
            ("status", count()),
            ("detail", described(text(), "what is wrong, and what to do next")),
        ]),
    );
    add("Document", json!({ "type": "object", "description": "an OpenAPI 3.1 document" }));
    Value::Object(schemas)
}

/// The standalone schema of `unspool export --to json` (docs/session.schema.json).
pub fn session_schema() -> Value {
    let mut schemas = all();
    if let Some(schemas) = schemas.as_object_mut() {
        schemas.retain(|name, _| {
            ["Session", "Turn", "Part", "UserPart", "Usage"].contains(&name.as_str())
        });
    }
    let mut schema = object([("session", named("Session")), ("turns", list(named("Turn")))]);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("A session of Unspool");
    schema["$defs"] = schemas;
    point_refs_at_defs(&mut schema);
    schema
}

/// OpenAPI keeps schemas under `components`, JSON Schema under `$defs`.
fn point_refs_at_defs(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_str().filter(|_| name == "$ref") {
                    Some(text) => *field = text.replace("#/components/schemas/", "#/$defs/").into(),
                    None => point_refs_at_defs(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(point_refs_at_defs),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn usage(more: impl IntoIterator<Item = Field>) -> Value {
    let counts = ["input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning"];
    let costs = ["cost_usd", "estimated_cost_usd"];
    let counts = counts.into_iter().map(|name| (name, count()));
    let costs = costs.into_iter().map(|name| (name, nullable("number")));
    object(counts.chain(costs).chain(more))
}

fn session() -> Value {
    let mut fields: Vec<Field> = vec![
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
    object(fields)
}

fn records() -> Value {
    let left_out = json!({ "type": "object", "additionalProperties": count() });
    let counts = ["read", "in_parts", "metadata", "unreadable"].map(|name| (name, count()));
    object(counts.into_iter().chain([("left_out", left_out)]))
}

fn turn() -> Value {
    let triggers = ["user", "command", "hook", "schedule", "agent", "continuation"];
    let states = ["running", "completed", "failed", "interrupted", "unknown"];
    object([
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
    ])
}

fn content() -> Value {
    described(text(), "derived: the text parts, joined; never shown in place of the parts")
}

/// The schema of a part by its kind: in a reply, or in the user's message.
fn bodies(reply: bool) -> Value {
    let kinds = Kind::ALL.into_iter().map(|kind| {
        let mut fields: Vec<Field> = vec![("kind", json!({ "const": kind.name() }))];
        if reply {
            fields.push(("id", text()));
            fields.push(("step", nullable_count()));
            fields.extend(["started_at", "ended_at"].map(|name| (name, time())));
        }
        let (more, optional) = body(kind);
        fields.extend(more);
        with(fields, optional)
    });
    json!({ "oneOf": kinds.collect::<Vec<Value>>() })
}

/// The required and the optional fields of a kind.
fn body(kind: Kind) -> (Vec<Field>, Vec<Field>) {
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
        Kind::Tool => tool(),
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

fn tool() -> Vec<Field> {
    let option = object([("label", text()), ("description", nullable("string"))]);
    let item = object([
        ("header", nullable("string")),
        ("question", text()),
        ("options", list(option)),
        ("multi_select", is("boolean")),
    ]);
    let question = object([
        ("request_id", nullable("string")),
        ("kind", one_of(&["permission", "choice", "text"])),
        ("items", list(item)),
    ]);
    let answer = object([
        ("decision", one_of(&["allowed", "denied", "answered", "declined"])),
        ("text", text()),
        ("choices", json!({ "type": "object", "additionalProperties": text() })),
        ("observed", is("boolean")),
    ]);
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
        ("question", or_null(question)),
        ("answer", or_null(answer)),
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

fn raw() -> Value {
    let absent = ["unknown", "gone", "changed", "large", "unreadable", ""];
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

fn message() -> Value {
    let part = json!({ "anyOf": [named("Part"), named("UserPart")] });
    object([
        ("id", text()),
        ("session", text()),
        ("execution", described(text(), "the id of the turn")),
        ("role", one_of(&["user", "assistant"])),
        ("sequence", count()),
        ("created_at", time()),
        ("has_tool_calls", is("boolean")),
        ("has_reasoning", is("boolean")),
        ("has_files", is("boolean")),
        ("parts", described(list(part), "what to show, reasoning included, in its order")),
        ("content", content()),
        ("text_preview", described(text(), "the first 200 characters of content")),
    ])
}

fn group() -> Value {
    let turn = || [("turn", count()), ("turn_id", text())];
    let user = [("role", json!({ "const": "user" })), ("items", list(named("UserPart")))];
    let segment = object([
        ("kind", one_of(&["block", "part"])),
        ("tool_calls", count()),
        ("parts", list(text())),
    ]);
    let assistant = [
        ("role", json!({ "const": "assistant" })),
        ("is_thinking_mode", is("boolean")),
        ("items", list(named("Part"))),
        ("segments", described(list(segment), "reasoning blocks and single parts, in order")),
        ("blocks", described(list(list(text())), "derived: the parts of each reasoning block")),
        ("reply", described(list(text()), "derived: the parts outside of blocks")),
    ];
    let (user, assistant) = (user.into_iter().chain(turn()), assistant.into_iter().chain(turn()));
    json!({ "oneOf": [object(user), object(assistant)] })
}

fn tool_calls() -> Value {
    let call = object([
        ("order", described(count(), "its index among all calls of the session")),
        ("turn", count()),
        ("call_id", text()),
        ("name", text()),
        ("input", anything()),
        ("output", nullable("string")),
        ("error", nullable("string")),
        ("state", one_of(TOOL_STATES)),
    ]);
    let dangling = described(list(count()), "the `order` of each call without a result");
    object([("calls", list(call)), ("dangling", dangling)])
}

fn hit() -> Value {
    object([
        ("session", text()),
        ("turn", nullable_count()),
        ("part", nullable("string")),
        ("kind", one_of(unspool_engine::query::params::SEARCH_KINDS)),
        ("snippet", text()),
        ("agent", text()),
        ("project", nullable("string")),
        ("title", nullable("string")),
        ("tool", nullable("string")),
        ("state", nullable("string")),
        ("at", time()),
    ])
}

fn stats() -> Value {
    let spent = || usage([("unpriced_steps", count())]);
    let counts = [
        "sessions",
        "sub_agents",
        "turns",
        "steps",
        "parts",
        "tool_calls",
        "errors",
        "reasoning_parts",
        "reasoning_ms",
        "sessions_with_cost",
    ];
    let totals = counts.into_iter().map(|name| (name, count())).chain([
        ("reasoning_share", nullable("number")),
        ("usage", spent()),
        ("first_at", time()),
        ("last_at", time()),
    ]);
    let group = object([
        ("name", nullable("string")),
        ("sessions", count()),
        ("turns", count()),
        ("steps", count()),
        ("usage", spent()),
    ]);
    let duration = object([
        ("known", count()),
        ("median_ms", nullable_count()),
        ("p95_ms", nullable_count()),
        ("total_ms", count()),
    ]);
    let calls = ["calls", "completed", "failed", "denied", "interrupted", "running"];
    let tool = calls.into_iter().map(|name| (name, count())).chain([
        ("name", text()),
        ("error_rate", nullable("number")),
        ("duration", duration),
    ]);
    let groups = ["by_day", "by_model", "by_agent", "by_project"];
    let groups = groups.into_iter().map(|name| (name, list(group.clone())));
    let place = || {
        [
            ("session", text()),
            ("title", nullable("string")),
            ("turn", count()),
            ("part", text()),
            ("at", time()),
        ]
    };
    let slow = [("tool", text()), ("what", text()), ("duration_ms", count())];
    let failure = [
        ("tool", text()),
        ("error", text()),
        ("count", count()),
        ("sessions", count()),
        ("last", object(place())),
    ];
    object(groups.chain([
        ("totals", object(totals)),
        ("tools", list(object(tool))),
        ("slowest", list(object(slow.into_iter().chain(place())))),
        ("failures", list(object(failure))),
    ]))
}
