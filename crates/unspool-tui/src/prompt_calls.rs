//! The screen of all model calls of a session: how long each prompt was, what filled it, and which
//! of them were sent a text.

use unspool_model::id::SessionId;
use unspool_query::prompts::PromptQuery;
use unspool_query::reader::Query;
use unspool_view::present::prompt::{CallRow, PromptCalls};

pub struct PromptCallsPane {
    pub session: SessionId,
    /// Only calls that were sent this text.
    pub find: Option<String>,
    /// None while they are loaded.
    pub calls: Option<PromptCalls>,
    pub at: usize,
    pub top: usize,
}

impl PromptCallsPane {
    pub fn new(session: SessionId, find: Option<String>) -> PromptCallsPane {
        PromptCallsPane { session, find, calls: None, at: 0, top: 0 }
    }

    pub fn query(&self) -> Query {
        let query = PromptQuery::Calls { find: self.find.clone() };
        Query::Prompts { session: self.session, query }
    }

    pub fn take(&mut self, calls: PromptCalls) {
        self.calls = Some(calls);
        (self.at, self.top) = (0, 0);
    }

    pub fn rows(&self) -> &[CallRow] {
        self.calls.as_ref().map(|calls| calls.calls.as_slice()).unwrap_or_default()
    }

    pub fn chosen(&self) -> Option<&CallRow> {
        self.rows().get(self.at)
    }

    pub fn move_by(&mut self, rows: isize) {
        self.at = self.at.saturating_add_signed(rows).min(self.rows().len().saturating_sub(1));
    }

    pub fn settle(&mut self, view: usize) {
        self.top = self.top.min(self.at).max((self.at + 1).saturating_sub(view.max(1)));
    }
}
