//! Schemas of the user's notes, and of the request that changes a session's name, tags or notes.

use serde_json::Value;

use super::json_schema::{
    described, is, list, named, nullable, nullable_count, object, one_of, text, time, with,
};

pub fn note() -> Value {
    object([
        ("on", one_of(&["session", "turn", "part"])),
        ("turn", described(nullable_count(), "the number of its turn")),
        ("turn_id", nullable("string")),
        ("part", nullable("string")),
        ("bookmark", described(is("boolean"), "it has no text")),
        ("text", text()),
        ("at", time()),
        ("lost", described(is("boolean"), "its turn or part is no longer in the transcript")),
    ])
}

/// What a session's name, tags and notes are after a change.
pub fn session_edits() -> Value {
    object([
        ("title", nullable("string")),
        ("name", described(nullable("string"), "the name that the user gave it")),
        ("tags", list(text())),
        ("notes", list(named("Note"))),
    ])
}

/// The body of the request.
pub fn session_edit() -> Value {
    let note = with(
        [("text", described(nullable("string"), "empty for a bookmark; null removes the note"))],
        [
            ("part", described(nullable("string"), "on the part with this id")),
            ("turn_id", described(nullable("string"), "on the turn with this id")),
            ("turn", described(nullable_count(), "on the turn with this number")),
        ],
    );
    let note = described(note, "on the session as a whole without `part`, `turn_id` and `turn`");
    with(
        [],
        [
            ("name", described(nullable("string"), "null restores the agent's own title")),
            ("add_tags", list(text())),
            ("remove_tags", list(text())),
            ("note", note),
        ],
    )
}
