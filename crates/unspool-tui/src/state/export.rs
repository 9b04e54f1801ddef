//! Exports a session as a Markdown file: loads it chunk by chunk, then returns `Effect::Save`.

use unspool_core::id::SessionId;
use unspool_core::present::TurnView;
use unspool_engine::reader::{Query, WindowData};
use unspool_engine::window::{Anchor, Position, Size};
use unspool_render::markdown;

use super::{Asker, Deed, State};
use crate::transcript::edges;

/// The size of one chunk.
const STRETCH: Size = Size { parts: 1500, block: usize::MAX, long: 3000 };

/// An export in progress.
pub struct Export {
    session: SessionId,
    turns: Vec<TurnView>,
}

impl State {
    pub(super) fn export(&mut self, session: SessionId) -> Vec<Deed> {
        self.export = Some(Export { session, turns: Vec::new() });
        self.say("reading the session …");
        vec![self.ask_stretch(session, Anchor::From(Position::start_of(0)))]
    }

    fn ask_stretch(&mut self, session: SessionId, anchor: Anchor) -> Deed {
        let wish = Query::Window { session, anchor, filter: None, size: STRETCH };
        self.ask(Asker::Export(session), wish)
    }

    pub(super) fn take_stretch(&mut self, session: SessionId, loaded: WindowData) -> Vec<Deed> {
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
            return vec![self.ask_stretch(session, Anchor::After(later))];
        }
        let turns = self.export.take().map(|export| export.turns).unwrap_or_default();
        let title = unspool_core::present::format::first_line(&loaded.session_row.title, 200);
        let mut text = format!("# {title}\n\n");
        for turn in &turns {
            text.push_str(&markdown::turn(turn));
            text.push('\n');
        }
        vec![Deed::Save { name: format!("unspool-{session}.md"), text }]
    }
}
