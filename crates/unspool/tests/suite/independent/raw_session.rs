//! What an independent reader finds in the raw file of an agent, in one shape for all of them.

use std::collections::BTreeMap;

use unspool_model::part::ToolState;

use super::{Kind, Tokens};

/// Of a call that only went well or not.
pub fn state(is_ok: bool) -> ToolState {
    if is_ok { ToolState::Completed } else { ToolState::Failed }
}

#[derive(Default)]
pub struct RawSession {
    /// Texts, or the ids of calls.
    pub blocks: Vec<(Kind, String)>,
    /// By the id of the call. A call that is not here has no result.
    pub results: BTreeMap<String, RawResult>,
    pub tokens: Tokens,
}

/// A part of the output that must be shown, and how the call ended.
pub struct RawResult {
    pub output: String,
    pub state: ToolState,
}

impl RawSession {
    /// Adds a text, unless it is blank.
    pub fn say(&mut self, kind: Kind, text: &str) {
        if !text.trim().is_empty() {
            self.blocks.push((kind, text.to_owned()));
        }
    }

    pub fn call(&mut self, id: &str) {
        self.blocks.push((Kind::Tool, id.to_owned()));
    }

    pub fn result(&mut self, id: &str, output: &str, state: ToolState) {
        self.results.insert(id.to_owned(), RawResult { output: output.to_owned(), state });
    }
}
