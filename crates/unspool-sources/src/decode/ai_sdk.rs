//! The Vercel AI SDK, versions 5 to 7: chats as `UIMessage[]`, and UI message streams. This file
//! registers the two formats. They share names, so that a streamed and then stored message is one:
//! calls by id, all else by message and position after the last call (`part_names.rs`).
//!
//! Fields that no part can hold are kept beside the message (`unmapped.rs`).

mod check;
mod document;
mod message;
mod part_names;
mod prose;
mod stream;
mod tool;
mod unmapped;

use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};
use crate::agents::Agent;

const NAME: &str = "ai-sdk";

pub const AGENT: Agent = Agent::new(NAME, "Vercel AI SDK", &[DOCUMENT, STREAM]);

pub const DOCUMENT: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::Several,
    name: "AI SDK messages",
    recognise: recognise_message,
    decoder: || Box::new(document::DocumentDecoder::default()),
    resume: resume::<document::DocumentDecoder>,
    precedence: Precedence::Specific,
    samples: &[r#"{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}"#],
};

pub const STREAM: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "AI SDK message stream",
    recognise: recognise_chunk,
    decoder: || Box::new(stream::StreamDecoder::default()),
    resume: resume::<stream::StreamDecoder>,
    precedence: Precedence::Specific,
    samples: &[r#"{"type":"text-delta","id":"0","delta":"hi"}"#],
};

/// The fields that applications use for the chat id in tables of messages.
const CHAT_ID_FIELDS: [&str; 6] =
    ["chatId", "chat_id", "conversationId", "conversation_id", "threadId", "thread_id"];

fn recognise_message<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let role = fields.text("role")?;
    let parts = fields.raw("parts")?.starts_with('[');
    if !parts || !matches!(&*role, "system" | "user" | "assistant") {
        return None;
    }
    // Parts of the SDK have a `type`. Those with a `kind` are rows (`decode::rows`).
    let foreign = |part: Fields<'_>| !part.has("type") && part.is_text("kind");
    if fields.list("parts").any(foreign) {
        return None;
    }
    let chat = CHAT_ID_FIELDS.into_iter().find_map(|name| fields.text(name));
    Some(match chat.filter(|id| !id.is_empty()) {
        Some(id) => RecordOwner::Session(id),
        None => exported_session(&fields.fields("metadata")),
    })
}

/// The session of a message that Unspool exported, from its metadata. It is only a fallback name:
/// the application that stores the message may have its own chat id.
fn exported_session<'a>(metadata: &Fields<'a>) -> RecordOwner<'a> {
    let session = metadata.text("sessionId").filter(|id| !id.is_empty());
    let session = session.filter(|_| metadata.is_text("agent"));
    session.map_or(RecordOwner::Format, RecordOwner::FallbackId)
}

/// A chunk does not name its chat. Types with common names must match in all their fields.
fn recognise_chunk<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let kind = fields.text("type")?;
    let only = |expected: &[&str]| fields.each().all(|(name, _)| expected.contains(&&*name));
    let expected = match &*kind {
        "start" => only(&["type", "messageId", "messageMetadata"]),
        "start-step" | "finish-step" | "reset-step" => only(&["type"]),
        "text-start" | "reasoning-start" | "text-end" | "reasoning-end" => fields.is_text("id"),
        "text-delta" | "reasoning-delta" => fields.is_text("id") && fields.is_text("delta"),
        "tool-input-start" | "tool-input-available" | "tool-input-error" => {
            fields.is_text("toolCallId") && fields.is_text("toolName")
        }
        "tool-input-delta"
        | "tool-output-available"
        | "tool-output-error"
        | "tool-output-denied" => fields.is_text("toolCallId"),
        "tool-approval-request" | "tool-approval-response" => fields.is_text("approvalId"),
        "source-url" | "source-document" => fields.is_text("sourceId"),
        "message-metadata" => fields.has("messageMetadata"),
        "error" => only(&["type", "errorText"]) && fields.is_text("errorText"),
        "abort" => only(&["type", "reason"]),
        kind if kind.starts_with("data-") => fields.raw_or_null("data").is_some(),
        _ => false,
    };
    expected.then(|| exported_session(&fields.fields("messageMetadata")))
}

#[cfg(test)]
mod decoder_tests;
