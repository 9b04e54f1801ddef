//! Schemas of responses about the whole archive: search hits and statistics; and of changed files.

use serde_json::Value;

use super::json_schema::{
    count, described, is, list, nullable, nullable_count, object, one_of, text, time,
};
use super::session::usage;

pub fn hit() -> Value {
    object([
        ("session", text()),
        ("turn", nullable_count()),
        ("part", nullable("string")),
        ("kind", one_of(unspool_query::params::SEARCH_KINDS)),
        ("snippet", text()),
        ("agent", text()),
        ("project", nullable("string")),
        ("title", nullable("string")),
        ("tool", nullable("string")),
        ("state", nullable("string")),
        ("at", time()),
    ])
}

pub fn changes() -> Value {
    let basis =
        ["net", "no-positions", "changed-outside", "too-many", "before-unknown", "not-recorded"];
    let file = object([
        ("path", text()),
        ("name", described(text(), "relative to the project folder if the file is inside")),
        ("status", one_of(&["new", "modified", "deleted", "moved", "unchanged"])),
        ("moved_from", nullable("string")),
        (
            "basis",
            described(
                one_of(&basis),
                "net: the diff leads from the file before to the file after. Otherwise `note` says \
                 what the diff is",
            ),
        ),
        ("note", nullable("string")),
        ("added", count()),
        ("removed", count()),
        ("diff", described(text(), "hunks of a unified diff")),
        ("edits", list(object([("session", text()), ("turn", count()), ("part", text())]))),
    ]);
    object([
        ("files", list(file)),
        ("failed_edits", count()),
        ("commands", described(count(), "shell commands whose changes are not in the log")),
        ("notes", list(text())),
    ])
}

pub fn commits() -> Value {
    let commit = object([
        ("commit", text()),
        ("author", text()),
        ("at", time()),
        ("subject", text()),
        ("added", described(count(), "the lines that it added")),
        ("lines", described(count(), "those of them that the session wrote")),
        ("exact", described(count(), "those of them with the exact text of an edit")),
    ]);
    let state = described(
        one_of(&["stands", "uncommitted", "gone", "unknown"]),
        "unknown: the text is there, but says too little to tell who wrote it, or another wrote it \
         since",
    );
    let line = object([
        ("line", described(nullable_count(), "its number after the change")),
        ("state", state),
        ("commit", described(nullable("string"), "the commit at HEAD that it stands in")),
    ]);
    let file = object([
        ("path", text()),
        ("name", text()),
        ("lines", described(list(line), "the added lines, in the order of the diff")),
    ]);
    object([
        ("commits", list(commit)),
        ("files", described(list(file), "the changed files that git knows")),
        ("outside", described(list(text()), "edited files in no repository of this machine")),
    ])
}

fn spent() -> Value {
    usage([
        ("unpriced_steps", count()),
        ("spent_usd", nullable("number")),
        ("is_estimated", is("boolean")),
    ])
}

pub fn stats() -> Value {
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
    let groups = ["by_day", "by_week", "by_month", "by_model", "by_agent", "by_project"];
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
    let slow = [
        ("tool", text()),
        ("what", text()),
        ("duration_ms", count()),
        ("waited_ms", nullable_count()),
        ("may_include_waiting", is("boolean")),
    ];
    let hour = ["weekday", "hour", "turns", "steps", "tokens"].map(|name| (name, count()));
    let failure = [
        ("tool", text()),
        ("error", text()),
        ("count", count()),
        ("sessions", count()),
        ("last", object(place())),
    ];
    let path = [
        ("calls", list(object([("tool", text()), ("failed", is("boolean"))]))),
        ("count", count()),
        ("sessions", count()),
        ("last", object(place())),
    ];
    object(groups.chain([
        ("totals", object(totals)),
        ("tools", list(tool())),
        ("by_hour", list(object(hour))),
        ("most_expensive", list(expensive())),
        ("slowest", list(object(slow.into_iter().chain(place())))),
        ("failures", list(object(failure))),
        ("error_paths", list(object(path))),
    ]))
}

fn tool() -> Value {
    let duration = object([
        ("known", count()),
        ("median_ms", nullable_count()),
        ("p95_ms", nullable_count()),
        ("total_ms", count()),
        ("with_waiting", count()),
    ]);
    let calls = ["calls", "completed", "failed", "denied", "interrupted", "running"];
    let tool = calls.into_iter().map(|name| (name, count())).chain([
        ("name", text()),
        ("error_rate", nullable("number")),
        ("duration", duration),
    ]);
    object(tool)
}

fn expensive() -> Value {
    object([
        ("session", text()),
        ("title", nullable("string")),
        ("agent", text()),
        ("project", nullable("string")),
        ("started_at", time()),
        ("sub_agents", count()),
        ("turns", count()),
        ("usage", spent()),
    ])
}
