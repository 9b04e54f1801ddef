//! The turns of a session as people see them, with what is known of the sub-agents in them: what
//! the forms are made of that people read.

use unspool_core::part::Body;
use unspool_core::present::agents::Family;
use unspool_core::present::{self, TurnView};
use unspool_core::session::{Transcript, Turn};

use super::{ProjectError, Story};

/// So many agents are looked up for one turn.
const MOST: usize = 200;

pub struct Shown<'a> {
    pub story: Story<'a>,
}

impl Shown<'_> {
    pub fn next_turn(&mut self) -> Result<Option<TurnView>, ProjectError> {
        Ok(self.next_with_agents()?.map(|(view, _)| view))
    }

    /// The next turn, and the sub-agents that were started in it.
    pub fn next_with_agents(&mut self) -> Result<Option<(TurnView, Vec<String>)>, ProjectError> {
        let Some(turn) = self.story.next_turn()? else { return Ok(None) };
        let agents = agents_in(std::slice::from_ref(&turn));
        let family = self.family(agents.clone())?;
        let session = &self.story.head.session;
        let options = present::Options { family, ..present::Options::of(session) };
        Ok(Some((present::turn(&turn, &options), agents)))
    }

    fn family(&self, mut waiting: Vec<String>) -> Result<Family, ProjectError> {
        let mut family = Family::default();
        let mut seen: Vec<String> = Vec::new();
        while let Some(id) = waiting.pop() {
            if seen.len() >= MOST || seen.contains(&id) {
                continue;
            }
            seen.push(id.clone());
            let Some(mut story) = self.story.sub_agent(&id)? else { continue };
            let mut turns = Vec::new();
            while let Some(turn) = story.next_turn()? {
                turns.push(turn);
            }
            waiting.extend(agents_in(&turns));
            family.add(&Transcript { session: story.head.session, turns });
        }
        Ok(family)
    }
}

/// The sub-agents that some turns speak of, in their order.
fn agents_in(turns: &[Turn]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for part in turns.iter().flat_map(|turn| &turn.parts) {
        if let Body::Agent(told) = &part.body {
            let new = told.agents.iter().map(|agent| &agent.id).filter(|id| !ids.contains(id));
            let new: Vec<String> = new.cloned().collect();
            ids.extend(new);
        }
    }
    ids
}
