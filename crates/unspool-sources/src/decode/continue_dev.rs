//! Continue (`cn`) 1.5: session documents, and the index of sessions. This file declares the
//! formats. `continue` is a keyword, hence the name of the module.
//!
//! A document has no times, no message ids and no reasoning, and all text of a model call stands
//! before its tool calls: Continue does not keep more.

mod agent;
mod index;
mod index_file;
mod session;
mod tool;
mod usage;

use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;

const NAME: &str = "continue";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Continue session",
    recognise: recognise_session,
    decoder: || Box::new(session::SessionDecoder::default()),
    resume: resume::<session::SessionDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"sessionId":"s","title":"t","workspaceDirectory":"/w"}"#,
        r#"{"message":{"role":"user","content":"t"},"contextItems":[],"editorState":"t"}"#,
    ],
};

pub const INDEX: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::Several,
    name: "Continue session index",
    recognise: recognise_index,
    decoder: || Box::new(index::IndexDecoder::default()),
    resume: resume::<index::IndexDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"sessionId":"s","title":"t","dateCreated":"1794813017710","workspaceDirectory":"/w","messageCount":7}"#,
    ],
};

/// The fields of a document before its history, and the items of the history.
fn recognise_session<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if fields.fields("message").has("role") && fields.has("contextItems") {
        return Some(RecordOwner::Format);
    }
    let is_head = fields.has("workspaceDirectory") && fields.has("title");
    let is_ours = is_head && !fields.has("dateCreated");
    fields.text("sessionId").filter(|_| is_ours).map(RecordOwner::Session)
}

/// An entry of `sessions.json`.
fn recognise_index<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let is_entry = fields.has("dateCreated") && fields.has("workspaceDirectory");
    fields.text("sessionId").filter(|_| is_entry).map(RecordOwner::Session)
}

/// The folder of a session. Editors write it as an address.
fn project(folder: &str) -> String {
    folder.strip_prefix("file://").unwrap_or(folder).to_owned()
}
