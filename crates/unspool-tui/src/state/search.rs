//! The screen of a search in all sessions.

use unspool_query::reader::SearchHit;
use unspool_query::search::Reading;

/// Hits in all sessions.
pub struct Search {
    pub query: String,
    /// `None` while the search runs.
    pub hits: Option<Vec<SearchHit>>,
    /// How the query was understood.
    pub reading: Reading,
    pub at: usize,
    pub top: usize,
}

impl Search {
    pub fn move_by(&mut self, rows: isize) {
        let last = self.hits.as_ref().map_or(0, |hits| hits.len().saturating_sub(1));
        self.at = self.at.saturating_add_signed(rows).min(last);
    }

    pub(super) fn settle(&mut self, view: usize) {
        let view = view.max(1);
        self.top = self.top.min(self.at);
        if self.at >= self.top + view {
            self.top = self.at + 1 - view;
        }
    }
}
