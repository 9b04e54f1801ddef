//! Session summaries: the head and totals over the turns. Computed from a transcript, or by the
//! store from its own totals, so that a list does not have to load transcripts.

use jiff::Timestamp;

use crate::landmark::Landmark;
use crate::part::Part;
use crate::price::Spending;
use crate::session::{Session, Transcript, TurnState, Usage};

/// How complete the record of a session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completeness {
    Full,
    /// Something is missing: only hooks reported it, lines were unreadable, or the agent does not
    /// write down all of it (`LogDetail`).
    Partial,
    /// The source has only prompts and results.
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

/// Whether the figures of a session include its sub-agents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsageScope {
    /// Only the session itself: its sub-agents stand beside it.
    Own,
    WithAgents,
}

/// A session head with totals.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    pub session: Session,
    /// The title set by a person or the agent, otherwise the beginning of the first prompt.
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
    /// See `Landmark::Error`.
    pub errors: u64,
    /// The state of the last turn after the first prompt. Whether one without an end still runs
    /// depends on the time; see `state`.
    pub last_turn: Option<TurnState>,
    pub usage: Usage,
    /// Including sub-agents whose own sessions are known.
    pub usage_with_agents: Usage,
    pub spending: Spending,
    pub spending_with_agents: Spending,
}

impl Summary {
    pub fn usage_in(&self, scope: UsageScope) -> Usage {
        match scope {
            UsageScope::Own => self.usage,
            UsageScope::WithAgents => self.usage_with_agents,
        }
    }

    pub fn spending_in(&self, scope: UsageScope) -> &Spending {
        match scope {
            UsageScope::Own => &self.spending,
            UsageScope::WithAgents => &self.spending_with_agents,
        }
    }
}

impl Transcript {
    /// Summarises the session together with its sub-agents.
    pub fn summary(&self, completeness: Completeness, agents: &[Transcript]) -> Summary {
        let parts = || self.turns.iter().flat_map(|turn| &turn.parts);
        let count = |is: fn(&Part) -> bool| parts().filter(|part| is(part)).count() as u64;
        let (usage, mut spending) = (self.usage(), self.spending());
        let (mut usage_with_agents, mut spending_with_agents) = (usage, spending.clone());
        // Sorted by id: floating-point sums must not depend on the order of arrival.
        let mut agents: Vec<&Transcript> = agents.iter().collect();
        agents.sort_by_cached_key(|agent| agent.session.id.to_string());
        for agent in agents {
            usage_with_agents.add(agent.usage());
            spending_with_agents.add(&agent.spending());
        }
        spending.check_against(&spending_with_agents);
        Summary {
            session: self.session.clone(),
            title: self.title(),
            tags: Vec::new(),
            models: self.models().into_iter().map(str::to_owned).collect(),
            completeness,
            started: self.started(),
            ended: self.ended(),
            turns: self.turns.iter().filter(|turn| !turn.is_blank()).count() as u64,
            parts: parts().count() as u64,
            tools: parts().map(|part| part.body.tool_calls()).fold(0, u64::saturating_add),
            errors: count(|part| part.is_landmark(Landmark::Error)),
            last_turn: self.turns.last().filter(|turn| turn.number > 0).map(|turn| turn.state),
            usage,
            usage_with_agents,
            spending,
            spending_with_agents,
        }
    }
}
