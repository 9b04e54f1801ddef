//! Sub-agents, as reported by the parent's source. They share one part directly after the tool
//! call that started them. Only its own end event ends a background agent: neither its tool's
//! result, nor the end of its turn, nor any other path does (R-003-30 to R-003-34).

use std::sync::Arc;

use crate::change::{PartPatch, SkipReason};
use crate::event::{AgentEnd, AgentRef, CallRef};
use crate::part::{Agent, AgentState, Agents, Body, Place, ToolState};
use crate::provenance::{Name, Origin};
use crate::rank::AgentField;
use crate::session::OrphanAgentEnd;

use super::fold::AgentsFold;
use super::part::PartIndex;
use super::{Assembler, Head};

/// The number of unmatched agent ends to keep. Most belong to background commands, which report
/// their ends in the same way.
const MAX_ORPHAN_AGENT_ENDS: usize = 1024;

impl Assembler {
    pub(super) fn start_agent(
        &mut self,
        head: &Head,
        agent: &AgentRef,
        name: String,
        task: String,
        background: bool,
    ) {
        let Some((at, nth)) = self.find_or_open_agent(head, agent) else {
            return self.count(SkipReason::Unknown);
        };
        let Some(entry) = self.agent(at, nth) else { return };
        let name = Some(name).filter(|name| !name.is_empty());
        let task = Some(task).filter(|task| !task.is_empty());
        if let Some(name) = entry.ranks.take(AgentField::Name, head.feed, name) {
            entry.name = name;
        }
        if let Some(task) = entry.ranks.take(AgentField::Task, head.feed, task) {
            entry.task = task;
        }
        entry.background |= background;
        self.settle_agents(at, Some(head));
    }

    pub(super) fn progress_agent(
        &mut self,
        head: &Head,
        agent: &AgentRef,
        activity: Option<String>,
        background: bool,
    ) {
        let Some((at, nth)) = self.find_or_open_agent(head, agent) else {
            return self.count(SkipReason::Unknown);
        };
        let Some(entry) = self.agent(at, nth) else { return };
        if let Some(activity) = entry.ranks.take(AgentField::Activity, head.feed, activity) {
            entry.activity = Some(activity);
        }
        entry.background |= background;
        self.settle_agents(at, Some(head));
    }

    pub(super) fn end_agent(&mut self, head: &Head, agent: &AgentRef, end: AgentEnd) {
        match (self.find_or_open_agent(head, agent), &agent.id) {
            (Some((at, nth)), _) => self.finish_agent(head, at, nth, end),
            (None, Some(id)) => {
                let (at, evidence) = (head.at, head.evidence);
                let orphan = OrphanAgentEnd { id: id.clone(), end, at, evidence };
                let orphan_agent_ends = &mut self.facts.orphan_agent_ends;
                // Kept sorted, so that arrival order leaves no trace.
                let place = orphan_agent_ends
                    .partition_point(|held| (&held.id, held.evidence) < (&orphan.id, evidence));
                orphan_agent_ends.insert(place, orphan);
                orphan_agent_ends.truncate(MAX_ORPHAN_AGENT_ENDS);
                self.emit_session();
            }
            (None, None) => self.count(SkipReason::Unknown),
        }
    }

    fn finish_agent(&mut self, head: &Head, at: PartIndex, nth: usize, end: AgentEnd) {
        let state = match end {
            AgentEnd::Completed => AgentState::Completed,
            AgentEnd::Failed => AgentState::Failed,
            AgentEnd::Interrupted => AgentState::Interrupted,
        };
        let Some(entry) = self.agent(at, nth) else { return };
        if entry.ranks.holder(AgentField::State) == Some(head.feed) {
            let same = entry.state == state;
            self.count(if same { SkipReason::Duplicate } else { SkipReason::Contradiction });
        } else if entry.ranks.claim(AgentField::State, head.feed) {
            entry.state = state;
        }
        self.settle_agents(at, Some(head));
    }

    fn agent(&mut self, at: PartIndex, nth: usize) -> Option<&mut Agent> {
        self.part(at).agents.as_mut()?.agents.get_mut(nth)
    }

    /// The agent that an event refers to: its part, and its index in the part.
    fn find_or_open_agent(&mut self, head: &Head, agent: &AgentRef) -> Option<(PartIndex, usize)> {
        let Some(call) = &agent.call else {
            let id = agent.id.as_ref()?;
            let at = self.find_part(0, &Name::Agent(id.clone()))?;
            let agents = &self.part(at).agents.as_ref()?.agents;
            let nth = agents.iter().position(|entry| *entry.id == **id)?;
            return Some((at, nth));
        };
        let at = self.agents_part(head, call);
        let nth = self.agent_in(at, agent.id.as_ref());
        if let Some(id) = &agent.id {
            self.apply_orphan_ends(at, nth, id);
        }
        Some((at, nth))
    }

