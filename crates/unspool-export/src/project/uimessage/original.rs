//! Round trip of AI SDK messages: sessions imported from messages are exported with their original
//! ids and with the fields that our parts have no place for. The decoder keeps these fields in one
//! part after the message (`data-ai-sdk-message`); here they are restored where that is certain.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_model::id::Id;
use unspool_model::json::Json;
use unspool_model::part::{Body, Part};
use unspool_model::provenance::Name;
use unspool_model::session::{Session, Turn};

use super::{UiMessage, UiPart};

/// The agent of such sessions, and the kind of the part with the original fields.
pub const AGENT: &str = "ai-sdk";
const ORIGINAL_KIND: &str = "data-ai-sdk-message";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginalMessage {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<usize, BTreeMap<String, Value>>,
}

/// The original id of the user's message.
pub fn user_message_id(session: &Session, turn: &Turn) -> Option<String> {
    let id = turn
        .origin
        .names
        .iter()
        .find_map(|name| if let Name::Prompt(id) = name { Some(id.to_string()) } else { None });
    own(session, id)
}

/// The original id of the assistant's message: its first step is named after it.
pub fn reply_message_id(session: &Session, turn: &Turn) -> Option<String> {
    let step = turn.steps.first().and_then(|step| {
        if let Name::Message(id) = &step.name { id.strip_suffix(" step 0") } else { None }
    });
    own(session, step.map(str::to_owned))
}

/// True for a part that was a system message of the application.
pub fn is_system(session: &Session, part: &Part) -> bool {
    let recorded = matches!(&part.body, Body::ContextInfo(info) if info.title == "System message");
    recorded && session.agent == AGENT
}

/// The system messages, as they were (R-001-01).
pub fn system(session: &Session, turn: &Turn) -> Vec<UiMessage> {
    let mut messages: Vec<UiMessage> = Vec::new();
    for part in turn.parts.iter().filter(|part| is_system(session, part)) {
        let Body::ContextInfo(info) = &part.body else { continue };
        let recorded = UiPart { text: Some(info.text.clone()), ..UiPart::new("text") };
        let named = part.origin.names.iter().find_map(|name| {
            if let Name::Block(id, _) = name { id.strip_suffix(" system") } else { None }
        });
        let id = own(session, named.map(str::to_owned)).unwrap_or_else(|| part.id.to_string());
        match messages.last_mut().filter(|last| last.id == id) {
            Some(last) => last.parts.push(recorded),
            None => {
                let (role, metadata) = ("system", Value::Null);
                messages.push(UiMessage { id, role, metadata, parts: vec![recorded] });
            }
        }
    }
    messages
}

/// The decoder numbers messages without an id (`#1`): those are not original ids.
fn own(session: &Session, id: Option<String>) -> Option<String> {
    id.filter(|id| session.agent == AGENT && !id.starts_with('#'))
}

/// The message with its original fields restored.
pub fn restore_original<'a>(
    session: &Session,
    bodies: impl Iterator<Item = &'a Body>,
    mut message: UiMessage,
) -> UiMessage {
    // If a turn has several messages, it is not certain which one the part belongs to.
    let own = |body: &&Body| matches!(body, Body::Data(data) if data.kind == "ai-sdk-message");
    if session.agent != AGENT || bodies.filter(own).count() != 1 {
        return message;
    }
    // The last one: an earlier one was part of a re-imported message.
    let last = message.parts.iter().enumerate().rfind(|(_, part)| part.kind == ORIGINAL_KIND);
    let Some((at, part)) = last else { return message };
    let Some(mut original) = part.data.as_ref().and_then(Json::read::<OriginalMessage>) else {
        return message;
    };
    // The application's metadata takes precedence over ours.
    if let Some(Value::Object(recorded)) = original.fields.get("metadata")
        && let Value::Object(derived) = &mut message.metadata
    {
        derived.extend(recorded.clone());
        original.fields.remove("metadata");
    }
    for (nth, fields) in &mut original.parts {
        if let Some(part) = message.parts.get_mut(*nth).filter(|_| *nth < at) {
            fields.retain(|name, value| !restore_field(part, name, value));
        }
    }
    original.parts.retain(|_, fields| !fields.is_empty());
    if original.fields.is_empty() && original.parts.is_empty() {
        message.parts.remove(at);
    } else if let Some(part) = message.parts.get_mut(at)
        && let Ok(rest) = serde_json::to_string(&original)
    {
        part.data = Some(Json::checked(&rest));
    }
    message
}

/// Restores a field of a part if it certainly belongs to it: our own ids, the streaming state, a
/// matching signature. Other fields may belong to another part, since parts can have moved.
fn restore_field(part: &mut UiPart, name: &str, value: &Value) -> bool {
    if serde_json::to_value(&*part).is_ok_and(|now| now.get(name) == Some(value)) {
        return true;
    }
    if name == "state" && value == "streaming" && matches!(&*part.kind, "text" | "reasoning") {
        part.state = Some("streaming");
        return true;
    }
    // Same signature, same reasoning part.
    if name == "providerMetadata" && part.kind == "reasoning" {
        let signature = part.provider_metadata.as_ref().and_then(signature);
        let same = signature.is_some_and(|signature| contains_signature(value, signature));
        if same {
            part.provider_metadata = Some(value.clone());
        }
        return same;
    }
    let text = value.as_str().map(str::to_owned);
    if let ("source-document", Some(text)) = (part.kind.as_str(), &text) {
        match name {
            "mediaType" => part.media_type = Some(text.clone()),
            "filename" => part.filename = Some(text.clone()),
            _ => {}
        }
        if ["mediaType", "filename"].contains(&name) {
            return true;
        }
    }
    let Some(id) = value.as_str().filter(|id| id.parse::<Id>().is_ok()) else { return false };
    let place = match (name, part.kind.as_str()) {
        ("id", "reasoning" | "steering-message") => &mut part.id,
        ("sourceId", "source-url" | "source-document") => &mut part.source_id,
        _ => return false,
    };
    *place = Some(id.to_owned());
    true
}

/// The signature in metadata that we wrote: its only value.
fn signature(metadata: &Value) -> Option<&str> {
    metadata.as_object()?.values().next()?.as_object()?.values().next()?.as_str()
}

fn contains_signature(metadata: &Value, signature: &str) -> bool {
    let providers = metadata.as_object().into_iter().flat_map(|all| all.values());
    providers
        .filter_map(Value::as_object)
        .any(|recorded| recorded.values().any(|one| one == signature))
}
