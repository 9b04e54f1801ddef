//! Claude Code, 1.0.100 to 2.1.325: its session log, its stream-json and its hooks. This file
//! declares the three formats; they share content blocks (`message.rs`), tool results
//! (`result.rs`) and the marks that the program puts into user messages (`marks.rs`).

mod agent;
mod bodies;
mod chains;
mod context;
mod fork;
mod hooks;
mod log;
mod marks;
pub(super) mod message;
mod meta;
mod prompts;
pub(super) mod result;
mod stream;
mod tree;

use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;
pub(super) use hooks::{HookDialect, HooksDecoder};
pub(super) use marks::tag;
pub(super) use tree::Tree;

const NAME: &str = "claude-code";
/// The event of an answer that was given through our own hook. Claude Code has none of this name.
pub const ANSWER_EVENT: &str = "UnspoolAnswer";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Claude Code session log",
    recognise: recognise_log,
    decoder: || Box::new(log::LogDecoder::default()),
    resume: resume::<log::LogDecoder>,
    precedence: Precedence::General,
    samples: &[
        r#"{"type":"user","sessionId":"s","uuid":"u","message":{"role":"user","content":"hi"}}"#,
    ],
};

pub const STREAM: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "Claude Code stream-json",
    recognise: recognise_stream,
    decoder: || Box::new(stream::StreamDecoder::default()),
    resume: resume::<stream::StreamDecoder>,
    precedence: Precedence::General,
    samples: &[r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w"}"#],
};

pub const HOOKS: Format = Format {
    agent: NAME,
    feed: Feed::Hooks,
    sessions_per_file: SessionsPerFile::Several,
    name: "Claude Code hook payloads",
    recognise: recognise_hooks,
    decoder: || Box::new(HooksDecoder::default()),
    resume: resume::<HooksDecoder>,
    precedence: Precedence::General,
    samples: &[r#"{"hook_event_name":"Stop","session_id":"s","transcript_path":"/p/s.jsonl"}"#],
};

/// What `OTEL_LOG_RAW_API_BODIES=file:DIR` writes, with the bodies (`read/trace_files.rs`).
pub const BODIES: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::Several,
    name: "Claude Code request bodies",
    recognise: bodies::recognise,
    decoder: || Box::new(bodies::BodiesDecoder::default()),
    resume: resume::<bodies::BodiesDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"trace_index":{"session_id":"s","request_file":"a.request.json"},"payload":{"messages":[]}}"#,
    ],
};

fn recognise_log<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let kind = fields.text("type")?;
    // A sub-agent's own log names its parent's session on every record.
    if fields.flag("isSidechain")
        && let Some(id) = fields.text("agentId")
    {
        return Some(RecordOwner::SubAgent { id, parent: fields.text("sessionId") });
    }
    if let Some(session) = fields.text("sessionId") {
        return Some(RecordOwner::Session(session));
    }
    // 1.0.100 writes summaries of other sessions, which name no session.
    (kind == "summary" && fields.has("leafUuid")).then_some(RecordOwner::Format)
}

fn recognise_stream<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if fields.has("hook_event_name") {
        return None;
    }
    let inner = fields.fields("msg");
    let fields = if fields.has("dir") && fields.has("msg") { &inner } else { fields };
    let kind = fields.text("type")?;
    let session = fields.text("session_id").filter(|id| !id.is_empty());
    match (&*kind, session) {
        // A resumed process runs its start hooks under an id that it then drops.
        ("system", Some(session)) => {
            let started = fields.text("subtype").is_some_and(|subtype| subtype == "init");
            Some(if started { RecordOwner::Session(session) } else { RecordOwner::Format })
        }
        ("assistant" | "user" | "stream_event" | "result", Some(session)) => {
            Some(RecordOwner::Session(session))
        }
        ("control_request" | "control_response" | "control_cancel_request", _) => {
            Some(RecordOwner::Format)
        }
        ("user", None) => fields.has("message").then_some(RecordOwner::Format),
        (_, Some(_)) => Some(RecordOwner::Format),
        (_, None) => None,
    }
}

fn recognise_hooks<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let inner = fields.fields("payload");
    let fields = if fields.is("agent", NAME) { &inner } else { fields };
    let event = fields.text("hook_event_name")?;
    let session = fields.text("session_id");
    match fields.text("agent_id").filter(|_| is_inside_agent(fields, &event)) {
        Some(id) => Some(RecordOwner::SubAgent { id, parent: session }),
        None => session.map(RecordOwner::Session),
    }
}

/// True if an event belongs to the sub-agent's session. Its start and stop belong to its parent's.
fn is_inside_agent(fields: &Fields<'_>, event: &str) -> bool {
    fields.has("agent_id") && !matches!(event, "SubagentStart" | "SubagentStop")
}