    /// Names the agent and applies ends that arrived before its start.
    fn apply_orphan_ends(&mut self, at: PartIndex, nth: usize, id: &Arc<str>) {
        self.name_part(at, Name::Agent(id.clone()));
        if !self.facts.orphan_agent_ends.iter().any(|orphan| orphan.id == *id) {
            return;
        }
        let orphan_agent_ends = std::mem::take(&mut self.facts.orphan_agent_ends);
        let (entry, rest): (Vec<_>, Vec<_>) =
            orphan_agent_ends.into_iter().partition(|orphan| orphan.id == *id);
        self.facts.orphan_agent_ends = rest;
        self.emit_session();
        for OrphanAgentEnd { end, at: time, evidence, .. } in entry {
            let head = Head { feed: evidence.feed, at: time, evidence, turn: None };
            self.finish_agent(&head, at, nth, end);
        }
    }

    /// The agents part of a call. Opens the part of the call first if the call is unknown.
    fn agents_part(&mut self, head: &Head, call: &Arc<str>) -> PartIndex {
        let name = Name::AgentsOf(call.clone());
        let found = self.find_part(0, &name);
        if let Some(at) = found.filter(|at| self.part(*at).agents.is_some()) {
            return at;
        }
        let tool = self.find_part(0, &Name::Call(call.clone()));
        let tool = match tool.filter(|at| self.part(*at).tool.is_some()) {
            Some(tool) => tool,
            None => self.open_bare_tool(head, &CallRef::Id(call.clone())),
        };
        let origin = Origin { names: vec![name.clone()], ..Origin::default() };
        let body = Body::Agent(Agents { call_id: call.to_string(), agents: Vec::new() });
        let at = self.insert_part(head, tool.0, name, origin, None, body);
        self.part(at).agents =
            Some(Box::new(AgentsFold { call_id: call.to_string(), agents: Vec::new() }));
        self.place_agents(tool);
        if let Some(reason) = self.part(tool).origin.hidden {
            self.part(at).origin.hidden = Some(reason);
            self.emit_origin(at);
        }
        at
    }

    /// The index of an agent within its call. An agent with a temporary id takes the real one.
    fn agent_in(&mut self, at: PartIndex, id: Option<&Arc<str>>) -> usize {
        let Some(agents) = &mut self.part(at).agents else { return 0 };
        let temporary = format!("temp_{}", agents.call_id);
        let found = match id {
            Some(id) => agents
                .agents
                .iter()
                .position(|entry| *entry.id == **id)
                .or_else(|| agents.agents.iter().position(|entry| entry.id == temporary)),
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
    pub(super) fn place_agents(&mut self, tool: PartIndex) {
        let Some(at) = self.agents_of(tool) else { return };
        let (place, step) = (Place(self.part(tool).place.0 + 1), self.part(tool).step);
        let part = self.part(at);
        let patch = PartPatch {
            place: Some(place).filter(|place| part.place != *place),
            step: step.filter(|_| part.step != step),
            ..PartPatch::default()
        };
        (part.place, part.step) = (place, step);
        self.emit_part_patch(at, patch);
    }

    /// The agents part of a call, if it has one.
    pub(super) fn agents_of(&self, tool: PartIndex) -> Option<PartIndex> {
        let call = self.peek(tool).tool.as_ref().map(|tool| tool.call_id.as_str())?;
        let name = Name::AgentsOf(call.into());
        self.find_part(tool.0, &name).filter(|at| self.peek(*at).agents.is_some())
    }

    /// The state of a call.
    pub(super) fn tool_state_of(&self, turn: usize, call: &str) -> Option<ToolState> {
        let tool = self.find_part(turn, &Name::Call(call.into()))?;
        Some(self.peek(tool).tool.as_ref()?.state)
    }

    /// Infers the state of agents without a reported end from their tool and their turn.
    pub(super) fn settle_agents(&mut self, at: PartIndex, head: Option<&Head>) {
        let Some(call) = self.part(at).agents.as_ref().map(|agents| agents.call_id.clone()) else {
            return;
        };
        let tool = self.tool_state_of(at.0, &call);
        let over = self.is_over(at.0);
        let part = self.part(at);
        let Some(agents) = &mut part.agents else { return };
        for entry in &mut agents.agents {
            if entry.ranks.holder(AgentField::State).is_none() {
                entry.state = inferred_state(entry, tool, over);
            }
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
        self.emit_part_patch(at, patch);
        self.end_deferred(at.0);
    }

    /// True if foreground sub-agents of this turn are still running.
    pub(super) fn waits_for_agents(&mut self, turn: usize) -> bool {
        self.recount();
        self.turns[turn].lookups.sets.waits_for_agents()
    }
}

/// The state of an agent whose end no feed reported, from the state of its call and of its turn.
pub(super) fn inferred_state(entry: &Agent, tool: Option<ToolState>, over: bool) -> AgentState {
    match tool {
        _ if entry.background => AgentState::Background,
        Some(ToolState::Completed) => AgentState::Completed,
        Some(ToolState::Failed | ToolState::Denied) => AgentState::Failed,
        Some(ToolState::Interrupted) => AgentState::Interrupted,
        Some(ToolState::Pending | ToolState::Running) | None if over => AgentState::Interrupted,
        Some(ToolState::Pending | ToolState::Running) | None => AgentState::Running,
    }
}
