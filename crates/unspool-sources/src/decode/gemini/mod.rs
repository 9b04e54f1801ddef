//! Gemini CLI 0.61: its chat files, its stream-json and its hooks. The three share the ids of
//! tool calls (hooks not even those) and nothing else, so prompts are known by their words and
//! texts by the number of their model call in the turn.

mod chat;
mod hooks;
mod message;
mod stream;
mod tool;

use unspool_core::id::digest;
use unspool_core::telling::{Name, Telling};

use super::{Fields, Format, Recognised, Tells, resume};

const AGENT: &str = "gemini";

pub const LOG: Format = Format {
    agent: AGENT,
    telling: Telling::Log,
    tells: Tells::One,
    name: "Gemini CLI chat file",
    recognise: recognise_chat,
    decoder: || Box::new(chat::ChatDecoder::default()),
    resume: resume::<chat::ChatDecoder>,
};

pub const STREAM: Format = Format {
    agent: AGENT,
    telling: Telling::Stream,
    tells: Tells::One,
    name: "Gemini CLI stream-json",
    recognise: recognise_stream,
    decoder: || Box::new(stream::StreamDecoder::default()),
    resume: resume::<stream::StreamDecoder>,
};

pub const HOOKS: Format = Format {
    agent: AGENT,
    telling: Telling::Hooks,
    tells: Tells::Several,
    name: "Gemini CLI hook payloads",
    recognise: recognise_hooks,
    decoder: || Box::new(hooks::HooksDecoder::default()),
    resume: resume::<hooks::HooksDecoder>,
};

/// The first line is the head of the chat. A sub-agent's does not say whose it is: the folder
/// does, and the result of its parent's call.
fn recognise_chat<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    let id = fields.text("sessionId").filter(|_| is_head(fields))?;
    Some(match fields.is("kind", "subagent") {
        true => Recognised::SubAgent { id, parent: None },
        false => Recognised::Session(id),
    })
}

fn is_head(fields: &Fields<'_>) -> bool {
    fields.has("sessionId") && fields.has("projectHash") && fields.has("startTime")
}

fn recognise_stream<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    let session = fields.text("session_id")?;
    let init = fields.is("type", "init") && fields.has("timestamp") && fields.has("model");
    init.then_some(Recognised::Session(session))
}

/// One payload on a line with the event that it is of.
fn recognise_hooks<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    let payload = fields.fields("payload");
    let session = payload.text("session_id").filter(|_| fields.has("event"))?;
    payload.has("hook_event_name").then_some(Recognised::Session(session))
}

/// What makes two prompts alike where prompts have no ids.
fn prompt_likeness(text: &str) -> u64 {
    digest(format!("prompt\n{}", text.trim()).as_bytes())
}

/// The text of the n-th model call of the turn. The chat file joins all texts of a call, and with
/// them loses where a tool stood between two; the stream has them piece by piece.
fn text_name(nth: u32) -> Name {
    piece_name(nth, 0)
}

fn piece_name(nth: u32, piece: u32) -> Name {
    let content = digest(b"text of a model call");
    match piece {
        0 => Name::Alike(content, nth),
        piece => Name::Piece(content, nth, piece),
    }
}
