//! aider 0.86: the chat history of a project, as records of `history.rs`. aider has no
//! tool calls: the model writes prose with edit blocks, and aider says in quoted lines what it did
//! with them. The file has no ids, one time per session, and neither output nor exit codes of
//! commands.

mod actions;
mod agent;
mod chat;
mod edit_blocks;
mod history;
mod input_history;
mod question;
mod reply;
mod token_line;

use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;

const NAME: &str = "aider";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::Several,
    name: "aider chat history",
    recognise,
    decoder: || Box::new(chat::ChatDecoder::default()),
    resume: resume::<chat::ChatDecoder>,
    precedence: Precedence::Specific,
    samples: &[r#"{"aider":"start","session":"2026-11-16T07:04:24"}"#],
};

fn recognise<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    fields.text("session").filter(|_| fields.has("aider")).map(RecordOwner::Session)
}
