//! Sub-agents, as reported by the parent's source. They share one part directly after the tool
//! call that started them. Only its own end event ends a background agent: neither its tool's
//! result, nor the end of its turn, nor any other path does (R-003-30 to R-003-34).

use std::sync::Arc;

use crate::change::{Oddity, PartPatch};
use crate::event::{AgentEnd, AgentRef, Call};
use crate::part::{Agent, AgentState, Agents, Body, Place, ToolState};
use crate::session::Stranger;
use crate::telling::{Field, Name, Origin};

use super::fold::AgentsFold;
use super::part::At;
use super::{Assembler, Head};

/// The number of unmatched agent ends to keep. Most belong to background commands, which report
/// their ends in the same way.
const STRANGERS: usize = 1024;

impl Assembler {
    pub(super) fn start_agent(
        &mut self,
        head: &Head,
        agent: &AgentRef,
        name: String,
        task: String,
        background: bool,
    ) {
        let Some((at, nth)) = self.meet(head, agent) else {
            return self.count(Oddity::Unknown);
        };
        let Some(known) = self.agent(at, nth) else { return };
        let name = Some(name).filter(|name| !name.is_empty());
        let task = Some(task).filter(|task| !task.is_empty());
        if let Some(name) = known.ranks.take(Field::Name, head.telling, name) {
            known.name = name;
        }
        if let Some(task) = known.ranks.take(Field::Title, head.telling, task) {
            known.task = task;
        }
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
        let Some((at, nth)) = self.meet(head, agent) else {
            return self.count(Oddity::Unknown);
        };
        let Some(known) = self.agent(at, nth) else { return };
        if let Some(activity) = known.ranks.take(Field::Output, head.telling, activity) {
            known.activity = Some(activity);
        }
        known.background |= background;
        self.settle_agents(at, Some(head));
    }

    pub(super) fn end_agent(&mut self, head: &Head, agent: &AgentRef, end: AgentEnd) {
        match (self.meet(head, agent), &agent.id) {
            (Some((at, nth)), _) => self.end_known_agent(head, at, nth, end),
            (None, Some(id)) => {
                let (at, evidence) = (head.at, head.evidence);
                let stranger = Stranger { id: id.clone(), end, at, evidence };
                let strangers = &mut self.facts.strangers;
                // Kept sorted, so that arrival order leaves no trace.
                let place = strangers
                    .partition_point(|held| (&held.id, held.evidence) < (&stranger.id, evidence));
                strangers.insert(place, stranger);
                strangers.truncate(STRANGERS);
                self.emit_session();
            }
            (None, None) => self.count(Oddity::Unknown),
        }
    }

    fn end_known_agent(&mut self, head: &Head, at: At, nth: usize, end: AgentEnd) {
        let state = match end {
            AgentEnd::Completed => AgentState::Completed,
            AgentEnd::Failed => AgentState::Failed,
            AgentEnd::Interrupted => AgentState::Interrupted,
        };
        let Some(known) = self.agent(at, nth) else { return };
        if known.ranks.holder(Field::State) == Some(head.telling) {
            let same = known.state == state;
            self.count(if same { Oddity::Duplicate } else { Oddity::Contradiction });
        } else if known.ranks.claim(Field::State, head.telling) {
            known.state = state;
        }
        self.settle_agents(at, Some(head));
    }

    fn agent(&mut self, at: At, nth: usize) -> Option<&mut Agent> {
        self.part(at).agents.as_mut()?.agents.get_mut(nth)
    }

    /// The agent that an event refers to: its part, and its index in the part.
    fn meet(&mut self, head: &Head, agent: &AgentRef) -> Option<(At, usize)> {
        let Some(call) = &agent.call else {
            let id = agent.id.as_ref()?;
            let at = self.find_part(0, &Name::Agent(id.clone()))?;
            let agents = &self.part(at).agents.as_ref()?.agents;
            let nth = agents.iter().position(|known| *known.id == **id)?;
            return Some((at, nth));
        };
        let at = self.agents_part(head, call);
        let nth = self.agent_in(at, agent.id.as_ref());
        if let Some(id) = &agent.id {
            self.introduce(at, nth, id);
        }
        Some((at, nth))
    }

    /// Names the agent and applies ends that arrived before its start.
    fn introduce(&mut self, at: At, nth: usize, id: &Arc<str>) {
        self.name_part(at, Name::Agent(id.clone()));
        if !self.facts.strangers.iter().any(|stranger| stranger.id == *id) {
            return;
        }
        let strangers = std::mem::take(&mut self.facts.strangers);
        let (known, rest): (Vec<_>, Vec<_>) =
            strangers.into_iter().partition(|stranger| stranger.id == *id);
        self.facts.strangers = rest;
        self.emit_session();
        for Stranger { end, at: time, evidence, .. } in known {
            let head = Head { telling: evidence.telling, at: time, evidence, turn: None };
            self.end_known_agent(&head, at, nth, end);
        }
    }

