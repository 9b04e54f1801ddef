//! Exports a session as a Markdown file: loads it chunk by chunk, then returns `Effect::Save`.

use unspool_core::id::SessionId;
use unspool_core::present::TurnView;
use unspool_engine::reader::{Query, WindowData};
use unspool_engine::window::{Anchor, Position, Size};
use unspool_render::markdown;

use super::{Effect, PendingQuery, State};
use crate::transcript::edges;

/// The size of one chunk.
const CHUNK_SIZE: Size = Size { parts: 1500, block: usize::MAX, long: 3000 };

/// An export in progress.
pub struct Export {
    session: SessionId,
    turns: Vec<TurnView>,
}

impl State {
    pub(super) fn export(&mut self, session: SessionId) -> Vec<Effect> {
        self.export = Some(Export { session, turns: Vec::new() });
        self.set_status("reading the session …");
        vec![self.request_chunk(session, Anchor::From(Position::start_of(0)))]
    }

    fn request_chunk(&mut self, session: SessionId, anchor: Anchor) -> Effect {
        let query = Query::Window { session, anchor, filter: None, size: CHUNK_SIZE };
        self.send_query(PendingQuery::Export(session), query)
    }

    pub(super) fn apply_chunk(&mut self, session: SessionId, loaded: WindowData) -> Vec<Effect> {
        let Some(export) = self.export.as_mut().filter(|export| export.session == session) else {
            return Vec::new();
        };
        let (_, later) = edges(&loaded.view);
        for turn in loaded.view.turns {
            match export.turns.last_mut().filter(|last| last.id == turn.id) {
                Some(last) => last.items.extend(turn.items),
                None => export.turns.push(turn),
            }
        }
        if let Some(later) = later {
            return vec![self.request_chunk(session, Anchor::After(later))];
        }
        let turns = self.export.take().map(|export| export.turns).unwrap_or_default();
        let title = unspool_core::present::format::first_line(&loaded.session_row.title, 200);
        let mut text = format!("# {title}\n\n");
        for turn in &turns {
            text.push_str(&markdown::turn(turn));
            text.push('\n');
        }
        vec![Effect::Save { name: format!("unspool-{session}.md"), text }]
    }
}
