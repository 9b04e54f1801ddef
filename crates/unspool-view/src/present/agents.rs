//! Sub-agents: the tree replaces the card of the call that started them (R-X-08) and includes facts
//! from their own sessions. The join happens here, at presentation time; nothing of it is stored in
//! the parent session.

use std::collections::{BTreeMap, BTreeSet};

use unspool_model::id::SessionId;
use unspool_model::landmark::Landmark;
use unspool_model::part::{Agent, Body, Kind, ToolState};
use unspool_model::session::{Transcript, Turn, TurnState, Usage};

use super::body::node;
use super::{PartView, format, markdown, tools};
use crate::block::{Badge, Block, Icon, Node, Span, Tone, TreeDetail};

/// Number of recently used tools to show per agent.
const LAST_TOOLS: usize = 3;
/// Agents may reference each other in cycles (law 8), so the tree depth is limited.
const MAX_TREE_DEPTH: usize = 12;

/// Maximum number of sub-agent sessions loaded for one view.
const MAX_LOOKUPS: usize = 200;

/// Work list for loading the sessions of sub-agents, nested ones included. The caller takes the
/// next id, loads the session and adds it; its own sub-agents are queued in turn.
#[derive(Default)]
pub struct SubagentLookup {
    subagents: SubagentSessions,
    waiting: Vec<String>,
    seen: BTreeSet<String>,
}

impl SubagentLookup {
    pub fn among(turns: &[Turn]) -> SubagentLookup {
        SubagentLookup { waiting: subagent_ids(turns), ..SubagentLookup::default() }
    }

    /// The next agent to load.
    pub fn next_id(&mut self) -> Option<String> {
        while let Some(id) = self.waiting.pop() {
            if self.seen.len() < MAX_LOOKUPS && self.seen.insert(id.clone()) {
                return Some(id);
            }
        }
        None
    }

    pub fn add(&mut self, transcript: &Transcript) {
        self.waiting.extend(subagent_ids(&transcript.turns));
        self.subagents.add(transcript);
    }

    pub fn subagents(self) -> SubagentSessions {
        self.subagents
    }
}

/// The ids of the sub-agents in these turns, in order and without duplicates. Temporary ids are
/// left out.
pub fn subagent_ids(turns: &[Turn]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for part in turns.iter().flat_map(|turn| &turn.parts) {
        let Body::Agent(group) = &part.body else { continue };
        for agent in group.agents.iter().filter(|agent| !agent.id.starts_with("temp_")) {
            if !ids.contains(&agent.id) {
                ids.push(agent.id.clone());
            }
        }
    }
    ids
}

/// The badge of a tool call in the state of this agent.
pub fn badge(node: &Node) -> Badge {
    let state = match node.icon {
        Icon::Pending => ToolState::Pending,
        Icon::Running | Icon::Background => ToolState::Running,
        Icon::Completed => ToolState::Completed,
        Icon::Failed => ToolState::Failed,
        Icon::Interrupted => ToolState::Interrupted,
    };
    let says_more = matches!(node.icon, Icon::Background | Icon::Interrupted);
    Badge { state: says_more.then(|| node.state.clone()), ..tools::badge(state) }
}

/// Statistics of sub-agent sessions, by agent id.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SubagentSessions(BTreeMap<String, SubagentStats>);

/// Statistics of one sub-agent, from its own session.
#[derive(Clone, PartialEq, Debug, Default)]
struct SubagentStats {
    session: Option<SessionId>,
    tools: usize,
    errors: usize,
    usage: Usage,
    duration_ms: Option<u64>,
    last_tools: Vec<String>,
    /// The final state of its last turn, if it has ended.
    end: Option<TurnState>,
    /// Its last text, if it completed.
    report: Option<String>,
    /// The agents that it started itself.
    agents: Vec<Agent>,
}

impl SubagentSessions {
    /// Adds a sub-agent's own session.
    pub fn add(&mut self, transcript: &Transcript) {
        let stats = SubagentStats::of(transcript);
        self.0.insert(transcript.session.agent_session_id.clone(), stats);
    }

