//! Sessions, turns and steps: the containers of parts. Built by `TranscriptBuilder` from changes,
//! stored as rows, read by `present`, `document` and the projections.
//!
//! This file has the session as a whole. Its turns are in `turn`, their model calls in `step`.

mod message_record;
mod step;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::AgentEnd;
use crate::id::{SessionId, TurnId};
use crate::part::Body;
use crate::price::{ReportedCost, Spending};
use crate::provenance::Evidence;
use crate::rank::{Ranks, SessionField};

pub use message_record::{MessageRecord, MessageRecords};
use step::models;
pub use step::{PromptPiece, Provenance, SnapshotUse, Step, Usage};
pub use turn::{PendingWhitespace, ReservedPlace, Trigger, Turn, TurnEnd, TurnOrigin, TurnState};

/// One conversation of one agent, whole: its head and its turns in order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transcript {
    pub session: Session,
    pub turns: Vec<Turn>,
}

impl Transcript {
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.turns.iter().for_each(|turn| usage.add(turn.usage()));
        usage
    }

    /// Usage by model, and the cost that the agent reports.
    pub fn spending(&self) -> Spending {
        let steps = self.turns.iter().flat_map(|turn| &turn.steps);
        let calls = steps.map(|step| (step.model.as_deref(), step.usage));
        Spending::of_session(calls, self.session.facts.cost())
    }

    /// The title set by a person or the agent, otherwise the beginning of the first prompt.
    pub fn title(&self) -> Option<String> {
        if let Some(title) = &self.session.facts.title {
            return Some(title.text.clone());
        }
        let first = self.turns.iter().find(|turn| turn.number > 0 && !turn.user.is_empty())?;
        title_of_prompt(first.user.iter().find_map(Body::prose)?)
    }

    /// The models of the steps, in the order of their first use.
    pub fn models(&self) -> Vec<&str> {
        models(self.turns.iter().flat_map(|turn| &turn.steps))
    }

    /// The sub-agents that were started here, by their own ids.
    pub fn agent_ids(&self) -> impl Iterator<Item = &str> {
        let bodies = self.turns.iter().flat_map(|turn| &turn.parts).map(|part| &part.body);
        let agents = bodies.filter_map(|body| {
            if let Body::Agent(agents) = body { Some(&agents.agents) } else { None }
        });
        agents.flatten().map(|agent| agent.id.as_str())
    }

    /// The earliest recorded time. Turns that were copied from another session do not count,
    /// unless there are no others.
    pub fn started(&self) -> Option<Timestamp> {
        let own = self.turns.iter().filter(|turn| !turn.inherited).filter_map(turn_started).min();
        let first = own.or_else(|| self.turns.iter().filter_map(turn_started).min());
        first.into_iter().chain(self.session.facts.started).min()
    }

    /// The latest recorded time, of the same turns.
    pub fn ended(&self) -> Option<Timestamp> {
        let own = self.turns.iter().filter(|turn| !turn.inherited).filter_map(turn_ended).max();
        own.or_else(|| self.turns.iter().filter_map(turn_ended).max())
    }
}

fn turn_started(turn: &Turn) -> Option<Timestamp> {
    let parts = turn.parts.iter().filter_map(|part| part.started.or(part.ended));
    parts.chain(turn.started.or(turn.ended)).min()
}

fn turn_ended(turn: &Turn) -> Option<Timestamp> {
    let parts = turn.parts.iter().filter_map(|part| part.ended.or(part.started));
    parts.chain(turn.ended.or(turn.started)).max()
}

/// The first line of a prompt, as the title of a session without one.
pub fn title_of_prompt(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(120).collect())
}

/// The head of a session.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Session {
    pub id: SessionId,
    /// `claude-code`, `codex`, …
    pub agent: String,
    pub agent_session_id: String,
    pub facts: Facts,
    pub state: SessionState,
    /// The reported parent, completed from the agent part of the session that started this one:
    /// not every source names the call or the right parent of a nested agent.
    pub parent: Option<Parent>,
    pub forked_from: Option<ForkedFrom>,
}

/// Session-level facts from the sources. `None` means that no source reported it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    pub project: Option<String>,
    pub branch: Option<String>,
    /// The version of the agent that wrote it, newest seen.
    pub version: Option<String>,
    pub title: Option<Title>,
    /// What the agent says the session has cost so far.
    pub cost_usd: Option<f64>,
    /// The tokens that this cost is for, if the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_tokens: Option<Usage>,
    pub started: Option<Timestamp>,
    /// The parent that the session's own sources report.
    #[serde(default, rename = "parent", skip_serializing_if = "Option::is_none")]
    pub reported_parent: Option<Parent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// The source has only prompts and their results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcomes_only: bool,
    /// The sizes of context windows that the agent reports, in tokens, by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context_windows: BTreeMap<String, u64>,
    /// When the session last ended. `Timestamp::MAX` if the source does not say when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When a process of the agent last opened the session again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
    #[serde(default)]
    pub ranks: Ranks<SessionField>,
    /// Ends of sub-agents whose start has not been seen yet.
    #[serde(default, rename = "strangers")]
    pub orphan_agent_ends: Vec<OrphanAgentEnd>,
}

impl Facts {
    /// The cost that the agent reports, with the tokens that it is for.
    pub fn cost(&self) -> Option<ReportedCost> {
        self.cost_usd.map(|usd| ReportedCost { usd, tokens: self.cost_tokens })
    }
}

/// The end of a sub-agent that arrived before its start (R-X-04).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OrphanAgentEnd {
    pub id: Arc<str>,
    pub end: AgentEnd,
    pub at: Option<Timestamp>,
    pub evidence: Evidence,
}

/// A title and its origin. A later origin wins: a custom title replaces a generated one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Title {
    pub text: String,
    pub origin: TitleOrigin,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TitleOrigin {
    Prompt,
    Summary,
    Generated,
    Custom,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionState {
    Live,
    #[default]
    Idle,
    Ended,
}

impl SessionState {
    pub fn name(self) -> &'static str {
        match self {
            SessionState::Live => "live",
            SessionState::Idle => "idle",
            SessionState::Ended => "ended",
        }
    }
}

/// The session and the tool call that started a sub-agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Parent {
    pub session: SessionId,
    /// Not every source names the call.
    pub call_id: Option<String>,
    /// The requested kind of agent: `general-purpose`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// The session and the turn that a session branched off.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ForkedFrom {
    pub session: SessionId,
    pub turn: Option<TurnId>,
}
