//! Statistics over an archive: the request and the result. The result serializes to the JSON of
//! `unspool stats --json`; its field names are a stable interface. `database/stats.rs` computes it.

pub mod csv;

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
    /// Only sessions that ran in this folder or below it.
    pub folder: Option<String>,
    /// Milliseconds: only turns that started at or after this time.
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// Leaves out sessions with this tag and their sub-agents.
    pub without_tag: Option<String>,
    pub prices: Prices,
}

impl StatsRequest {
    /// True if a filter is set.
    pub fn is_narrow(&self) -> bool {
        let times = self.since.is_some() || self.until.is_some();
        let sessions = [&self.agent, &self.project, &self.folder, &self.without_tag];
        times || sessions.into_iter().any(Option::is_some)
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
    /// Likewise by week; the name is the date of its Monday.
    pub by_week: Vec<GroupFigures>,
    /// Likewise by month: `2026-11`.
    pub by_month: Vec<GroupFigures>,
    /// By the weekday and hour (UTC) in which a turn started; only those with turns, in order.
    pub by_hour: Vec<HourFigures>,
    /// This and the next two: most tokens first.
    pub by_model: Vec<GroupFigures>,
    pub by_agent: Vec<GroupFigures>,
    pub by_project: Vec<GroupFigures>,
    /// The sessions that cost most, each with its sub-agents.
    pub most_expensive: Vec<SessionFigures>,
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
    /// How long the tool ran.
    pub duration_ms: u64,
    /// How long the call waited before it ran: for permission, or for hooks. None if the agent
    /// does not report how long the tool ran.
    pub waited_ms: Option<u64>,
    /// `duration_ms` may include waiting for permission.
    pub may_include_waiting: bool,
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
    /// Truncates each list to `limit` rows: the last days, weeks and months, the first rows of the
    /// others. The hours of the week stay.
    pub fn truncate(&mut self, limit: usize) {
        self.tools.truncate(limit);
        self.slowest.truncate(limit);
        self.failures.truncate(limit);
        self.error_paths.truncate(limit);
        self.most_expensive.truncate(limit);
        for periods in [&mut self.by_day, &mut self.by_week, &mut self.by_month] {
            let old = periods.len().saturating_sub(limit);
            periods.drain(..old);
        }
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
    /// Sessions whose reported cost is for all of their tokens.
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
    /// As reported by agents, for sessions that the report covers; None if there is none. Agents
    /// report the cost of a session, never of a model.
    pub cost_usd: Option<f64>,
    /// As reported by agents, for sessions that the report covers only in part.
    pub partial_cost_usd: Option<f64>,
    /// Estimated from the price list, over the calls that have a price.
    pub estimated_cost_usd: Option<f64>,
    /// Model calls without a price.
    pub unpriced_steps: u64,
    /// The best figure for the cost: as reported where the report covers the session, else
    /// estimated.
    pub spent_usd: Option<f64>,
    /// A part of `spent_usd` is estimated.
    pub is_estimated: bool,
}

impl Serialize for UsageFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written {
            #[serde(flatten)]
            usage: UsageDocument,
            unpriced_steps: u64,
            spent_usd: Option<f64>,
            is_estimated: bool,
        }
        let usage = UsageDocument {
            usage: self.tokens,
            cost_usd: self.cost_usd,
            partial_cost_usd: self.partial_cost_usd,
            estimated_cost_usd: self.estimated_cost_usd,
        };
        let UsageFigures { unpriced_steps, spent_usd, is_estimated, .. } = *self;
        Written { usage, unpriced_steps, spent_usd, is_estimated }.serialize(serializer)
    }
}

impl UsageFigures {
    /// Adds a cost that an agent reports for all tokens of a session.
    pub fn add_reported(&mut self, cost: f64) {
        self.cost_usd = sum(self.cost_usd, Some(cost));
        self.spent_usd = sum(self.spent_usd, Some(cost));
    }

    /// Adds the figures of others.
    pub fn add(&mut self, other: &UsageFigures) {
        self.tokens.add(other.tokens);
        self.cost_usd = sum(self.cost_usd, other.cost_usd);
        self.partial_cost_usd = sum(self.partial_cost_usd, other.partial_cost_usd);
        self.estimated_cost_usd = sum(self.estimated_cost_usd, other.estimated_cost_usd);
        self.unpriced_steps += other.unpriced_steps;
        self.spent_usd = sum(self.spent_usd, other.spent_usd);
        self.is_estimated |= other.is_estimated;
    }
}

/// The sum of what is known.
pub fn sum(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

/// Statistics of one day, week, month, model, agent or project.
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

/// Statistics of one hour of one weekday.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HourFigures {
    /// 1 is Monday, 7 is Sunday.
    pub weekday: u8,
    /// 0 to 23.
    pub hour: u8,
    pub turns: u64,
    pub steps: u64,
    /// Tokens of all kinds.
    pub tokens: u64,
}

/// Statistics of one session and its sub-agents.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SessionFigures {
    pub session: String,
    pub title: Option<String>,
    pub agent: String,
    pub project: Option<String>,
    #[serde(rename = "started_at", serialize_with = "time")]
    pub started: Option<i64>,
    pub sub_agents: u64,
    pub turns: u64,
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
    /// Durations of the finished calls that have one. Denied calls and questions have none.
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
    /// How many of them may include waiting for permission: the agent reports no duration, and
    /// this is the time between call and result of a tool that usually asks.
    pub with_waiting: u64,
}

impl DurationFigures {
    /// Percentiles by nearest rank, so each is a measured duration.
    pub fn of(milliseconds: &mut [u32], total_ms: u64, with_waiting: u64) -> DurationFigures {
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
            with_waiting,
        }
    }
}

/// `part / of`, or None if `of` is zero.
pub fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn time<S: Serializer>(milliseconds: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    time_text(*milliseconds).serialize(serializer)
}

fn time_text(milliseconds: Option<i64>) -> Option<String> {
    let at = milliseconds.and_then(|at| Timestamp::from_millisecond(at).ok());
    at.map(|at| format!("{at:.3}"))
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
