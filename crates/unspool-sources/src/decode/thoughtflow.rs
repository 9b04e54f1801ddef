//! ThoughtFlow's consolidated documents: a session as conversations of steps. `read::document` cuts
//! the document into lines: its head, one line per conversation, and the fields after them. A
//! conversation becomes a turn, and its steps become parts in the same order (R-002-01).
//!
//! Fields that no part can hold are kept beside the conversation (`unmapped.rs`).

mod call;
mod conversation;
mod decoder;
mod generic;
mod kinds;
mod steps;
mod tool;
mod unmapped;

use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};
use crate::agents::Agent;
use crate::discover::holds;
use crate::read::own_file::{Lines, OwnFile};

// Other formats that carry our JSON of parts read it in the same way.
pub(super) use call::{
    answer as call_answer, end as call_end, question as call_question, usage as call_usage,
};
pub(super) use generic::{document_agents, emit_agents};
pub(super) use kinds::body as document_body;

const NAME: &str = "thoughtflow";

pub const AGENT: Agent = Agent { files: &[FILE], ..Agent::new(NAME, "ThoughtFlow", &[DOCUMENT]) };

/// A document under any name.
const FILE: OwnFile = OwnFile {
    is_named: |_| false,
    begins: Some(("json", |text| {
        holds(text, b"\"conversations\"") && holds(text, b"\"session_id\"")
    })),
    lines: Lines::AsUsual,
    beside: None,
};

pub const DOCUMENT: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "ThoughtFlow document",
    recognise,
    decoder: || Box::new(decoder::DocumentDecoder::default()),
    resume: resume::<decoder::DocumentDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"session_id":"s","started_at":"2026-11-15T00:28:32.334Z","ended_at":null}"#,
        r#"{"conversation_id":"c","status":"unknown","steps":[]}"#,
    ],
};

/// The fields of a document beside its conversations (R-002-04).
const HEAD_FIELDS: [&str; 3] = ["session_id", "started_at", "ended_at"];

fn recognise<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if is_conversation(fields) {
        return Some(RecordOwner::Format);
    }
    // Other formats with a `session_id` have more fields. A head with extra fields is recognised by
    // the conversations after it.
    let is_empty = fields.raw("conversations") == Some("[]");
    let is_head = fields.names().count() == HEAD_FIELDS.len() && {
        let mut names = fields.names();
        names.all(|name| HEAD_FIELDS.contains(&&*name))
    };
    let id = fields.text("session_id").filter(|id| (is_head || is_empty) && !id.is_empty())?;
    Some(RecordOwner::Session(id))
}

fn is_conversation(fields: &Fields<'_>) -> bool {
    let steps = fields.raw("steps").is_some_and(|steps| steps.starts_with('['));
    steps && fields.is_text("conversation_id")
}

#[cfg(test)]
mod decoder_tests;
