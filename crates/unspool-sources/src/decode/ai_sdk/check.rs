//! Validates messages and chunks by the rules of the SDK and reports the first violation with its
//! path (R-001-05). The decoder reads invalid ones all the same; the result becomes a warning.

use std::borrow::Cow;

use super::super::Fields;

type Found = Result<(), String>;

/// A type of part or chunk, its required string fields, and its other required fields.
type Shape = (&'static str, &'static [&'static str], &'static [&'static str]);

const THINGS: &[Shape] = &[
    ("custom", &["kind"], &[]),
    ("source-url", &["sourceId", "url"], &[]),
    ("source-document", &["sourceId", "mediaType", "title"], &[]),
    ("file", &["mediaType", "url"], &[]),
    ("reasoning-file", &["mediaType", "url"], &[]),
    ("steering-message", &["id"], &["parts"]),
];

const PARTS: &[Shape] =
    &[("text", &["text"], &[]), ("reasoning", &["text"], &[]), ("step-start", &[], &[])];

const CHUNKS: &[Shape] = &[
    ("start", &[], &[]),
    ("start-step", &[], &[]),
    ("finish-step", &[], &[]),
    ("reset-step", &[], &[]),
    ("text-start", &["id"], &[]),
    ("text-delta", &["id", "delta"], &[]),
    ("text-end", &["id"], &[]),
    ("reasoning-start", &["id"], &[]),
    ("reasoning-delta", &["id", "delta"], &[]),
    ("reasoning-end", &["id"], &[]),
    ("tool-input-start", &["toolCallId", "toolName"], &[]),
    ("tool-input-delta", &["toolCallId", "inputTextDelta"], &[]),
    ("tool-input-available", &["toolCallId", "toolName"], &["input"]),
    ("tool-input-error", &["toolCallId", "toolName", "errorText"], &["input"]),
    ("tool-approval-request", &["approvalId", "toolCallId"], &[]),
    ("tool-approval-response", &["approvalId"], &["approved"]),
    ("tool-output-available", &["toolCallId"], &["output"]),
    ("tool-output-error", &["toolCallId", "errorText"], &[]),
    ("tool-output-denied", &["toolCallId"], &[]),
    ("message-metadata", &[], &["messageMetadata"]),
    ("finish", &[], &[]),
    ("abort", &[], &[]),
    ("error", &["errorText"], &[]),
];

/// A state of a tool part, its required fields, and its forbidden fields.
type State = (&'static str, &'static [&'static str], &'static [&'static str]);

const STATES: &[State] = &[
    ("input-streaming", &[], &["output", "errorText", "approval"]),
    ("input-available", &["input"], &["output", "errorText", "approval"]),
    ("approval-requested", &["input", "approval"], &["output", "errorText"]),
    ("approval-responded", &["input", "approval"], &["output", "errorText"]),
    ("output-available", &["input", "output"], &["errorText"]),
    ("output-error", &["errorText"], &["output"]),
    ("output-denied", &["input", "approval"], &["output", "errorText"]),
];

const FINISHED: [&str; 8] =
    ["stop", "length", "content-filter", "tool-calls", "error", "other", "interrupted", "unknown"];

/// Fields that may be absent, but not null.
const OPTIONAL: [&str; 12] = [
    "providerMetadata",
    "callProviderMetadata",
    "resultProviderMetadata",
    "toolMetadata",
    "state",
    "title",
    "filename",
    "id",
    "providerExecuted",
    "rawInput",
    "citations",
    "preliminary",
];

/// Checks a stored message.
pub fn message(fields: &Fields<'_>) -> Found {
    let name = fields.string("id").unwrap_or_default();
    let at = |wrong: String| format!("message {name:?}: {wrong}");
    inside(fields).map_err(at)
}

fn inside(fields: &Fields<'_>) -> Found {
    text(fields, "", "id")?;
    let role = fields.text("role").unwrap_or_default();
    if !["system", "user", "assistant"].contains(&&*role) {
        return wrong("role", "expected system, user or assistant");
    }
    if !fields.raw_or_null("parts").is_some_and(|parts| parts.starts_with('[')) {
        return wrong("parts", "expected an array");
    }
    if role != "assistant" && fields.items("parts").next().is_none() {
        return wrong("parts", "must not be empty");
    }
    fields.items("parts").enumerate().try_for_each(|(nth, (_, fields))| part(&fields, nth))
}

fn part(part: &Fields<'_>, nth: usize) -> Found {
    let path = format!("parts[{nth}]");
    if !part.is_object() {
        return wrong(&path, "expected an object");
    }
    let kind = part.text("type").unwrap_or_default();
    shared(part, &path)?;
    if kind.starts_with("tool-") || kind == "dynamic-tool" {
        return tool(part, &path, &kind);
    }
    known(part, &path, &kind, PARTS)?;
    let state = part.text("state");
    let prose = matches!(&*kind, "text" | "reasoning");
    if prose && state.is_some_and(|state| state != "streaming" && state != "done") {
        return wrong(&format!("{path}.state"), "expected streaming or done");
    }
    let url = part.text("url").unwrap_or_default();
    if kind == "file" && url.split_once(':').is_none_or(|(scheme, _)| scheme.contains('/')) {
        return wrong(&format!("{path}.url"), "expected a URL");
    }
    Ok(())
}

fn tool(part: &Fields<'_>, path: &str, kind: &str) -> Found {
    text(part, path, "toolCallId")?;
    if kind == "dynamic-tool" {
        text(part, path, "toolName")?;
        if part.flag("dynamic") {
            return wrong(&format!("{path}.dynamic"), "must be false");
        }
    }
    let told = part.text("state").unwrap_or_default();
    let Some((state, needs, never)) = STATES.iter().find(|(state, ..)| *state == told) else {
        return wrong(&format!("{path}.state"), "unknown tool state");
    };
    let lacks = needs.iter().find(|name| part.raw_or_null(name).is_none());
    if let Some(name) = lacks {
        return wrong(&format!("{path}.{name}"), &format!("missing in state {state}"));
    }
    if let Some(name) = never.iter().find(|name| part.raw_or_null(name).is_some()) {
        return wrong(&format!("{path}.{name}"), &format!("not allowed in state {state}"));
    }
    if needs.contains(&"errorText") {
        text(part, path, "errorText")?;
    }
    if part.raw_or_null("approval").is_some() {
        approval(&part.fields("approval"), &format!("{path}.approval"), state)?;
    }
    Ok(())
}

fn approval(approval: &Fields<'_>, path: &str, state: &str) -> Found {
    text(approval, path, "id")?;
    let place = format!("{path}.approved");
    let approved = approval.truth("approved");
    match (state, approved) {
        ("approval-requested", _) if approval.raw_or_null("approved").is_some() => {
            wrong(&place, "not allowed before the approval is answered")
        }
        ("approval-responded", None) => wrong(&place, "expected true or false"),
        ("output-denied", Some(true) | None) => wrong(&place, "expected false"),
        ("output-available" | "output-error", Some(false) | None) => wrong(&place, "expected true"),
        _ => Ok(()),
    }
}

/// Checks one chunk of a stream, independently of the others.
pub fn chunk(chunk: &Fields<'_>) -> Found {
    let kind = chunk.text("type").unwrap_or_default();
    shared(chunk, "")?;
    known(chunk, "", &kind, CHUNKS)?;
    let reason = chunk.text("finishReason");
    if reason.is_some_and(|reason| !FINISHED.contains(&&*reason)) {
        return wrong("finishReason", "unknown finish reason");
    }
    Ok(())
}

fn known(fields: &Fields<'_>, path: &str, kind: &str, shapes: &[Shape]) -> Found {
    if kind.starts_with("data-") {
        return there(fields, path, "data");
    }
    let Some((_, texts, values)) = shapes.iter().chain(THINGS).find(|(name, ..)| *name == kind)
    else {
        return wrong(&place(path, "type"), &format!("unknown type {kind:?}"));
    };
    texts.iter().try_for_each(|name| text(fields, path, name))?;
    values.iter().try_for_each(|name| there(fields, path, name))
}

/// Rules for all parts and chunks: optional fields must not be null, and `providerMetadata` maps
/// provider names to objects.
fn shared(fields: &Fields<'_>, path: &str) -> Found {
    let null =
        |(name, value): &(Cow<'_, str>, &str)| *value == "null" && OPTIONAL.contains(&&**name);
    if let Some((name, _)) = fields.each().find(null) {
        return wrong(&place(path, &name), "must not be null; omit the field instead");
    }
    let odd = |(_, value): &(_, &str)| !value.starts_with('{');
    match fields.fields("providerMetadata").each().find(odd) {
        Some((provider, _)) => {
            let name = format!("providerMetadata.{provider}");
            wrong(&place(path, &name), "expected an object")
        }
        None => Ok(()),
    }
}

fn text(fields: &Fields<'_>, path: &str, name: &str) -> Found {
    if fields.is_text(name) {
        return Ok(());
    }
    wrong(
        &place(path, name),
        if fields.raw_or_null(name).is_some() { "expected a string" } else { "missing" },
    )
}

fn there(fields: &Fields<'_>, path: &str, name: &str) -> Found {
    if fields.raw_or_null(name).is_some() { Ok(()) } else { wrong(&place(path, name), "missing") }
}

fn place(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn wrong(place: &str, what: &str) -> Found {
    Err(format!("{place}: {what}"))
}
