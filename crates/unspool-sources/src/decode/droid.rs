//! Factory Droid 0.215: session files, stream-json, hooks. This file declares the formats. The
//! messages of the session file are close to Claude Code's, and its hooks are Claude Code's without
//! call ids, so blocks and hooks are decoded there.

mod agent;
mod hook_run;
mod log;
mod question;
mod settings;
mod settings_file;
mod stream;
mod task;
mod tool;

use unspool_model::event::ProseKind;
use unspool_model::id::digest;
use unspool_model::part::{Body, Failure};
use unspool_model::provenance::{Feed, Name};

use super::claude::{HookDialect, HooksDecoder};
use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;

pub(super) const NAME: &str = "droid";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Droid session file",
    recognise: recognise_log,
    decoder: || Box::new(log::LogDecoder::default()),
    resume: resume::<log::LogDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"session_start","id":"s","title":"t","owner":"unknown","version":2,"cwd":"/w","hostId":"h"}"#,
        r#"{"droid":"settings","session":"s","settings":{"tokenUsage":{"inputTokens":1}}}"#,
    ],
};

pub const STREAM: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "Droid stream-json",
    recognise: recognise_stream,
    decoder: || Box::new(stream::StreamDecoder::default()),
    resume: resume::<stream::StreamDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"s","tools":["Read"],"model":"m","reasoning_effort":"none"}"#,
        r#"{"type":"message","role":"user","id":"m","text":"t","timestamp":1794813205148,"session_id":"s"}"#,
    ],
};

pub const HOOKS: Format = Format {
    agent: NAME,
    feed: Feed::Hooks,
    sessions_per_file: SessionsPerFile::Several,
    name: "Droid hook payloads",
    recognise: recognise_hooks,
    decoder: || Box::new(HooksDecoder::of(HookDialect::Droid)),
    resume: resume::<HooksDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"session_id":"s","transcript_path":"/h/.factory/sessions/-w/s.jsonl","hook_event_name":"Stop"}"#,
    ],
};

/// Recognises the first line of a session file, and the line that stands for its settings file
/// (`droid/settings_file.rs`). A sub-agent's first line names the session that started it.
fn recognise_log<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if fields.is("droid", settings::RECORD) {
        let id = fields.text("session")?;
        return Some(match fields.text("callingSessionId") {
            Some(parent) => RecordOwner::SubAgent { id, parent: Some(parent) },
            None => RecordOwner::Session(id),
        });
    }
    let is_start = fields.is("type", "session_start") && fields.has("cwd");
    let id = fields.text("id").filter(|_| is_start)?;
    Some(match fields.text("callingSessionId") {
        Some(parent) => RecordOwner::SubAgent { id, parent: Some(parent) },
        None => RecordOwner::Session(id),
    })
}

/// Frames have their time as a number and their text at the top. The first frame is like Claude
/// Code's, without what that says about its program.
fn recognise_stream<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let session = fields.text("session_id")?;
    let is_init = fields.is("subtype", "init")
        && fields.has("tools")
        && fields.has("model")
        && !["uuid", "mcp_servers", "apiKeySource", "permissionMode", "timestamp"]
            .iter()
            .any(|name| fields.has(name));
    let is_frame = match fields.text("type").as_deref() {
        Some("system") => is_init,
        Some("message") => fields.has("role") && fields.is_text("text"),
        Some("tool_call") => fields.has("toolName") && fields.has("messageId"),
        Some("completion") => fields.has("numTurns"),
        Some(_) | None => false,
    };
    let is_timed = is_init || fields.number("timestamp").is_some();
    (is_frame && is_timed).then_some(RecordOwner::Session(session))
}

fn recognise_hooks<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let inner = fields.fields("payload");
    let fields = if fields.is("agent", NAME) { &inner } else { fields };
    let is_ours = fields.text("transcript_path").is_some_and(|path| path.contains("/.factory/"));
    let session = fields.text("session_id").filter(|_| fields.has("hook_event_name"))?;
    is_ours.then_some(RecordOwner::Session(session))
}

/// The name of prose in a model message. The session file numbers all blocks of a message, the
/// stream has no numbers and another order, so both name prose by its text. `before`: the digests of
/// the message's prose so far.
fn prose_name(message: &str, kind: ProseKind, text: &str, before: &mut Vec<u64>) -> Name {
    let content = digest(format!("{kind:?}\n{}", text.trim()).as_bytes());
    let nth = before.iter().filter(|told| **told == content).count();
    before.push(content);
    Name::Record(format!("{message}/{content:016x}/{nth}").into())
}

/// True for the program's own words in the model's place: `droid exec` ends when a call needs a
/// permission that its options do not give.
fn is_early_end(text: &str) -> bool {
    text.starts_with("Exec ended early: ")
}

/// The failure with these words. Both feeds name it as the text that it stands in place of.
fn early_end(text: String) -> Body {
    Body::Error(Failure { text, code: None, status: None })
}

/// The model call that stands for all calls of a session: Droid reports tokens per session only.
fn session_step() -> Name {
    Name::Message("session-usage".into())
}