    /// The agents part of a call. Opens the part of the call first if the call is unknown.
    fn agents_part(&mut self, head: &Head, call: &Arc<str>) -> At {
        let name = Name::AgentsOf(call.clone());
        let found = self.find_part(0, &name);
        if let Some(at) = found.filter(|at| self.part(*at).agents.is_some()) {
            return at;
        }
        let tool = self.find_part(0, &Name::Call(call.clone()));
        let tool = match tool.filter(|at| self.part(*at).tool.is_some()) {
            Some(tool) => tool,
            None => self.open_unknown(head, &Call::Id(call.clone())),
        };
        let origin = Origin { names: vec![name.clone()], ..Origin::default() };
        let body = Body::Agent(Agents { call_id: call.to_string(), agents: Vec::new() });
        let at = self.insert_part(head, tool.0, name, origin, None, body);
        self.part(at).agents =
            Some(Box::new(AgentsFold { call_id: call.to_string(), agents: Vec::new() }));
        self.place_agents(tool);
        if self.part(tool).origin.foreign {
            self.part(at).origin.foreign = true;
            self.note(at);
        }
        at
    }

    /// The index of an agent within its call. An agent with a temporary id takes the real one.
    fn agent_in(&mut self, at: At, id: Option<&Arc<str>>) -> usize {
        let Some(agents) = &mut self.part(at).agents else { return 0 };
        let temporary = format!("temp_{}", agents.call_id);
        let found = match id {
            Some(id) => agents
                .agents
                .iter()
                .position(|known| *known.id == **id)
                .or_else(|| agents.agents.iter().position(|known| known.id == temporary)),
            None => (!agents.agents.is_empty()).then_some(0),
        };
        let nth = found.unwrap_or_else(|| {
            let state = AgentState::Running;
            agents.agents.push(Agent { id: temporary.clone(), state, ..Agent::default() });
            agents.agents.len() - 1
        });
        if let Some(id) = id {
            agents.agents[nth].id = id.to_string();
        }
        nth
    }

    /// An agent part takes its tool's place plus one, and its tool's step.
    pub(super) fn place_agents(&mut self, tool: At) {
        let Some(at) = self.agents_of(tool) else { return };
        let (place, step) = (Place(self.part(tool).place.0 + 1), self.part(tool).step);
        let part = self.part(at);
        let patch = PartPatch {
            place: Some(place).filter(|place| part.place != *place),
            step: step.filter(|_| part.step != step),
            ..PartPatch::default()
        };
        (part.place, part.step) = (place, step);
        self.tell(at, patch);
    }

    /// The agents part of a call, if it has one.
    pub(super) fn agents_of(&mut self, tool: At) -> Option<At> {
        let call = self.part(tool).tool.as_ref().map(|tool| tool.call_id.as_str())?;
        let name = Name::AgentsOf(call.into());
        self.find_part(tool.0, &name).filter(|at| self.part(*at).agents.is_some())
    }

    /// Infers the state of agents without a reported end from their tool and their turn.
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
            if known.ranks.holder(Field::State).is_some() {
                continue;
            }
            known.state = match tool {
                _ if known.background => AgentState::Background,
                Some(ToolState::Completed) => AgentState::Completed,
                Some(ToolState::Failed | ToolState::Denied) => AgentState::Failed,
                Some(ToolState::Interrupted) => AgentState::Interrupted,
                Some(ToolState::Pending | ToolState::Running) | None if over => {
                    AgentState::Interrupted
                }
                Some(ToolState::Pending | ToolState::Running) | None => AgentState::Running,
            };
        }
        let body = Body::Agent(Agents { call_id: call, agents: agents.agents.clone() });
        let content = super::part::body_digest(&body);
        let changed = part.digest != content;
        part.digest = content;
        let mut patch = match head {
            Some(head) => self.seen_by(head, at),
            None => PartPatch::default(),
        };
        patch.body = changed.then_some(body);
        self.tell(at, patch);
        self.end_deferred(at.0);
    }

    /// True if foreground sub-agents of this turn are still running.
    pub(super) fn waits_for_agents(&self, turn: usize) -> bool {
        let agents = self.turns[turn].live_parts().filter_map(|part| part.agents.as_ref());
        agents
            .flat_map(|agents| &agents.agents)
            .any(|known| !known.background && !known.state.is_terminal())
    }
}
