//! Messages of the conventions: a role, and parts in order as structured values.

use serde_json::Value;
use unspool_model::json::Json;
use unspool_model::part::{Body, File, Tool};
use unspool_model::session::{Session, Turn};

use super::value::{flag, list, object, of_json, text};
use crate::project::calls::{self, document, prompt_role};

pub fn message(role: &str, parts: Vec<Value>) -> Value {
    object([("role", text(role)), ("parts", list(parts))])
}

/// An assistant message. The conventions require a finish reason, which sources may lack.
pub fn answer(parts: Vec<Value>, stop_reason: Option<&str>) -> Value {
    let reason = stop_reason.map_or("unknown", finish_reason);
    let fields =
        [("role", text("assistant")), ("parts", list(parts)), ("finish_reason", text(reason))];
    object(fields)
}

/// Maps vendors' stop reasons to those of the conventions.
fn finish_reason(content: &str) -> &str {
    match content.to_ascii_lowercase().as_str() {
        "stop" | "end_turn" | "stop_sequence" => "stop",
        "length" | "max_tokens" | "max_output_tokens" => "length",
        "tool_use" | "tool_calls" | "tool-calls" | "tool_call" => "tool_call",
        "refusal" | "content_filter" | "content-filter" | "safety" => "content_filter",
        _ => content,
    }
}

/// The prompt of a turn, from the user or another trigger.
pub fn prompt_message(session: &Session, turn: &Turn) -> Option<Value> {
    let parts = turn.user.iter().map(|body| spoken(session, body));
    (!turn.user.is_empty()).then(|| message(prompt_role(session, turn), parts.collect()))
}

/// A message part other than a call.
pub fn spoken(session: &Session, body: &Body) -> Value {
    match body {
        Body::Text(content) => {
            let mut fields = vec![("type", text("text")), ("content", text(&content.text))];
            if !content.citations.is_empty() {
                fields.push(("citations", list(content.citations.iter().map(of_json))));
            }
            object(fields)
        }
        Body::Reasoning(thought) => {
            let mut fields = vec![("type", text("reasoning")), ("content", text(&thought.text))];
            if let Some(signature) = &thought.signature {
                fields.push(("signature", text(signature)));
            }
            if thought.redacted {
                fields.push(("redacted", flag(true)));
            }
            object(fields)
        }
        Body::File(file) => attached(file).unwrap_or_else(|| whole(session, body)),
        Body::Compaction(content) => {
            object([("type", text("compaction")), ("content", text(&content.summary))])
        }
        Body::Interjection(said) => object([("type", text("text")), ("content", text(&said.text))]),
        Body::Source(_)
        | Body::Tool(_)
        | Body::Agent(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => whole(session, body),
    }
}

/// A part that the conventions do not define: they allow other types in a message.
fn whole(session: &Session, body: &Body) -> Value {
    let kind = format!("unspool.{}", body.kind().name());
    object([("type", text(&kind)), ("part", of_json(&document(session, body)))])
}

fn attached(file: &File) -> Option<Value> {
    let url = file.url.as_deref()?;
    let (kind, key, content, own_type) = match url.strip_prefix("data:") {
        Some(data) => {
            let (media_type, content) = data.split_once(";base64,")?;
            ("blob", "content", content, Some(media_type))
        }
        None if url.contains("://") => ("uri", "uri", url, None),
        None => return None,
    };
    let media_type = file.media_type.as_deref().or(own_type);
    let modality = match media_type.and_then(|media_type| media_type.split('/').next()) {
        Some(media @ ("image" | "audio" | "video")) => media,
        Some(_) | None => "document",
    };
    let mut fields = vec![("type", text(kind)), ("modality", text(modality)), (key, text(content))];
    if let Some(media_type) = media_type {
        fields.push(("mime_type", text(media_type)));
    }
    if let Some(name) = &file.name {
        fields.push(("name", text(name)));
    }
    Some(object(fields))
}

/// A call in the assistant message that requests it.
pub fn call(call_id: &str, tool: &Tool) -> Value {
    let arguments = calls::input(tool).map(|input| of_json(&input));
    let id = ("id", text(call_id));
    if tool.provider_executed {
        let own = [("type", text(&tool.name))].into_iter();
        let own = object(own.chain(arguments.map(|arguments| ("arguments", arguments))));
        let kind = ("type", text("server_tool_call"));
        return object([kind, id, ("name", text(&tool.name)), ("server_tool_call", own)]);
    }
    let fields = [("type", text("tool_call")), id, ("name", text(&tool.name))].into_iter();
    object(fields.chain(arguments.map(|arguments| ("arguments", arguments))))
}

/// The result of a call as a message part, if there is one.
pub fn response(session: &Session, call_id: &str, tool: &Tool) -> Option<Value> {
    let content = result(session, tool)?;
    let id = ("id", text(call_id));
    if tool.provider_executed {
        let own = object([("type", text(&tool.name)), ("response", content)]);
        let kind = ("type", text("server_tool_call_response"));
        return Some(object([kind, id, ("server_tool_call_response", own)]));
    }
    Some(object([("type", text("tool_call_response")), id, ("response", content)]))
}

/// The result of a call: text, or the value that an application returned.
pub fn result(session: &Session, tool: &Tool) -> Option<Value> {
    let content = calls::model_output(session, tool)?;
    let structured = calls::reads_result(session) && tool.result.is_some();
    let value = structured.then(|| Json::parse(&content)).flatten();
    Some(value.map_or_else(|| text(&content), |value| of_json(&value)))
}
