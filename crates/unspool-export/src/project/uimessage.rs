//! Messages of the Vercel AI SDK (`UIMessage[]`): a user and an assistant message per turn, the
//! assistant's parts in order with step markers. Parts that the SDK does not have become `data-*`
//! parts at their place.
//!
//! No field is written that a validator would strip: by default only the common subset of versions
//! 5, 6 and 7.

mod original;
mod part;
mod partial;
pub mod stream;
mod tool;

use std::io::Write;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use unspool_model::part::Body;
use unspool_model::session::{MessageRecord, Session, Turn, TurnState, Usage};
use unspool_redact::Redacted;

use super::{Options, ProjectError, Projection, Sdk, SessionStream, WriteMethod};
pub use part::UiPart;
pub(super) use part::signature_metadata;

pub const PROJECTION: Projection = Projection {
    name: "uimessage",
    title: "AI SDK messages",
    extension: "json",
    media_type: "application/json",
    about: "messages of the Vercel AI SDK 5, 6 and 7 (`--sdk 7` adds fields that only version 7 reads)",
    has_notes: false,
    has_turns: false,
    method: WriteMethod::Projected(write),
};

#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct UiMessage {
    pub id: String,
    pub role: &'static str,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    pub parts: Vec<UiPart>,
}

fn write(
    mut stream: SessionStream<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let mut between = "[\n";
    while let Some(turn) = stream.next_turn()? {
        for message in messages(&stream.head.session, &turn, options.sdk) {
            out.write_all(between.as_bytes())?;
            serde_json::to_writer(&mut *out, &message).map_err(std::io::Error::from)?;
            between = ",\n";
        }
    }
    if between == "[\n" {
        out.write_all(b"[")?;
    }
    out.write_all(b"\n]\n")?;
    Ok(())
}

/// The messages of a turn: system messages, the user's message, the reply.
pub(super) fn messages(session: &Session, turn: &Turn, sdk: Sdk) -> Vec<UiMessage> {
    let mut messages = original::system(session, turn);
    let parts: Vec<UiPart> = part::user_parts(session, turn);
    if !parts.is_empty() {
        let id =
            original::user_message_id(session, turn).unwrap_or_else(|| format!("{}-user", turn.id));
        let message = UiMessage {
            id,
            role: "user",
            metadata: common_metadata(session, turn, turn.origin.records.user.as_deref()),
            parts,
        };
        messages.push(original::restore_original(session, turn.user.iter(), message));
    }
    let reply = assistant_message(session, turn, sdk);
    if !reply.parts.is_empty() {
        messages.push(reply);
    }
    messages
}

/// The assistant's message of a turn, for a stream of that turn alone.
pub fn reply(session: &Redacted<Session>, turn: &Redacted<Turn>, sdk: Sdk) -> UiMessage {
    assistant_message(session, turn, sdk)
}

fn assistant_message(session: &Session, turn: &Turn, sdk: Sdk) -> UiMessage {
    let message = UiMessage {
        id: original::reply_message_id(session, turn).unwrap_or_else(|| turn.id.to_string()),
        role: "assistant",
        metadata: metadata(session, turn),
        parts: part::content(session, turn, sdk),
    };
    original::restore_original(session, turn.parts.iter().map(|part| &part.body), message)
}

/// Metadata of every message: where it comes from (R-001-24).
fn common_metadata(session: &Session, turn: &Turn, record: Option<&MessageRecord>) -> Value {
    let facts = &session.facts;
    let mut all = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            all.insert(name.to_owned(), value);
        }
    };
    put("agent", Some(json!(session.agent)));
    put("sessionId", Some(json!(session.agent_session_id)));
    put("version", facts.version.as_ref().map(|version| json!(version)));
    put("cwd", facts.project.as_ref().map(|project| json!(project)));
    put("gitBranch", facts.branch.as_ref().map(|branch| json!(branch)));
    // The record that the message begins with. Its parts say where their own records are.
    put("uuid", record.map(|record| json!(record.id)));
    put("parentUuid", record.map(|record| json!(record.parent)));
    put("createdAt", turn.started.map(time));
    put("trigger", Some(json!(turn.trigger.name())));
    // Rewound: it happened, but later model calls do not see it.
    put("abandoned", turn.abandoned.then_some(json!(true)));
    put("inherited", turn.inherited.then_some(json!(true)));
    Value::Object(all)
}

fn metadata(session: &Session, turn: &Turn) -> Value {
    let mut all = common_metadata(session, turn, turn.origin.records.reply.as_deref());
    let failed = turn.parts.iter().any(|part| matches!(part.body, Body::Error(_)));
    all["state"] = json!(turn.state.name());
    if failed || turn.state == TurnState::Failed {
        // R-001-23
        all["error"] = json!(true);
    }
    // Streams have no field for file names, and version 5 has no other place for them.
    let files = turn.parts.iter().filter_map(|part| {
        if let Body::File(file) = &part.body { Some(file.name.as_deref()) } else { None }
    });
    let files: Vec<Option<&str>> = files.collect();
    if files.iter().any(Option::is_some) {
        all["filenames"] = json!(files);
    }
    if let Some(ended) = turn.ended {
        all["endedAt"] = time(ended);
    }
    // In the provider's or the agent's own words.
    let stopped = turn.steps.iter().rev().find_map(|step| step.stop_reason.as_ref());
    if let Some(reason) = stopped {
        all["stopReason"] = json!(reason);
    }
    if let [model, ..] = turn.models().as_slice() {
        all["model"] = json!(model);
    }
    let usage = turn.usage();
    if usage != Usage::default() {
        all["totalUsage"] = usage_metadata(usage);
    }
    all
}

/// As version 6 and later count: input tokens include cached ones.
fn usage_metadata(usage: Usage) -> Value {
    let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    json!({
        "inputTokens": input,
        "inputTokenDetails": {
            "noCacheTokens": usage.input,
            "cacheReadTokens": usage.cache_read,
            "cacheWriteTokens": usage.cache_write,
        },
        "outputTokens": usage.output,
        "outputTokenDetails": { "reasoningTokens": usage.reasoning },
        "totalTokens": usage.total(),
    })
}

fn time(at: Timestamp) -> Value {
    json!(format!("{at:.3}"))
}