    /// The ids of all sessions added so far.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Adds session facts to a tree of agents and merges the preceding call into it: the card is
    /// dropped, and its question, body and landmarks move to the tree.
    pub(super) fn join(&self, call: Option<&mut PartView>, agents: &mut PartView) {
        let Some(Block::Tree(tree)) = agents.blocks.first_mut() else { return };
        tree.nodes.iter_mut().for_each(|node| self.add_session_facts(node, 0));
        if !tree.nodes.iter().any(is_active) {
            tree.detail = TreeDetail::Compact;
        }
        let Some(call) = call.filter(|call| call.kind == Kind::Tool) else { return };
        if tree.nodes.is_empty() {
            return;
        }
        agents.landmarks.append(&mut call.landmarks);
        // The call is not shown, so the title of its group is shown above the agents.
        if let (Some(first), Some(member)) = (&mut call.group, &mut agents.group) {
            member.title = first.title.take();
        }
        // A call in the background ended before its agent did: the report is in the agent's log.
        let report = match tree.nodes.as_slice() {
            [node] => self.0.get(&node.key).and_then(|stats| stats.report.as_deref()),
            _ => None,
        };
        for block in std::mem::take(&mut call.blocks) {
            if let Block::Card(card) = block {
                agents.blocks.extend(card.earlier.into_iter().map(Block::Question));
                agents.blocks.extend(card.question.map(Block::Question));
                for block in card.body {
                    match (&block, report) {
                        (Block::Notice(notice), Some(report))
                            if notice.tone == Tone::Background =>
                        {
                            agents.blocks.extend(markdown::blocks(report));
                        }
                        _ => agents.blocks.push(block),
                    }
                }
            } else {
                agents.blocks.push(block);
            }
        }
    }

    fn add_session_facts(&self, node: &mut Node, depth: usize) {
        let Some(stats) = self.0.get(&node.key).filter(|_| depth < MAX_TREE_DEPTH) else { return };
        node.session = stats.session;
        let facts = stats.facts();
        if !facts.is_empty() {
            node.label.push(Span::plain(format!("  {facts}")).dim());
        }
        // The parent log may not have recorded a background agent's end yet; its own session has.
        if let (true, Some(end)) = (is_active(node), stats.end) {
            let ended = match end {
                TurnState::Completed => Some((Icon::Completed, "completed")),
                TurnState::Failed => Some((Icon::Failed, "failed")),
                TurnState::Interrupted => Some((Icon::Interrupted, "interrupted")),
                TurnState::Running | TurnState::Unknown => None,
            };
            if let Some((icon, state)) = ended {
                (node.icon, node.state) = (icon, state.into());
            }
        }
        if !stats.last_tools.is_empty() {
            node.note = vec![Span::plain(stats.last_tools.join(", "))];
        }
        node.children = stats.agents.iter().map(self::node).collect();
        node.children.iter_mut().for_each(|child| self.add_session_facts(child, depth + 1));
    }
}

fn is_active(node: &Node) -> bool {
    matches!(node.icon, Icon::Pending | Icon::Running | Icon::Background)
}

impl SubagentStats {
    fn of(transcript: &Transcript) -> SubagentStats {
        let parts = || transcript.turns.iter().flat_map(|turn| &turn.parts);
        let mut stats = SubagentStats {
            session: Some(transcript.session.id),
            usage: transcript.usage(),
            duration_ms: super::elapsed(transcript.started(), transcript.ended()),
            end: transcript.turns.last().map(|turn| turn.state),
            ..SubagentStats::default()
        };
        for part in parts() {
            stats.errors += usize::from(part.is_landmark(Landmark::Error));
            match &part.body {
                Body::Tool(tool) => {
                    stats.tools += 1;
                    stats.last_tools.push(tool.name.clone());
                    if stats.last_tools.len() > LAST_TOOLS {
                        stats.last_tools.remove(0);
                    }
                }
                Body::Agent(agents) => stats.agents.extend(agents.agents.iter().cloned()),
                Body::Text(_)
                | Body::Reasoning(_)
                | Body::Interjection(_)
                | Body::TaskList(_)
                | Body::SkillLoad(_)
                | Body::McpSnapshot(_)
                | Body::ContextInfo(_)
                | Body::Compaction(_)
                | Body::File(_)
                | Body::Source(_)
                | Body::Patch(_)
                | Body::Notice(_)
                | Body::Error(_)
                | Body::Data(_) => {}
            }
        }
        stats.end = stats.end.filter(|end| !matches!(end, TurnState::Running | TurnState::Unknown));
        if stats.end == Some(TurnState::Completed) {
            let last = transcript.turns.last().map(|turn| turn.parts.as_slice());
            stats.report = last.unwrap_or_default().iter().rev().find_map(|part| {
                if let Body::Text(said) = &part.body { Some(said.text.to_string()) } else { None }
            });
        }
        stats
    }

    /// `12 tools · 3,120 tokens + 24.4k cached · 1.1 s`.
    fn facts(&self) -> String {
        let mut facts = Vec::new();
        if self.tools > 0 {
            facts.push(format::count(self.tools, "tool"));
        }
        if self.errors > 0 {
            facts.push(format::count(self.errors, "error"));
        }
        let tokens = format::token_phrase(self.usage.fresh(), self.usage.cache_read);
        facts.extend(Some(tokens).filter(|tokens| !tokens.is_empty()));
        facts.extend(self.duration_ms.filter(|took| *took > 0).map(format::duration));
        facts.join(" · ")
    }
}

#[cfg(test)]
#[path = "agents_tests.rs"]
pub(in crate::present) mod tests;
