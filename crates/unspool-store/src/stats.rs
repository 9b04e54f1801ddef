//! Statistics over an archive: the request and the result. The result serializes to the JSON of
//! `unspool stats --json`; its field names are a stable interface. `sqlite/stats.rs` computes it.

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use unspool_model::document::UsageDocument;
use unspool_model::price::Prices;
use unspool_model::session::Usage;

/// What to count.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StatsRequest {
    pub agent: Option<String>,
    /// A substring of the path of the project's folder.
    pub project: Option<String>,
    /// Milliseconds: only turns that started at or after this time.
    pub since: Option<i64>,
    pub until: Option<i64>,
    pub prices: Prices,
}

impl StatsRequest {
    /// True if a filter is set.
    pub fn is_narrow(&self) -> bool {
        let times = self.since.is_some() || self.until.is_some();
        times || self.agent.is_some() || self.project.is_some()
    }

    /// True if `at` is in the requested period. None is, unless a period is set.
    pub fn includes(&self, at: Option<i64>) -> bool {
        match at {
            Some(at) => {
                self.since.is_none_or(|since| at >= since)
                    && self.until.is_none_or(|until| at < until)
            }
            None => self.since.is_none() && self.until.is_none(),
        }
    }
}

/// Statistics over an archive (R-001-33).
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Stats {
    pub totals: Totals,
    /// Most calls first.
    pub tools: Vec<ToolFigures>,
    /// By the UTC day on which a turn started, oldest first; turns without a time last.
    pub by_day: Vec<GroupFigures>,
    /// This and the next two: most tokens first.
    pub by_model: Vec<GroupFigures>,
    pub by_agent: Vec<GroupFigures>,
    pub by_project: Vec<GroupFigures>,
    /// The slowest calls, slowest first.
    pub slowest: Vec<SlowCall>,
    /// Failures of one tool with the same first error line, at least 3 times; most frequent first.
    pub failures: Vec<RepeatedFailure>,
    /// Calls that led to a failure at least 3 times; most frequent first.
    pub error_paths: Vec<ErrorPath>,
}

/// The location of a call.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CallLocation {
    pub session: String,
    pub title: Option<String>,
    pub turn: u32,
    pub part: String,
    #[serde(serialize_with = "time")]
    pub at: Option<i64>,
}

/// A slow call.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SlowCall {
    pub tool: String,
    /// A one-line summary of its input.
    pub what: String,
    pub duration_ms: u64,
    #[serde(flatten)]
    pub place: CallLocation,
}

/// A repeated failure.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RepeatedFailure {
    pub tool: String,
    pub error: String,
    pub count: u64,
    pub sessions: u64,
    /// The most recent one.
    pub last: CallLocation,
}

/// The same calls in the same order in several turns, the last of which failed (R-002-42).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ErrorPath {
    /// Up to two calls before the failure, then the call that failed.
    pub calls: Vec<PathCall>,
    pub count: u64,
    pub sessions: u64,
    /// The most recent failure.
    pub last: CallLocation,
}

/// A call of an error path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
pub struct PathCall {
    pub tool: String,
    pub failed: bool,
}

impl Stats {
    /// Truncates each list to `limit` rows: the last days, the first rows of the others.
    pub fn truncate(&mut self, limit: usize) {
        self.tools.truncate(limit);
        self.slowest.truncate(limit);
        self.failures.truncate(limit);
        self.error_paths.truncate(limit);
        let old = self.by_day.len().saturating_sub(limit);
        self.by_day.drain(..old);
        for groups in [&mut self.by_model, &mut self.by_agent, &mut self.by_project] {
            groups.truncate(limit);
        }
    }
}

/// Totals over the requested sessions. Hidden parts do not count.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Totals {
    pub sessions: u64,
    /// Those among them that are sub-agents' sessions.
    pub sub_agents: u64,
    pub turns: u64,
    /// Model calls.
    pub steps: u64,
    /// Parts of replies.
    pub parts: u64,
    pub tool_calls: u64,
    /// Error parts and failed tool calls.
    pub errors: u64,
    pub reasoning_parts: u64,
    /// Share of reasoning parts among the parts of replies.
    pub reasoning_share: Option<f64>,
    /// Total duration of reasoning, where it was measured.
    pub reasoning_ms: u64,
    pub usage: UsageFigures,
    /// Sessions with a reported cost.
    pub sessions_with_cost: u64,
    #[serde(rename = "first_at", serialize_with = "time")]
    pub first: Option<i64>,
    #[serde(rename = "last_at", serialize_with = "time")]
    pub last: Option<i64>,
}

/// Tokens by kind, and their cost.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct UsageFigures {
    pub tokens: Usage,
    /// As reported by agents; None if none reported it. Agents report the cost of a session, never
    /// of a model.
    pub cost_usd: Option<f64>,
    /// Estimated from the price list, over the calls that have a price.
    pub estimated_cost_usd: Option<f64>,
    /// Model calls without a price.
    pub unpriced_steps: u64,
}

impl Serialize for UsageFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written {
            #[serde(flatten)]
            usage: UsageDocument,
            unpriced_steps: u64,
        }
        let usage = UsageDocument {
            usage: self.tokens,
            cost_usd: self.cost_usd,
            estimated_cost_usd: self.estimated_cost_usd,
        };
        Written { usage, unpriced_steps: self.unpriced_steps }.serialize(serializer)
    }
}

impl UsageFigures {
    pub fn add_cost(&mut self, cost: f64) {
        self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
    }
}

/// Statistics of one day, model, agent or project.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct GroupFigures {
    /// None for the group without a time, model or project.
    pub name: Option<String>,
    /// Sessions and turns of the group. One that used two models counts under both.
    pub sessions: u64,
    pub turns: u64,
    pub steps: u64,
    pub usage: UsageFigures,
}

/// Statistics of the calls of one tool.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ToolFigures {
    pub name: String,
    pub calls: u64,
    pub completed: u64,
    pub failed: u64,
    pub denied: u64,
    pub interrupted: u64,
    /// Without a recorded end.
    pub running: u64,
    /// Share of failed calls among the finished ones.
    pub error_rate: Option<f64>,
    /// Durations of the finished calls that have one.
    pub duration: DurationFigures,
}

/// Statistics of durations, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DurationFigures {
    /// How many calls have a measured duration.
    #[serde(rename = "known")]
    pub measured: u64,
    pub median_ms: Option<u64>,
    pub p95_ms: Option<u64>,
    pub total_ms: u64,
}

impl DurationFigures {
    /// Percentiles by nearest rank, so each is a measured duration.
    pub fn of(milliseconds: &mut [u32], total_ms: u64) -> DurationFigures {
        let count = milliseconds.len();
        let mut nearest = |percent: usize| {
            let rank = (count * percent).div_ceil(100).saturating_sub(1);
            (rank < count).then(|| u64::from(*milliseconds.select_nth_unstable(rank).1))
        };
        DurationFigures {
            median_ms: nearest(50),
            p95_ms: nearest(95),
            measured: count as u64,
            total_ms,
        }
    }
}

/// `part / of`, or None if `of` is zero.
pub fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn time<S: Serializer>(milliseconds: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    let at = milliseconds.and_then(|at| Timestamp::from_millisecond(at).ok());
    at.map(|at| format!("{at:.3}")).serialize(serializer)
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
