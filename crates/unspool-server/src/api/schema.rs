//! JSON Schemas of the responses. A test checks every response both ways: no field of the schema is
//! missing, and no field is undeclared. Fields may be added in later versions.

mod adaptation;
mod archive;
mod finding;
mod json_schema;
mod message;
mod note;
mod part;
mod prompt;
mod proposal;
mod session;

use archive::{changes, commits, hit, stats};
use finding::findings;
use json_schema::{count, described, list, object, or_null, text, with};
use message::{frame_part, group, message, tool_calls};
use note::{note, session_edit, session_edits};
use part::{bodies, raw};
use prompt::{prompt, prompt_context, prompt_knowledge};
use serde_json::{Map, Value, json};
use session::{context, listed_session, records, session, turn, usage};

pub use json_schema::named;

/// All of them, by name.
pub fn all() -> Value {
    let mut schemas = Map::new();
    let mut add = |name: &str, schema: Value| schemas.insert(name.to_owned(), schema);
    add("Usage", usage([]));
    add("Session", session());
    add("ListedSession", listed_session());
    add(
        "SessionWithTurns",
        object([
            ("session", named("Session")),
            ("turns", list(named("Turn"))),
            ("context", or_null(context())),
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
    add("FramePart", frame_part());
    add("Group", group());
    add("ToolCalls", tool_calls());
    add("Note", note());
    add("SessionEdits", session_edits());
    add("SessionEdit", session_edit());
    add("Changes", changes());
    add("Commits", commits());
    add(
        "Prompts",
        with(
            [("prompts", list(prompt()))],
            [("context", prompt_context()), ("knowledge", prompt_knowledge())],
        ),
    );
    add("Findings", findings());
    add("Adaptations", adaptation::adaptations());
    add("Adaptation", adaptation::adaptation());
    add("AdaptationEdit", adaptation::adaptation_edit());
    add("AdaptationPreview", adaptation::preview());
    add("AdaptationHistory", adaptation::history());
    add("AdaptationSeen", adaptation::seen());
    add("AdaptationsReloaded", adaptation::reloaded());
    add("AdaptationEffect", proposal::effect());
    add("Proposal", proposal::proposal());
    add("ProposalDecision", proposal::decision());
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
            ["Session", "Turn", "Part", "UserPart", "Usage", "Note"].contains(&name.as_str())
        });
    }
    let mut schema = with(
        [("session", named("Session")), ("turns", list(named("Turn")))],
        [("notes", described(list(named("Note")), "with `--notes`"))],
    );
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
