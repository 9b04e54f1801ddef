//! What the SDK itself would refuse in a message or a chunk: where it is, and what. It is read all
//! the same, as far as it says anything; whoever wrote it should know (R-001-05).

use std::borrow::Cow;

use super::super::Fields;

type Found = Result<(), String>;

/// The texts and the values that must be there, by the kind of a part or of a chunk.
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

/// A state of a tool part: what must be there, and what must not.
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

/// Fields that may be left out, but not be null.
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

/// A message as it is kept.
pub fn message(fields: &Fields<'_>) -> Found {
    let name = fields.string("id").unwrap_or_default();
    let at = |wrong: String| format!("message {name:?}: {wrong}");
    inside(fields).map_err(at)
}

fn inside(fields: &Fields<'_>) -> Found {
    text(fields, "", "id")?;
    let role = fields.text("role").unwrap_or_default();
    if !["system", "user", "assistant"].contains(&&*role) {
        return wrong("role", "system, user or assistant is expected");
    }
    if !fields.told("parts").is_some_and(|parts| parts.starts_with('[')) {
        return wrong("parts", "a list is expected");
    }
    if role != "assistant" && fields.items("parts").next().is_none() {
        return wrong("parts", "there are none");
    }
    fields.items("parts").enumerate().try_for_each(|(nth, (_, fields))| part(&fields, nth))
}

fn part(part: &Fields<'_>, nth: usize) -> Found {
    let path = format!("parts[{nth}]");
    if !part.is_object() {
        return wrong(&path, "an object is expected");
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
        return wrong(&format!("{path}.state"), "streaming or done is expected");
    }
    let url = part.text("url").unwrap_or_default();
    if kind == "file" && url.split_once(':').is_none_or(|(scheme, _)| scheme.contains('/')) {
        return wrong(&format!("{path}.url"), "an address is expected");
    }
    Ok(())
}

fn tool(part: &Fields<'_>, path: &str, kind: &str) -> Found {
    text(part, path, "toolCallId")?;
    if kind == "dynamic-tool" {
        text(part, path, "toolName")?;
        if part.flag("dynamic") {
            return wrong(&format!("{path}.dynamic"), "it may only be false");
        }
    }
    let told = part.text("state").unwrap_or_default();
    let Some((state, needs, never)) = STATES.iter().find(|(state, ..)| *state == told) else {
        return wrong(&format!("{path}.state"), "no state of a tool that is known");
    };
    let lacks = needs.iter().find(|name| part.told(name).is_none());
    if let Some(name) = lacks {
        return wrong(&format!("{path}.{name}"), &format!("missing in the state {state}"));
    }
    if let Some(name) = never.iter().find(|name| part.told(name).is_some()) {
        return wrong(&format!("{path}.{name}"), &format!("not expected in the state {state}"));
    }
    if needs.contains(&"errorText") {
        text(part, path, "errorText")?;
    }
    if part.told("approval").is_some() {
        approval(&part.fields("approval"), &format!("{path}.approval"), state)?;
    }
    Ok(())
}

fn approval(approval: &Fields<'_>, path: &str, state: &str) -> Found {
    text(approval, path, "id")?;
    let place = format!("{path}.approved");
    let approved = approval.truth("approved");
    match (state, approved) {
        ("approval-requested", _) if approval.told("approved").is_some() => {
            wrong(&place, "not expected before somebody answers")
        }
        ("approval-responded", None) => wrong(&place, "true or false is expected"),
        ("output-denied", Some(true) | None) => wrong(&place, "false is expected"),
        ("output-available" | "output-error", Some(false) | None) => {
            wrong(&place, "true is expected")
        }
        _ => Ok(()),
    }
}

/// A chunk of a stream, by itself.
pub fn chunk(chunk: &Fields<'_>) -> Found {
    let kind = chunk.text("type").unwrap_or_default();
    shared(chunk, "")?;
    known(chunk, "", &kind, CHUNKS)?;
    let reason = chunk.text("finishReason");
    if reason.is_some_and(|reason| !FINISHED.contains(&&*reason)) {
        return wrong("finishReason", "no reason that is known");
    }
    Ok(())
}

fn known(fields: &Fields<'_>, path: &str, kind: &str, shapes: &[Shape]) -> Found {
    if kind.starts_with("data-") {
        return there(fields, path, "data");
    }
    let Some((_, texts, values)) = shapes.iter().chain(THINGS).find(|(name, ..)| *name == kind)
    else {
        return wrong(&place(path, "type"), &format!("{kind:?} is nothing that is known"));
    };
    texts.iter().try_for_each(|name| text(fields, path, name))?;
    values.iter().try_for_each(|name| there(fields, path, name))
}

/// What goes for everything: a field may be left out, but not be null, and what a provider says
/// stands under its name.
fn shared(fields: &Fields<'_>, path: &str) -> Found {
    let null =
        |(name, value): &(Cow<'_, str>, &str)| *value == "null" && OPTIONAL.contains(&&**name);
    if let Some((name, _)) = fields.each().find(null) {
        return wrong(&place(path, &name), "null; leave it out instead");
    }
    let odd = |(_, value): &(_, &str)| !value.starts_with('{');
    match fields.fields("providerMetadata").each().find(odd) {
        Some((provider, _)) => {
            let name = format!("providerMetadata.{provider}");
            wrong(&place(path, &name), "an object is expected under the name of a provider")
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
        if fields.told(name).is_some() { "a text is expected" } else { "missing" },
    )
}

fn there(fields: &Fields<'_>, path: &str, name: &str) -> Found {
    if fields.told(name).is_some() { Ok(()) } else { wrong(&place(path, name), "missing") }
}

fn place(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn wrong(place: &str, what: &str) -> Found {
    Err(format!("{place}: {what}"))
}
