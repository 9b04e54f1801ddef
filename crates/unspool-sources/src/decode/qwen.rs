//! Qwen Code 0.24: session logs, stream-json and hooks. It is a fork of Gemini CLI whose recorder
//! follows Claude Code: records linked by `parentUuid`, with messages in Gemini's shape. This file
//! registers the formats.
//!
//! Log and stream share only call ids. So a turn is also named by its first content, and prose by
//! its number among the prose of its kind in a model call, and that by its number in the turn.

mod agent;
mod log;
mod stream;
mod tool;

use std::borrow::Cow;

use unspool_model::event::ProseKind;
use unspool_model::id::digest;
use unspool_model::provenance::{Feed, Name};

use super::claude::{HookDialect, HooksDecoder};
use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;
pub(super) use tool::started;

pub(super) const NAME: &str = "qwen";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Qwen Code session log",
    recognise: recognise_log,
    decoder: || Box::new(log::LogDecoder::default()),
    resume: resume::<log::LogDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"uuid":"u","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"t"}]}}"#,
        r#"{"uuid":"u","sessionId":"s","type":"system","subtype":"custom_title","systemPayload":{}}"#,
    ],
};

pub const STREAM: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "Qwen Code stream-json",
    recognise: recognise_stream,
    decoder: || Box::new(stream::StreamDecoder::default()),
    resume: resume::<stream::StreamDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w","qwen_code_version":"0.24.4"}"#,
    ],
};

pub const HOOKS: Format = Format {
    agent: NAME,
    feed: Feed::Hooks,
    sessions_per_file: SessionsPerFile::Several,
    name: "Qwen Code hook payloads",
    recognise: recognise_hooks,
    decoder: || Box::new(HooksDecoder::of(HookDialect::QwenCode)),
    resume: resume::<HooksDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"hook_event_name":"Stop","session_id":"s","transcript_path":"/q/projects/p/chats/s.jsonl"}"#,
    ],
};

/// Every record has a message in Gemini's shape, or fields that only Qwen Code writes.
fn recognise_log<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if fields.is("type", "agent-meta") {
        let session = fields.fields("meta").text("parentSessionId")?;
        let id = agent_session(&session, &fields.text("agentId")?).into();
        return Some(RecordOwner::SubAgent { id, parent: Some(session) });
    }
    let is_own = fields.has("provenance")
        || fields.has("systemPayload")
        || fields.fields("message").list("parts").next().is_some();
    let session = fields.text("sessionId").filter(|_| is_own && fields.has("uuid"))?;
    match fields.text("agentId").filter(|_| fields.flag("isSidechain")) {
        Some(agent) => {
            let id = agent_session(&session, &agent).into();
            Some(RecordOwner::SubAgent { id, parent: Some(session) })
        }
        None => Some(RecordOwner::Session(session)),
    }
}

fn recognise_stream<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let init = fields.is("type", "system") && fields.has("qwen_code_version");
    fields.text("session_id").filter(|_| init).map(RecordOwner::Session)
}

/// Payloads of sub-agents have the session of their parent.
fn recognise_hooks<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let inner = fields.fields("payload");
    let wrapped = fields.is("agent", NAME);
    let payload = if wrapped { &inner } else { fields };
    let event = payload.text("hook_event_name")?;
    let session = payload.text("session_id")?;
    let path = payload.text("transcript_path").unwrap_or_default();
    let log = format!("/chats/{session}.jsonl");
    if !(wrapped || path.ends_with(&log) && path.contains("/projects/")) {
        return None;
    }
    let inside = !matches!(&*event, "SubagentStart" | "SubagentStop");
    Some(match payload.text("agent_id").filter(|_| inside) {
        Some(agent) => {
            let id = agent_session(&session, &agent).into();
            RecordOwner::SubAgent { id, parent: Some(session) }
        }
        None => RecordOwner::Session(session),
    })
}

/// The id of a sub-agent's session. The agent's own id is its type and the provider's call id, which
/// is unique in one session only.
pub(super) fn agent_session(session: &str, agent: &str) -> String {
    format!("{session}/{agent}")
}

/// The name of a piece of prose: the n-th of its kind in a model call, which is the n-th of its
/// turn.
fn prose_name(prose_kind: ProseKind, call: u32, nth: u32) -> Name {
    let kind = match prose_kind {
        ProseKind::Text => "text",
        ProseKind::Reasoning => "reasoning",
    };
    Name::ByContent(digest(format!("{kind} {nth} of a model call").as_bytes()), call)
}

/// The hash that names a turn by its first content.
fn turn_hash(kind: &str, content: &str) -> u64 {
    digest(format!("turn\n{kind}\n{}", content.trim()).as_bytes())
}

/// The name of the n-th notice of the turn that the model is asked again.
fn retry_name(nth: u32) -> Name {
    Name::ByContent(digest(b"asked again"), nth)
}

/// The name of the n-th failed request of the turn with this message.
fn failure_name(message: &str, nth: u32) -> Name {
    Name::ByContent(digest(format!("failed request\n{message}").as_bytes()), nth)
}

/// A text of Gemini's shape: a string, or parts with texts.
fn text_of(message: &Fields<'_>) -> String {
    let texts = message.list("parts").filter_map(|part| part.text("text"));
    texts.collect::<Vec<Cow<'_, str>>>().join("\n")
}
