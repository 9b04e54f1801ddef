//! Schemas of adaptations, and of the request that changes one.

use serde_json::Value;

use super::json_schema::{
    count, described, is, list, named, nullable, nullable_count, object, one_of, text, time, with,
};

pub fn adaptations() -> Value {
    object([
        ("version", described(count(), "of all together; agents get it in the frame")),
        ("reload_needed", described(is("boolean"), "files were changed, and not yet taken over")),
        ("problems", described(list(text()), "what is wrong with the files, with file and line")),
        ("items", list(named("Adaptation"))),
    ])
}

pub fn adaptation() -> Value {
    let lists = [("agents", list(text())), ("channels", list(text())), ("projects", list(text()))];
    let [agents, channels, projects] = lists;
    let scope = with([], [agents, channels, projects, ("global", is("boolean"))]);
    object([
        ("id", text()),
        ("version", described(count(), "for `If-Match`")),
        ("sha256", text()),
        ("title", text()),
        ("content", text()),
        ("enabled", is("boolean")),
        ("trial", described(nullable("string"), "`half`: included in half of the sessions")),
        ("scope", described(scope, "an absent list restricts nothing")),
        ("tags", list(text())),
        ("rule", described(nullable("string"), "the rule of findings that it is to make fewer")),
        ("never", described(nullable("string"), "the calls that it forbids")),
        ("origin", one_of(&["shipped", "user", "project"])),
        ("project", described(nullable("string"), "the project whose file has it")),
    ])
}

/// The body of a change.
pub fn adaptation_edit() -> Value {
    with(
        [],
        [
            ("title", text()),
            ("content", text()),
            ("enabled", is("boolean")),
            ("trial", one_of(&["half", "all"])),
        ],
    )
}

pub fn preview() -> Value {
    object([
        ("agent", text()),
        ("channel", text()),
        ("project", nullable("string")),
        ("version", count()),
        ("sha256", text()),
        ("included_ids", list(text())),
        ("left_out_ids", described(list(text()), "the text would be too long with them")),
        ("on_trial_ids", described(list(text()), "included in half of the sessions")),
        ("text", text()),
        ("frame", described(nullable("string"), "what the agent gets; null for nothing")),
        ("chars", described(count(), "characters that each prompt grows by")),
    ])
}

pub fn history() -> Value {
    let version = with(
        [
            ("at", time()),
            ("key", text()),
            ("version", count()),
            ("state", described(count(), "the version of all together that had it first")),
            ("sha256", text()),
            ("who", text()),
            ("title", text()),
            ("content", text()),
            ("enabled", is("boolean")),
        ],
        [("why", text()), ("trial", text())],
    );
    object([("id", text()), ("versions", described(list(version), "oldest first"))])
}

pub fn seen() -> Value {
    let session = object([
        ("session", text()),
        ("agent", text()),
        ("title", text()),
        ("started_at", time()),
        ("delivered", described(is("boolean"), "our hook printed it")),
        (
            "seen",
            described(nullable("boolean"), "it is in its prompts; null if they are not known"),
        ),
        ("calls", described(count(), "model calls that were sent it")),
        ("of_calls", described(count(), "model calls whose prompts are known")),
        ("versions", list(count())),
        ("altered", described(is("boolean"), "the text is not the one of its digest")),
        ("first_turn", nullable_count()),
    ]);
    object([
        ("id", text()),
        ("enabled", is("boolean")),
        ("delivered_sessions", count()),
        ("delivered_last_at", time()),
        ("seen_sessions", count()),
        ("seen_calls", count()),
        ("delivered_not_seen", count()),
        ("sessions", described(list(session), "newest first; at most 50")),
    ])
}

/// The answer to a reload.
pub fn reloaded() -> Value {
    object([("version", count()), ("changed", list(text()))])
}
