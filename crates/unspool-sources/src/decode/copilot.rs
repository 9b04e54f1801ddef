//! GitHub Copilot CLI 1.0: its log, its live events, its hooks and its spans. This file registers the
//! formats. Log and live events have the same records with the same ids; the live stream adds
//! `ephemeral` ones such as deltas. So `EventsDecoder` reads both.

mod agent;
mod events;
mod hooks;
mod live;
mod message;
mod questions;
mod spans;
mod tool;

use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;

const NAME: &str = "copilot";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::Several,
    name: "Copilot CLI session log",
    recognise: recognise_log,
    decoder: || Box::new(events::EventsDecoder::new(false)),
    resume: resume::<events::EventsDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"session.start","data":{"sessionId":"s"},"id":"e","timestamp":"2026-11-15T00:49:19.188Z"}"#,
    ],
};

pub const STREAM: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::Several,
    name: "Copilot CLI live events",
    recognise: recognise_stream,
    decoder: || Box::new(events::EventsDecoder::new(true)),
    resume: resume::<events::EventsDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"assistant.message_delta","data":{},"id":"e","timestamp":"2026-11-15T00:49:19.188Z","ephemeral":true}"#,
    ],
};

pub const HOOKS: Format = Format {
    agent: NAME,
    feed: Feed::Hooks,
    sessions_per_file: SessionsPerFile::Several,
    name: "Copilot CLI hook payloads",
    recognise: recognise_hooks,
    decoder: || Box::new(hooks::HooksDecoder::default()),
    resume: resume::<hooks::HooksDecoder>,
    precedence: Precedence::Specific,
    samples: &[r#"{"event":"sessionStart","payload":{"sessionId":"s","cwd":"/w"}}"#],
};

/// What `COPILOT_OTEL_FILE_EXPORTER_PATH` writes.
pub const SPANS: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::Several,
    name: "Copilot CLI spans",
    recognise: spans::recognise,
    decoder: || Box::new(spans::SpansDecoder::default()),
    resume: resume::<spans::SpansDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"span","spanId":"a","attributes":{"gen_ai.conversation.id":"s","gen_ai.operation.name":"chat"},"resource":{"attributes":{"service.name":"github-copilot"}}}"#,
    ],
};

/// A log and the SDK's live events both begin with `session.start`; the second record tells them
/// apart, because a log has no ephemeral records.
fn recognise_log<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if !is_event(fields) || fields.flag("ephemeral") {
        return None;
    }
    let owner = owner(fields);
    Some(if let RecordOwner::Session(id) = owner { RecordOwner::Ambiguous(id) } else { owner })
}

fn recognise_stream<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if is_event(fields) {
        return Some(owner(fields));
    }
    // `--output-format json` names the session only in its last line.
    let is_result = fields.is("type", "result") && fields.has("exitCode");
    fields.text("sessionId").filter(|_| is_result).map(RecordOwner::Session)
}

fn is_event(fields: &Fields<'_>) -> bool {
    let named = fields.text("type").is_some_and(|kind| kind.contains('.') || kind == "abort");
    named && fields.has("id") && fields.has("timestamp") && fields.fields("data").is_object()
}

fn owner<'a>(fields: &Fields<'a>) -> RecordOwner<'a> {
    let kind = fields.text("type").unwrap_or_default();
    let data = fields.fields("data");
    match (&*kind, fields.text("agentId")) {
        // The start and end of a sub-agent belong to its parent.
        ("subagent.started" | "subagent.completed" | "subagent.failed", _) => {
            RecordOwner::MainSession
        }
        (_, Some(id)) => {
            let parent = events::started_by(&data).map(|parent| parent.to_owned().into());
            RecordOwner::SubAgent { id, parent }
        }
        ("session.start", None) => match data.text("sessionId") {
            Some(id) => RecordOwner::Session(id),
            None => RecordOwner::MainSession,
        },
        (_, None) => RecordOwner::MainSession,
    }
}

/// A payload does not name its event, so the capturing side writes the name beside it.
fn recognise_hooks<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    // Events of Cline have the same fields, and ids.
    let event = fields.text("event").filter(|_| !fields.has("eventId"))?;
    let payload = fields.fields("payload");
    let session = payload.text("sessionId")?;
    let inside = !matches!(&*event, "subagentStart" | "subagentStop");
    Some(match payload.text("agentId").filter(|_| inside) {
        Some(id) => RecordOwner::SubAgent { id, parent: payload.text("parentAgentId") },
        None => RecordOwner::Session(session),
    })
}
