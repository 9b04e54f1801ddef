//! What a list of sessions can be narrowed to, and what is in it: counts beside every choice, as if
//! it were chosen with all the others that are, and sums over what is chosen.

use unspool_core::price::Prices;
use unspool_core::session::Usage;

use crate::contract::SessionFilter;

/// What to count.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ChoicesRequest {
    /// Its place and its limit do not count.
    pub filter: SessionFilter,
    /// Points in time, in milliseconds: how many sessions ended then or later.
    pub times: Vec<i64>,
    pub prices: Prices,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Choices {
    /// Sessions that are chosen.
    pub sessions: u64,
    /// Sessions that are chosen but for being sub-agents'.
    pub sub_agents: u64,
    /// Sessions in the archive, whatever is chosen.
    pub all: u64,
    /// Most sessions first.
    pub agents: Vec<(String, u64)>,
    pub projects: Vec<ProjectChoice>,
    pub models: Vec<(String, u64)>,
    pub tags: Vec<(String, u64)>,
    /// With errors in them.
    pub errors: u64,
    /// For each of the times that were asked for.
    pub times: Vec<u64>,
    /// Of the chosen ones together with their sub-agents, each once.
    pub usage: Usage,
    /// What they cost, each by what its agent says, else by the list of prices.
    pub cost_usd: Option<f64>,
    /// Some of it is by the list of prices.
    pub is_estimated: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProjectChoice {
    pub path: String,
    /// Sessions of projects that have this in their path.
    pub sessions: u64,
    /// When something was last heard of it, in milliseconds.
    pub last: Option<i64>,
}
