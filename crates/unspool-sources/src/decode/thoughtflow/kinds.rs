//! Payloads that hold one of our parts, in the format of `show --json`: the kind and its fields.

use serde::de::DeserializeOwned;
use unspool_model::event::EventKind;
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Kind};
use unspool_model::provenance::Name;

use super::super::Fields;

/// Parses a part of our kinds. A payload with any other field is not ours.
pub(in super::super) fn body(payload: &Fields<'_>) -> Option<Body> {
    let kind = Kind::of_name(&payload.text("kind")?)?;
    let mapped: &[&str] = match kind {
        Kind::Interjection => &["text"],
        Kind::TaskList => &["items"],
        Kind::SkillLoad => &["name", "call_id", "text"],
        Kind::McpSnapshot => &["servers"],
        Kind::ContextInfo => &["title", "text"],
        Kind::Compaction => &["trigger", "tokens_before", "tokens_after", "duration_ms", "summary"],
        Kind::File => &["name", "media_type", "url", "text"],
        Kind::Source => &["url", "title", "quote"],
        Kind::Patch => &["path", "diff", "call_id"],
        Kind::Notice => &["code", "text"],
        Kind::Error => &["code", "status", "text"],
        Kind::Data => &["data_kind", "payload"],
        // These have step labels of their own, or are read by `generic.rs`.
        Kind::Text | Kind::Reasoning | Kind::Tool | Kind::Agent => return None,
    };
    if !has_only(payload, mapped) {
        return None;
    }
    Some(match kind {
        Kind::Interjection => Body::Interjection(read(payload)?),
        Kind::TaskList => Body::TaskList(read(payload)?),
        Kind::SkillLoad => Body::SkillLoad(read(payload)?),
        Kind::McpSnapshot => Body::McpSnapshot(read(payload)?),
        Kind::ContextInfo => Body::ContextInfo(read(payload)?),
        Kind::Compaction => Body::Compaction(read(payload)?),
        Kind::File => Body::File(read(payload)?),
        Kind::Source => Body::Source(read(payload)?),
        Kind::Patch => Body::Patch(read(payload)?),
        Kind::Notice => Body::Notice(read(payload)?),
        Kind::Error => Body::Error(read(payload)?),
        Kind::Data => Body::Data(Data {
            kind: payload.string("data_kind")?,
            payload: Json::checked(payload.raw_or_null("payload")?),
        }),
        Kind::Text | Kind::Reasoning | Kind::Tool | Kind::Agent => return None,
    })
}

/// True if a payload has no fields but `kind` and these.
pub(super) fn has_only(payload: &Fields<'_>, mapped: &[&str]) -> bool {
    payload.names().all(|name| name == "kind" || mapped.contains(&&*name))
}

fn read<T: DeserializeOwned>(payload: &Fields<'_>) -> Option<T> {
    serde_json::from_str(payload.whole().text()).ok()
}

/// The event that adds a complete part.
pub(super) fn given(name: Name, body: Body) -> Option<EventKind> {
    body.kind().is_plain().then_some(EventKind::Part(Some(name), body))
}
