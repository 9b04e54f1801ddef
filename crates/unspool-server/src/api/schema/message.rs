//! Schemas of a session's turns as messages, as groups and as tool calls.

use serde_json::{Value, json};
use unspool_model::part::Kind;
use unspool_query::params::TOOL_STATES;

use super::json_schema::{
    anything, count, described, is, list, named, nullable, object, one_of, text, time,
};
use super::part::part_of;
use super::session::content;

pub fn message() -> Value {
    let part = json!({ "anyOf": [named("Part"), named("UserPart"), named("FramePart")] });
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

/// A part in the words of frames, where they differ.
pub fn frame_part() -> Value {
    let thinking = part_of(Kind::Reasoning, "thinking");
    let ids = || [("part", text()), ("tool_call_id", text())];
    let call = [
        ("kind", json!({ "const": "tool_call" })),
        ("name", text()),
        ("title", nullable("string")),
        ("input", anything()),
        ("state", one_of(TOOL_STATES)),
        ("question", anything()),
        ("answer", anything()),
    ];
    let result = [
        ("kind", json!({ "const": "tool_result" })),
        ("is_error", is("boolean")),
        ("state", one_of(TOOL_STATES)),
        ("output", nullable("string")),
        ("exit_code", nullable("integer")),
    ];
    let (call, result) = (call.into_iter().chain(ids()), result.into_iter().chain(ids()));
    json!({ "oneOf": [thinking, object(call), object(result)] })
}

pub fn group() -> Value {
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

pub fn tool_calls() -> Value {
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
