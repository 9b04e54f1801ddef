//! Presents the turns of a session one by one, joined with their sub-agents. Input of the formats
//! for people: Markdown, HTML and plain text.

use unspool_model::session::{Transcript, Turn};
use unspool_view::present::agents::{SubagentLookup, SubagentSessions, subagent_ids};
use unspool_view::present::notes::NoteViews;
use unspool_view::present::{self, TurnView};

use super::{ProjectError, SessionStream};

pub struct TurnViews<'a> {
    pub stream: SessionStream<'a>,
}

impl TurnViews<'_> {
    pub fn next_turn(&mut self) -> Result<Option<TurnView>, ProjectError> {
        Ok(self.next_with_agents()?.map(|(view, _)| view))
    }

    /// The next turn, and the sub-agents that were started in it.
    pub fn next_with_agents(&mut self) -> Result<Option<(TurnView, Vec<String>)>, ProjectError> {
        let Some(turn) = self.stream.next_turn()? else { return Ok(None) };
        let agents = subagent_ids(std::slice::from_ref(&turn));
        let subagents = self.subagents(&turn)?;
        let session = &self.stream.head.session;
        let notes = NoteViews::of(&self.stream.notes);
        let options =
            present::PresentOptions { subagents, notes, ..present::PresentOptions::of(session) };
        Ok(Some((present::turn(&turn, &options), agents)))
    }

    fn subagents(&self, turn: &Turn) -> Result<SubagentSessions, ProjectError> {
        let mut lookup = SubagentLookup::among(std::slice::from_ref(turn));
        while let Some(id) = lookup.next_id() {
            let Some(mut stream) = self.stream.sub_agent(&id)? else { continue };
            let mut turns = Vec::new();
            while let Some(turn) = stream.next_counted_turn()? {
                turns.push(turn);
            }
            lookup.add(&Transcript { session: stream.head.session, turns });
        }
        Ok(lookup.subagents())
    }
}
