//! Pi coding agent, 0.73 and 0.87: session files, and the events of `--mode json` and `--mode rpc`.
//! This file registers the two formats. Events have no entry ids; both have the time at which a
//! message began, in milliseconds, so messages are named by that.
//!
//! Sub-agents are made by extensions. The whole conversation of one is inside the result of the call
//! that started it, and becomes a session of its own (`Decoder::nested`).

mod agent;
mod conversation;
mod log;
mod reply;
mod result;
mod stream;

use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;

const NAME: &str = "pi";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Pi session file",
    recognise: recognise_log,
    decoder: || Box::new(log::LogDecoder::default()),
    resume: resume::<log::LogDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-16T06:57:48.519Z","cwd":"/w"}"#,
        r#"{"type":"model_change","id":"e","timestamp":"2026-11-16T06:57:48.583Z","modelId":"m"}"#,
        r#"{"type":"message","id":"e","timestamp":"2026-11-16T06:57:48.610Z","message":{"role":"user"}}"#,
    ],
};

pub const STREAM: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "Pi events",
    recognise: recognise_stream,
    decoder: || Box::new(stream::StreamDecoder::default()),
    resume: resume::<stream::StreamDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"agent_start"}"#,
        r#"{"t":6.2,"dir":"out","msg":{"type":"tool_execution_start","toolCallId":"c"}}"#,
    ],
};

/// The entries of a session file besides messages.
const ENTRIES: [&str; 9] = [
    "model_change",
    "thinking_level_change",
    "compaction",
    "branch_summary",
    "label",
    "session_info",
    "custom",
    "custom_message",
    "context_edit",
];

/// The events that no other agent writes.
const EVENTS: [&str; 17] = [
    "agent_start",
    "agent_end",
    "turn_start",
    "turn_end",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "queue_update",
    "compaction_start",
    "compaction_end",
    "auto_retry_start",
    "auto_retry_end",
    "extension_ui_request",
    "extension_ui_response",
];

/// The events of `--mode json` begin with the head of the file: the next record decides.
fn recognise_log<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if is_head(fields) {
        return fields.text("id").map(RecordOwner::Ambiguous);
    }
    let kind = fields.text("type")?;
    let is_message = kind == "message" && fields.fields("message").has("role");
    let is_entry = fields.has("id") && ENTRIES.contains(&&*kind);
    (fields.has("timestamp") && (is_message || is_entry)).then_some(RecordOwner::Format)
}

fn recognise_stream<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if is_head(fields) {
        return fields.text("id").map(RecordOwner::Ambiguous);
    }
    let event = event_of(fields);
    let kind = event.text("type")?;
    if kind == "response" && event.has("command") && event.has("success") {
        let session = event.fields("data").text("sessionId");
        return Some(session.map_or(RecordOwner::Format, RecordOwner::Session));
    }
    // A message of a session is not an event.
    let is_event = EVENTS.contains(&&*kind) && !fields.has("session_id") && !fields.has("payload");
    is_event.then_some(RecordOwner::Format)
}

fn is_head(fields: &Fields<'_>) -> bool {
    fields.is("type", "session") && fields.has("id") && fields.has("timestamp") && fields.has("cwd")
}

/// The event of a line. A capture of `--mode rpc` has both directions, each in a wrapper.
fn event_of<'a>(fields: &Fields<'a>) -> Fields<'a> {
    if fields.has("dir") && fields.has("msg") { fields.fields("msg") } else { *fields }
}

/// The id of the session in which a sub-agent of a call ran.
fn agent_session(session: &str, call: &str, nth: usize) -> String {
    format!("{session}/{call}/{nth}")
}
