//! A session as a row of a list, for the terminal.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::context::ContextUse;
use unspool_model::id::SessionId;
use unspool_model::session::{SessionState, TurnState};
use unspool_view::present::activity::Activity;
use unspool_view::present::burn_rate::BurnRate;

/// A session as a row of a list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SessionRow {
    pub id: SessionId,
    pub agent: String,
    pub title: String,
    pub project: Option<String>,
    pub models: Vec<String>,
    pub tags: Vec<String>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub state: SessionState,
    pub activity: Option<Activity>,
    /// The state of its last turn.
    #[serde(default)]
    pub last_turn: Option<TurnState>,
    pub turns: u64,
    pub parts: u64,
    pub tools: u64,
    pub errors: u64,
    /// Including sub-agents.
    pub tokens: u64,
    /// Those of them that were read from a cache.
    #[serde(default)]
    pub cached_tokens: u64,
    pub cost: String,
    pub sub_agent: bool,
    pub seq: u64,
    /// The command that resumes it in its agent.
    pub resume: Option<String>,
    /// The time of its last record.
    pub last_heard: Option<Timestamp>,
    /// How full its context is. Not in lists, where no surface shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// How fast it uses tokens. Not in lists either.
    #[serde(default)]
    pub burn_rate: Option<BurnRate>,
    /// The number of findings, as far as it is known.
    #[serde(default)]
    pub findings: u64,
}

impl SessionRow {
    /// True if it, or one of its sub-agents, is live.
    pub fn is_live(&self) -> bool {
        self.state == SessionState::Live || self.activity.is_some()
    }

    /// Tokens that were not read from a cache.
    pub fn fresh_tokens(&self) -> u64 {
        self.tokens.saturating_sub(self.cached_tokens)
    }
}
