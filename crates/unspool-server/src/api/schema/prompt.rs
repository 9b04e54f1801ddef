//! The schema of what a model call was sent.

use serde_json::Value;
use unspool_model::prompt::PieceKind;

use super::json_schema::{count, described, is, list, nullable, object, one_of, text, with};

/// What all calls of a session were sent.
pub fn prompt_context() -> Value {
    let kinds: Vec<&str> = PieceKind::ALL.iter().map(|kind| kind.name()).collect();
    let source = || {
        object([
            ("kind", one_of(&kinds)),
            ("source", described(nullable("string"), "the tool, the file, the hook")),
            ("mcp_server", nullable("string")),
            ("chars", described(count(), "summed over all calls")),
            (
                "estimated_tokens",
                described(count(), "the measured tokens of each call, shared out by characters"),
            ),
        ])
    };
    let context = object([
        ("sources", described(list(source()), "most first")),
        ("unused_tools", described(list(source()), "schemas that were sent and never called")),
    ]);
    described(context, "what all calls were sent; without `turn`")
}

pub fn prompt_knowledge() -> Value {
    let knowledge = object([
        ("grade", one_of(&["whole", "part", "conversation"])),
        ("since", described(nullable("string"), "the first version of which this is so")),
        ("known", text()),
        ("missing", described(text(), "what is not in the log")),
        ("next", described(text(), "how to get the rest")),
    ]);
    described(knowledge, "what is known instead, if there are no single calls; without `turn`")
}

pub fn prompt() -> Value {
    let kinds: Vec<&str> = PieceKind::ALL.iter().map(|kind| kind.name()).collect();
    let kind = || one_of(&kinds);
    let span = with([("kind", kind()), ("start", count()), ("end", count())], [("label", text())]);
    let piece = object([
        ("kind", kind()),
        ("role", one_of(&["head", "system", "developer", "user", "assistant"])),
        ("at", described(text(), "where it stands in the request, as a JSON pointer")),
        ("chars", count()),
        ("label", described(nullable("string"), "the tool, the file, or whatever else it is from")),
        ("text", described(nullable("string"), "null if it is not known, or no text")),
        ("spans", described(list(span), "what stands inside the text, in characters")),
    ]);
    let truth = with(
        [
            ("complete", is("boolean")),
            ("unknown_messages", count()),
            ("not_recorded", described(list(text()), "what the agent never writes down")),
        ],
        [("unknown_pieces", count())],
    );
    with(
        [
            ("turn", described(nullable("integer"), "null if no source says which step it is")),
            ("step", nullable("integer")),
            ("call", described(text(), "the agent's name for the request")),
            ("at", described(nullable("string"), "when it was recorded")),
            ("sent_at", described(nullable("string"), "null if no source says it")),
            ("first_token_at", nullable("string")),
            ("ended_at", described(nullable("string"), "the reply was complete, or it had failed")),
            (
                "no_reply",
                described(is("boolean"), "it failed, was tried again, or is not answered yet"),
            ),
            ("model", nullable("string")),
            ("messages", count()),
            ("chars", count()),
            ("chars_by_kind", list(object([("kind", kind()), ("chars", count())]))),
            ("truth", truth),
            ("base", described(nullable("string"), "the call that this one begins like")),
            ("keep", described(count(), "how many messages it has in common with `base`")),
        ],
        [("pieces", described(list(piece), "in the order of the request; only with `turn`"))],
    )
}
