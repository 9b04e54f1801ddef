//! Find within a session. The archive returns the positions of all hits, loaded or not.

use unspool_model::part::Place;
use unspool_query::reader::{Query, SearchHit};
use unspool_query::window::{Anchor, Position};

use super::navigation::Direction;
use super::{LoadRequest, TranscriptPane};

/// The limit of a find.
const MAX_HITS: usize = 2000;

pub struct Find {
    pub query: String,
    /// In session order. `None` while the search runs.
    pub hits: Option<Vec<Position>>,
    /// The texts to highlight, in lower case.
    pub texts: Vec<String>,
    /// The current hit.
    pub at: usize,
}

impl TranscriptPane {
    /// Starts a find over the whole session.
    pub fn find(&mut self, query: &str) -> Option<Query> {
        if query.trim().is_empty() {
            self.find = None;
            return None;
        }
        self.find = Some(Find { query: query.to_owned(), hits: None, texts: Vec::new(), at: 0 });
        Some(Query::Search {
            query: query.to_owned(),
            session: Some(self.session),
            limit: MAX_HITS,
        })
    }

    /// Takes the hits and goes to the first one after the cursor.
    pub fn apply_hits(
        &mut self,
        query: &str,
        found: &[SearchHit],
        texts: Vec<String>,
    ) -> Option<LoadRequest> {
        let here = self.chosen().and_then(|at| self.entries.get(at)).map(|entry| entry.position);
        let find = self.find.as_mut().filter(|find| find.query == query)?;
        let place = |hit: &SearchHit| {
            // The user's text precedes all parts of its turn.
            let place = hit.place.unwrap_or(Place(-1)).max(Place(-1));
            Some(Position { turn: hit.turn?, place })
        };
        let mut hits: Vec<Position> = found.iter().filter_map(place).collect();
        hits.sort_unstable();
        hits.dedup();
        find.at = here.map_or(0, |here| hits.partition_point(|hit| *hit < here));
        if find.at >= hits.len() {
            find.at = 0;
        }
        find.hits = Some(hits);
        find.texts = texts;
        self.show_hit()
    }

    /// Goes to the next hit, wrapping around.
    pub fn next_hit(&mut self, direction: Direction) -> Option<LoadRequest> {
        let find = self.find.as_mut()?;
        let count = find.hits.as_ref()?.len();
        if count == 0 {
            return None;
        }
        find.at = match direction {
            Direction::Forward => (find.at + 1) % count,
            Direction::Backward => (find.at + count - 1) % count,
        };
        self.show_hit()
    }

    fn show_hit(&mut self) -> Option<LoadRequest> {
        let find = self.find.as_ref()?;
        let place = *find.hits.as_ref()?.get(find.at)?;
        if self.covers(place) {
            self.go_to(place);
            return None;
        }
        Some(self.request_window(Anchor::Around(place)))
    }
}
