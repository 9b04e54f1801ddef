//! Validates messages and chunks by the rules of the SDK and reports the first violation with its
//! path (R-001-05). The decoder reads invalid ones all the same; the result becomes a warning.

use std::borrow::Cow;

use super::super::Fields;

type CheckResult = Result<(), String>;

/// A type of part or chunk, its required string fields, and its other required fields.
type Shape = (&'static str, &'static [&'static str], &'static [&'static str]);

const SHARED_SHAPES: &[Shape] = &[
    ("custom", &["kind"], &[]),
    ("source-url", &["sourceId", "url"], &[]),
    ("source-document", &["sourceId", "mediaType", "title"], &[]),
    ("file", &["mediaType", "url"], &[]),
    ("reasoning-file", &["mediaType", "url"], &[]),
    ("steering-message", &["id"], &["parts"]),
];

const PART_SHAPES: &[Shape] =
    &[("text", &["text"], &[]), ("reasoning", &["text"], &[]), ("step-start", &[], &[])];

const CHUNK_SHAPES: &[Shape] = &[
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

const TOOL_STATES: &[State] = &[
    ("input-streaming", &[], &["output", "errorText", "approval"]),
    ("input-available", &["input"], &["output", "errorText", "approval"]),
    ("approval-requested", &["input", "approval"], &["output", "errorText"]),
    ("approval-responded", &["input", "approval"], &["output", "errorText"]),
    ("output-available", &["input", "output"], &["errorText"]),
    ("output-error", &["errorText"], &["output"]),
    ("output-denied", &["input", "approval"], &["output", "errorText"]),
];

const FINISH_REASONS: [&str; 8] =
    ["stop", "length", "content-filter", "tool-calls", "error", "other", "interrupted", "unknown"];

/// Fields that may be absent, but not null.
const NON_NULL_FIELDS: [&str; 12] = [
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
pub fn message(fields: &Fields<'_>) -> CheckResult {
    let name = fields.string("id").unwrap_or_default();
    let at = |invalid: String| format!("message {name:?}: {invalid}");
    check_message(fields).map_err(at)
}

fn check_message(fields: &Fields<'_>) -> CheckResult {
    text(fields, "", "id")?;
    let role = fields.text("role").unwrap_or_default();
    if !["system", "user", "assistant"].contains(&&*role) {
        return invalid("role", "expected system, user or assistant");
    }
    if !fields.raw_or_null("parts").is_some_and(|parts| parts.starts_with('[')) {
        return invalid("parts", "expected an array");
    }
    if role != "assistant" && fields.items("parts").next().is_none() {
        return invalid("parts", "must not be empty");
    }
    fields.items("parts").enumerate().try_for_each(|(nth, (_, fields))| part(&fields, nth))
}

fn part(part: &Fields<'_>, nth: usize) -> CheckResult {
    let path = format!("parts[{nth}]");
    if !part.is_object() {
        return invalid(&path, "expected an object");
    }
    let kind = part.text("type").unwrap_or_default();
    check_common(part, &path)?;
    if kind.starts_with("tool-") || kind == "dynamic-tool" {
        return tool(part, &path, &kind);
    }
    check_shape(part, &path, &kind, PART_SHAPES)?;
    let state = part.text("state");
    let prose = matches!(&*kind, "text" | "reasoning");
    if prose && state.is_some_and(|state| state != "streaming" && state != "done") {
        return invalid(&format!("{path}.state"), "expected streaming or done");
    }
    let url = part.text("url").unwrap_or_default();
    if kind == "file" && url.split_once(':').is_none_or(|(scheme, _)| scheme.contains('/')) {
        return invalid(&format!("{path}.url"), "expected a URL");
    }
    Ok(())
}

fn tool(part: &Fields<'_>, path: &str, kind: &str) -> CheckResult {
    text(part, path, "toolCallId")?;
    if kind == "dynamic-tool" {
        text(part, path, "toolName")?;
        if part.flag("dynamic") {
            return invalid(&format!("{path}.dynamic"), "must be false");
        }
    }
    let reported = part.text("state").unwrap_or_default();
    let Some((state, needs, never)) = TOOL_STATES.iter().find(|(state, ..)| *state == reported)
    else {
        return invalid(&format!("{path}.state"), "unknown tool state");
    };
    let lacks = needs.iter().find(|name| part.raw_or_null(name).is_none());
    if let Some(name) = lacks {
        return invalid(&format!("{path}.{name}"), &format!("missing in state {state}"));
    }
    if let Some(name) = never.iter().find(|name| part.raw_or_null(name).is_some()) {
        return invalid(&format!("{path}.{name}"), &format!("not allowed in state {state}"));
    }
    if needs.contains(&"errorText") {
        text(part, path, "errorText")?;
    }
    if part.raw_or_null("approval").is_some() {
        approval(&part.fields("approval"), &format!("{path}.approval"), state)?;
    }
    Ok(())
}

fn approval(approval: &Fields<'_>, path: &str, state: &str) -> CheckResult {
    text(approval, path, "id")?;
    let field_path = format!("{path}.approved");
    let approved = approval.truth("approved");
    match (state, approved) {
        ("approval-requested", _) if approval.raw_or_null("approved").is_some() => {
            invalid(&field_path, "not allowed before the approval is answered")
        }
        ("approval-responded", None) => invalid(&field_path, "expected true or false"),
        ("output-denied", Some(true) | None) => invalid(&field_path, "expected false"),
        ("output-available" | "output-error", Some(false) | None) => {
            invalid(&field_path, "expected true")
        }
        _ => Ok(()),
    }
}

/// Checks one chunk of a stream, independently of the others.
pub fn chunk(chunk: &Fields<'_>) -> CheckResult {
    let kind = chunk.text("type").unwrap_or_default();
    check_common(chunk, "")?;
    check_shape(chunk, "", &kind, CHUNK_SHAPES)?;
    let reason = chunk.text("finishReason");
    if reason.is_some_and(|reason| !FINISH_REASONS.contains(&&*reason)) {
        return invalid("finishReason", "unknown finish reason");
    }
    Ok(())
}

fn check_shape(fields: &Fields<'_>, path: &str, kind: &str, shapes: &[Shape]) -> CheckResult {
    if kind.starts_with("data-") {
        return require(fields, path, "data");
    }
    let Some((_, texts, values)) =
        shapes.iter().chain(SHARED_SHAPES).find(|(name, ..)| *name == kind)
    else {
        return invalid(&field_path(path, "type"), &format!("unknown type {kind:?}"));
    };
    texts.iter().try_for_each(|name| text(fields, path, name))?;
    values.iter().try_for_each(|name| require(fields, path, name))
}

/// Rules for all parts and chunks: optional fields must not be null, and `providerMetadata` maps
/// provider names to objects.
fn check_common(fields: &Fields<'_>, path: &str) -> CheckResult {
    let null = |(name, value): &(Cow<'_, str>, &str)| {
        *value == "null" && NON_NULL_FIELDS.contains(&&**name)
    };
    if let Some((name, _)) = fields.each().find(null) {
        return invalid(&field_path(path, &name), "must not be null; omit the field instead");
    }
    let odd = |(_, value): &(_, &str)| !value.starts_with('{');
    match fields.fields("providerMetadata").each().find(odd) {
        Some((provider, _)) => {
            let name = format!("providerMetadata.{provider}");
            invalid(&field_path(path, &name), "expected an object")
        }
        None => Ok(()),
    }
}

fn text(fields: &Fields<'_>, path: &str, name: &str) -> CheckResult {
    if fields.is_text(name) {
        return Ok(());
    }
    invalid(
        &field_path(path, name),
        if fields.raw_or_null(name).is_some() { "expected a string" } else { "missing" },
    )
}

fn require(fields: &Fields<'_>, path: &str, name: &str) -> CheckResult {
    if fields.raw_or_null(name).is_some() {
        Ok(())
    } else {
        invalid(&field_path(path, name), "missing")
    }
}

fn field_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn invalid(field_path: &str, what: &str) -> CheckResult {
    Err(format!("{field_path}: {what}"))
}
