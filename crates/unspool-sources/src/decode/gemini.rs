//! Gemini CLI 0.61: chat files, stream-json and hooks. This file registers the three formats. Chat
//! file and stream share only call ids, and hooks not even those, so prompts are named by their
//! text, and the model's texts by the number of their model call in the turn.

mod agent;
mod chat;
mod hooks;
mod message;
mod stream;
mod tool;

use unspool_model::id::digest;
use unspool_model::provenance::{Feed, Name};

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;
pub(super) use tool::exit_code;

const NAME: &str = "gemini";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Gemini CLI chat file",
    recognise: recognise_chat,
    decoder: || Box::new(chat::ChatDecoder::default()),
    resume: resume::<chat::ChatDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"sessionId":"s","projectHash":"p","startTime":"2026-11-15T00:37:54.382Z","kind":"main"}"#,
        r#"{"id":"m","timestamp":"2026-11-15T00:37:54.382Z","type":"user","content":[{"text":"t"}]}"#,
        r#"{"$set":{"lastUpdated":"2026-11-15T00:37:54.382Z"}}"#,
    ],
};

pub const STREAM: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "Gemini CLI stream-json",
    recognise: recognise_stream,
    decoder: || Box::new(stream::StreamDecoder::default()),
    resume: resume::<stream::StreamDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"init","timestamp":"2026-11-15T00:47:43.378Z","session_id":"s","model":"m"}"#,
    ],
};

pub const HOOKS: Format = Format {
    agent: NAME,
    feed: Feed::Hooks,
    sessions_per_file: SessionsPerFile::Several,
    name: "Gemini CLI hook payloads",
    recognise: recognise_hooks,
    decoder: || Box::new(hooks::HooksDecoder::default()),
    resume: resume::<hooks::HooksDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"event":"SessionStart","payload":{"session_id":"s","hook_event_name":"SessionStart"}}"#,
    ],
};

/// Recognises the head of a chat, its first line. The head of a sub-agent does not name its parent:
/// the folder does, and the result of the parent's call.
///
/// A chat may have no head: Gemini removes files without messages when it starts (0.61), also those
/// of running sessions, which then append to a new file.
fn recognise_chat<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if fields.fields("$set").has("lastUpdated") || is_message(fields) {
        return Some(RecordOwner::Format);
    }
    let id = fields.text("sessionId").filter(|_| is_head(fields))?;
    Some(match fields.is("kind", "subagent") {
        true => RecordOwner::SubAgent { id, parent: None },
        false => RecordOwner::Session(id),
    })
}

fn is_head(fields: &Fields<'_>) -> bool {
    fields.has("sessionId") && fields.has("projectHash") && fields.has("startTime")
}

/// A message of a chat: of the model, or of a user, whose content is in the API's shape.
fn is_message(fields: &Fields<'_>) -> bool {
    let mut content = fields.list("content");
    let is_part =
        |part: Fields<'_>| (part.has("text") || part.has("functionResponse")) && !part.has("type");
    let is_user = fields.is("type", "user") && content.next().is_some_and(is_part);
    let is_known = fields.is("type", "gemini") || is_user && !fields.has("role");
    is_known && fields.has("id") && fields.has("timestamp") && fields.has("content")
}

fn recognise_stream<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let session = fields.text("session_id")?;
    let init = fields.is("type", "init") && fields.has("timestamp") && fields.has("model");
    init.then_some(RecordOwner::Session(session))
}

/// One payload per line, with the name of its event.
fn recognise_hooks<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let payload = fields.fields("payload");
    let session = payload.text("session_id").filter(|_| fields.has("event"))?;
    payload.has("hook_event_name").then_some(RecordOwner::Session(session))
}

/// The name of the text of the n-th model call of the turn. The chat file joins the texts of a call
/// and loses the position of tool calls between them; the stream keeps them as separate pieces.
fn text_name(nth: u32) -> Name {
    piece_name(nth, 0)
}

fn piece_name(nth: u32, piece: u32) -> Name {
    let content = digest(b"text of a model call");
    match piece {
        0 => Name::ByContent(content, nth),
        piece => Name::ContentFragment(content, nth, piece),
    }
}
