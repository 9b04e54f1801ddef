//! Sub-agents, as their parent's source tells of them. They stand in one part right behind the
//! tool call that started them. A background agent is ended by its own end only: neither its
//! tool's result, nor the end of its turn, nor any other path ends it (R-003-30 to R-003-34).

use std::sync::Arc;

use crate::change::PartPatch;
use crate::event::{AgentEnd, AgentRef};
use crate::part::{Agent, AgentState, Agents, Body, Place, ToolState};
use crate::telling::{Field, Name, Origin};

use super::fold::{AgentFold, AgentsFold};
use super::part::At;
use super::{Assembler, Head};

impl Assembler {
    pub(super) fn start_agent(
        &mut self,
        head: &Head,
        agent: &AgentRef,
        name: String,
        task: String,
        background: bool,
    ) {
        let Some((at, nth)) = self.meet(head, agent) else { return };
        let part = self.part(at);
        let name = part.origin.ranks.take(Field::Name, head.telling, Some(name));
        let task = part.origin.ranks.take(Field::Title, head.telling, Some(task));
        let Some(agents) = &mut part.agents else { return };
        let known = &mut agents.agents[nth].agent;
        known.name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| known.name.clone());
        known.task = task.filter(|task| !task.is_empty()).unwrap_or_else(|| known.task.clone());
        known.background |= background;
        self.settle_agents(at, Some(head));
    }

    pub(super) fn progress_agent(
        &mut self,
        head: &Head,
        agent: &AgentRef,
        activity: Option<String>,
        background: bool,
    ) {
        let Some((at, nth)) = self.meet(head, agent) else { return };
        let part = self.part(at);
        let activity = part.origin.ranks.take(Field::Output, head.telling, activity);
        let Some(agents) = &mut part.agents else { return };
        let known = &mut agents.agents[nth].agent;
        if activity.is_some() {
            known.activity = activity;
        }
        known.background |= background;
        self.settle_agents(at, Some(head));
    }

    pub(super) fn end_agent(&mut self, head: &Head, agent: &AgentRef, end: AgentEnd) {
        match self.meet(head, agent) {
            Some((at, nth)) => self.end_known_agent(head, at, nth, end),
            None => {
                if let Some(id) = &agent.id {
                    self.strangers.entry(id.clone()).or_default().push((head.clone(), end));
                }
            }
        }
    }

    fn end_known_agent(&mut self, head: &Head, at: At, nth: usize, end: AgentEnd) {
        let part = self.part(at);
        if !part.origin.ranks.claim(Field::State, head.telling) {
            return self.settle_agents(at, Some(head));
        }
        let Some(agents) = &mut part.agents else { return };
        let known = &mut agents.agents[nth];
        known.ended = true;
        known.agent.state = match end {
            AgentEnd::Completed => AgentState::Completed,
            AgentEnd::Failed => AgentState::Failed,
            AgentEnd::Interrupted => AgentState::Interrupted,
        };
        self.settle_agents(at, Some(head));
        self.end_deferred(at.0);
    }

    /// The agent that an event speaks of, with its part, opened if its call is known.
    fn meet(&mut self, head: &Head, agent: &AgentRef) -> Option<(At, usize)> {
        if let Some(call) = &agent.call {
            let at = self.agents_part(head, call)?;
            let nth = self.agent_in(at, agent.id.as_ref());
            let stranger = agent.id.as_ref().and_then(|id| self.strangers.remove(id));
            for (head, end) in stranger.into_iter().flatten() {
                self.end_known_agent(&head, at, nth, end);
            }
            return Some((at, nth));
        }
        let id = agent.id.as_ref()?;
        self.turns.iter().enumerate().rev().find_map(|(turn, fold)| {
            fold.parts.iter().enumerate().find_map(|(part, fold)| {
                let agents = &fold.agents.as_ref()?.agents;
                let nth = agents.iter().position(|known| *known.agent.id == **id)?;
                Some(((turn, part), nth))
            })
        })
    }

    /// The part of the agents that a call started.
    fn agents_part(&mut self, head: &Head, call: &Arc<str>) -> Option<At> {
        let name = Name::AgentsOf(call.clone());
        if let Some(at) = self.find_part(0, &name) {
            return Some(at);
        }
        let (turn, tool) = self.find_part(0, &Name::Call(call.clone()))?;
        let origin = Origin { names: vec![name.clone()], ..Origin::default() };
        let body = Body::Agent(Agents { call_id: call.to_string(), agents: Vec::new() });
        let at = self.insert_part(head, turn, name, origin, None, body);
        self.part(at).agents =
            Some(Box::new(AgentsFold { call_id: call.to_string(), agents: Vec::new() }));
        self.place_agents((turn, tool));
        Some(at)
    }

    /// Which agent of a call this is. One that goes by a temporary id takes the real one.
    fn agent_in(&mut self, at: At, id: Option<&Arc<str>>) -> usize {
        let Some(agents) = &mut self.part(at).agents else { return 0 };
        let temporary = format!("temp_{}", agents.call_id);
        let found = match id {
            Some(id) => agents
                .agents
                .iter()
                .position(|known| *known.agent.id == **id)
                .or_else(|| agents.agents.iter().position(|known| known.agent.id == temporary)),
            None => (!agents.agents.is_empty()).then_some(0),
        };
        let nth = found.unwrap_or_else(|| {
            let agent =
                Agent { id: temporary.clone(), state: AgentState::Running, ..Agent::default() };
            agents.agents.push(AgentFold { agent, ended: false });
            agents.agents.len() - 1
        });
        if let Some(id) = id {
            agents.agents[nth].agent.id = id.to_string();
        }
        nth
    }

    /// An agent part takes its tool's place plus one, and its tool's step.
    pub(super) fn place_agents(&mut self, tool: At) {
        let Some(call) = self.part(tool).tool.as_ref().map(|tool| tool.call_id.clone()) else {
            return;
        };
        let (place, step) = (Place(self.part(tool).place.0 + 1), self.part(tool).step);
        let Some(at) = self.find_part(tool.0, &Name::AgentsOf(call.into())) else { return };
        let part = self.part(at);
        let patch = PartPatch {
            place: Some(place).filter(|place| part.place != *place),
            step: step.filter(|_| part.step != step),
            ..PartPatch::default()
        };
        (part.place, part.step) = (place, step);
        self.tell(at, patch);
    }

    pub(super) fn settle_agents_of(&mut self, tool: At) {
        let Some(call) = self.part(tool).tool.as_ref().map(|tool| tool.call_id.clone()) else {
            return;
        };
        if let Some(at) = self.find_part(tool.0, &Name::AgentsOf(call.into())) {
            self.settle_agents(at, None);
        }
    }

    /// The state of an agent whose end nobody told follows from its tool and its turn.
    pub(super) fn settle_agents(&mut self, at: At, head: Option<&Head>) {
        let Some(call) = self.part(at).agents.as_ref().map(|agents| agents.call_id.clone()) else {
            return;
        };
        let tool = self
            .find_part(at.0, &Name::Call(call.as_str().into()))
            .and_then(|tool| Some(self.part(tool).tool.as_ref()?.state));
        let over = self.is_over(at.0);
        let part = self.part(at);
        let Some(agents) = &mut part.agents else { return };
        for known in &mut agents.agents {
            if known.ended {
                continue;
            }
            known.agent.state = match tool {
                _ if known.agent.background => AgentState::Background,
                Some(ToolState::Completed) => AgentState::Completed,
                Some(ToolState::Failed | ToolState::Denied) => AgentState::Failed,
                Some(ToolState::Interrupted) => AgentState::Interrupted,
                Some(ToolState::Pending | ToolState::Running) | None if over => {
                    AgentState::Interrupted
                }
                Some(ToolState::Pending | ToolState::Running) | None => AgentState::Running,
            };
        }
        let body = Body::Agent(Agents {
            call_id: call,
            agents: agents.agents.iter().map(|known| known.agent.clone()).collect(),
        });
        let content = super::part::body_digest(&body);
        let changed = part.digest != content;
        part.digest = content;
        let mut patch = match head {
            Some(head) => self.seen_by(head, at),
            None => PartPatch::default(),
        };
        patch.body = changed.then_some(body);
        self.tell(at, patch);
    }

    /// Whether sub-agents still run in the foreground of this turn.
    pub(super) fn waits_for_agents(&self, turn: usize) -> bool {
        self.turns[turn].parts.iter().filter_map(|part| part.agents.as_ref()).any(|agents| {
            agents
                .agents
                .iter()
                .any(|known| !known.agent.background && !known.agent.state.is_terminal())
        })
    }
}
