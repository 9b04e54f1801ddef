//! A session at a glance: its head and what is summed up over its turns. Made from a transcript, or
//! by a store from its sums, so that a list need not load what it lists.

use jiff::Timestamp;

use crate::part::{Body, ToolState};
use crate::price::Spending;
use crate::session::{Session, Transcript, TurnState, Usage};

/// How much of a session is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completeness {
    Full,
    /// Something is missing: only hooks told of it, or lines could not be read.
    Partial,
    /// Only prompts and results are known.
    FinalOnly,
    Failed,
}

impl Completeness {
    pub const ALL: [Completeness; 4] =
        [Completeness::Full, Completeness::Partial, Completeness::FinalOnly, Completeness::Failed];

    pub fn name(self) -> &'static str {
        match self {
            Completeness::Full => "full",
            Completeness::Partial => "partial",
            Completeness::FinalOnly => "final-only",
            Completeness::Failed => "failed",
        }
    }

    pub fn of_name(name: &str) -> Option<Completeness> {
        Completeness::ALL.into_iter().find(|grade| grade.name() == name)
    }
}

/// A session at a glance.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    pub session: Session,
    /// What a person or the agent calls it, else the beginning of the first prompt.
    pub title: Option<String>,
    pub tags: Vec<String>,
    /// In the order of their first use.
    pub models: Vec<String>,
    pub completeness: Completeness,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub turns: u64,
    pub parts: u64,
    pub tools: u64,
    /// Errors, and tools that failed.
    pub errors: u64,
    /// Its last turn has no end. Whether it goes on depends on the time (`state`).
    pub running: bool,
    pub usage: Usage,
    /// Together with its sub-agents, as far as their own sessions are known.
    pub usage_with_agents: Usage,
    pub spending: Spending,
    pub spending_with_agents: Spending,
}

impl Transcript {
    /// The session at a glance, together with its sub-agents.
    pub fn summary(&self, completeness: Completeness, agents: &[Transcript]) -> Summary {
        let parts = || self.turns.iter().flat_map(|turn| &turn.parts);
        let tool = |state: Option<ToolState>| {
            let told = parts().filter(|part| {
                if let Body::Tool(tool) = &part.body {
                    state.is_none_or(|state| tool.state == state)
                } else {
                    false
                }
            });
            told.count() as u64
        };
        let errors = parts().filter(|part| matches!(part.body, Body::Error(_))).count() as u64;
        let (usage, spending) = (self.usage(), self.spending());
        let (mut usage_with_agents, mut spending_with_agents) = (usage, spending.clone());
        // By their ids: sums of dollars must not depend on which of them was read first.
        let mut agents: Vec<&Transcript> = agents.iter().collect();
        agents.sort_by_cached_key(|agent| agent.session.id.to_string());
        for agent in agents {
            usage_with_agents.add(agent.usage());
            spending_with_agents.add(&agent.spending());
        }
        Summary {
            session: self.session.clone(),
            title: self.title(),
            tags: Vec::new(),
            models: self.models().into_iter().map(str::to_owned).collect(),
            completeness,
            started: self.started(),
            ended: self.ended(),
            turns: self.turns.len() as u64,
            parts: parts().count() as u64,
            tools: tool(None),
            errors: errors + tool(Some(ToolState::Failed)),
            running: self
                .turns
                .last()
                .is_some_and(|turn| turn.state == TurnState::Running && turn.number > 0),
            usage,
            usage_with_agents,
            spending,
            spending_with_agents,
        }
    }
}
