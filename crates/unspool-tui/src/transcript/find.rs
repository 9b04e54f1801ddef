//! What is looked for in a session: the archive says where it stands, loaded or not.

use unspool_core::part::Place;
use unspool_engine::reader::{Found, Wish};
use unspool_engine::window::{Position, Wanted};

use super::moving::Way;
use super::{Asked, Transcript};

/// So many hits are looked at.
const MOST: usize = 2000;

pub struct Find {
    pub query: String,
    /// In the order of the session; none while it is looked for.
    pub hits: Option<Vec<Position>>,
    /// Which one is shown.
    pub at: usize,
}

impl Find {
    /// The words that are to be marked, in lower case.
    pub fn words(&self) -> Vec<String> {
        let words = self.query.split_whitespace().filter(|word| !word.starts_with('-'));
        let bare = words.map(|word| word.trim_matches(|c| c == '"' || c == '*').to_lowercase());
        bare.filter(|word| !word.is_empty()).collect()
    }
}

impl Transcript {
    /// Looks for words in all of the session.
    pub fn find(&mut self, query: &str) -> Option<Wish> {
        if query.trim().is_empty() {
            self.find = None;
            return None;
        }
        self.find = Some(Find { query: query.to_owned(), hits: None, at: 0 });
        Some(Wish::Search { query: query.to_owned(), session: Some(self.session), limit: MOST })
    }

    /// The hits are here: to the first one from where the reader is.
    pub fn take_hits(&mut self, query: &str, found: &[Found]) -> Option<Asked> {
        let here = self.chosen().and_then(|at| self.pieces.get(at)).map(|piece| piece.position);
        let find = self.find.as_mut().filter(|find| find.query == query)?;
        let place = |hit: &Found| {
            // What the user said stands before all parts of its turn.
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
        self.show_hit()
    }

    /// To the next hit, round and round.
    pub fn next_hit(&mut self, way: Way) -> Option<Asked> {
        let find = self.find.as_mut()?;
        let count = find.hits.as_ref()?.len();
        if count == 0 {
            return None;
        }
        find.at = match way {
            Way::Forth => (find.at + 1) % count,
            Way::Back => (find.at + count - 1) % count,
        };
        self.show_hit()
    }

    fn show_hit(&mut self) -> Option<Asked> {
        let find = self.find.as_ref()?;
        let place = *find.hits.as_ref()?.get(find.at)?;
        if self.is_held(place) {
            self.go_to(place);
            return None;
        }
        Some(self.ask_anew(Wanted::Around(place)))
    }
}
