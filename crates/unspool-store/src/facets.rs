//! Facets of a session list: for every filter value, the number of sessions it would select
//! together with the other active filters; and totals over the selected sessions.

use unspool_model::price::Prices;
use unspool_model::session::Usage;

use crate::store::SessionFilter;

/// What to count.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FacetsRequest {
    /// `after` and `limit` are ignored.
    pub filter: SessionFilter,
    /// Points in time, in milliseconds: count the sessions that ended at or after each.
    pub times: Vec<i64>,
    pub prices: Prices,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Facets {
    /// Selected sessions.
    pub sessions: u64,
    /// Sub-agents' sessions that pass all other filters.
    pub sub_agents: u64,
    /// All sessions in the archive.
    pub all: u64,
    /// Most sessions first.
    pub agents: Vec<(String, u64)>,
    pub projects: Vec<ProjectFacet>,
    pub models: Vec<(String, u64)>,
    pub tags: Vec<(String, u64)>,
    /// Sessions with errors.
    pub errors: u64,
    /// One count for each of the requested times.
    pub times: Vec<u64>,
    /// Usage of the selected sessions and their sub-agents, each counted once.
    pub usage: Usage,
    /// Their cost: as reported by the agent, else estimated from the price list.
    pub cost_usd: Option<f64>,
    /// True if a part of the cost is estimated.
    pub is_estimated: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProjectFacet {
    pub path: String,
    /// Sessions of projects whose path contains this path.
    pub sessions: u64,
    /// Time of the last activity, in milliseconds.
    pub last: Option<i64>,
}
