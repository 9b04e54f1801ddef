//! What a session hub sends to pages: DOM operations, as JSON. `view.js` reads these names.

use serde::Serialize;
use unspool_model::id::SessionId;

/// A DOM operation that `view.js` applies, in order.
#[derive(Serialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub enum DomOp {
    Head {
        html: String,
    },
    /// A new turn.
    Turn {
        html: String,
        after: Option<String>,
    },
    Piece {
        turn: String,
        html: String,
        after: Option<String>,
    },
    /// The frame of a reasoning block; the page keeps its children.
    Shell {
        turn: String,
        html: String,
        after: Option<String>,
    },
    /// A part inside a reasoning block.
    Inner {
        within: String,
        html: String,
        after: Option<String>,
    },
    Drop {
        id: String,
    },
    Outline {
        html: String,
    },
    /// The task list.
    Tasks {
        html: String,
    },
    /// Too many changes: the page reloads its window.
    Load,
}

#[derive(Serialize)]
pub struct Message<'a> {
    pub r#type: &'static str,
    pub session: SessionId,
    pub seq: u64,
    #[serde(rename = "acts")]
    pub ops: &'a [DomOp],
}
