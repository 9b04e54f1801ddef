//! The stats page: usage by day, hour, agent, model and project, tool statistics, the most expensive
//! sessions, the slowest calls and recurring failures. The figures are those of `unspool stats --json`.

mod calls;
mod heat_map;
mod usage;

use calls::{expensive, failures, slowest, tools};
use heat_map::heat_map;
use maud::{Markup, html};
use unspool_model::session::Usage;
use unspool_store::stats::csv::StatsTable;
use unspool_store::stats::{GroupFigures, HourFigures, UsageFigures};
use unspool_view::present::format;
use usage::{by_time, groups};

pub use super::periods::Period;
use crate::pages::chart::dollars;
use crate::pages::filters::{FilterMenu, chips, form};
use crate::pages::shell::shell;
use crate::url_query::UrlQuery;

/// A day, week or month, an agent, a model or a project.
pub struct UsageBar {
    pub name: Option<String>,
    pub sessions: u64,
    pub turns: u64,
    pub steps: u64,
    pub spent: UsageFigures,
    /// The list of its sessions.
    pub address: Option<String>,
}

impl UsageBar {
    pub fn of(group: &GroupFigures, address: Option<String>) -> UsageBar {
        let GroupFigures { name, sessions, turns, steps, usage } = group.clone();
        UsageBar { name, sessions, turns, steps, spent: usage, address }
    }
}

/// `$1.20` as reported, or `~$1.20` if a part of it is estimated.
fn cost_text(spent: &UsageFigures) -> String {
    let mark = if spent.is_estimated { "~" } else { "" };
    spent.spent_usd.map(|cost| format!("{mark}{}", dollars(cost))).unwrap_or_default()
}

fn token_sum(tokens: Usage) -> String {
    format::token_sum(tokens.fresh(), tokens.cache_read)
}

pub struct ToolStats {
    pub name: String,
    /// The search for its calls.
    pub address: String,
    pub calls: u64,
    pub error_rate: Option<f64>,
    pub median_ms: Option<u64>,
    pub p95_ms: Option<u64>,
    pub total_ms: u64,
    /// How many of the durations may include waiting for permission.
    pub with_waiting: u64,
}

/// A session that cost much, with a link to it.
pub struct ExpensiveRow {
    pub address: String,
    pub title: String,
    pub agent: String,
    pub project: Option<String>,
    pub sub_agents: u64,
    pub spent: UsageFigures,
}

/// A slow call, with a link to it.
pub struct SlowCallRow {
    pub tool: String,
    pub what: String,
    pub duration_ms: u64,
    pub waited_ms: Option<u64>,
    pub may_include_waiting: bool,
    pub address: String,
    pub title: String,
}

pub struct FailureRow {
    pub tool: String,
    pub error: String,
    pub count: u64,
    pub sessions: u64,
    pub address: String,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TotalsView {
    pub sessions: u64,
    pub sub_agents: u64,
    pub sessions_with_cost: u64,
    pub turns: u64,
    pub steps: u64,
    pub tool_calls: u64,
    pub errors: u64,
    pub reasoning_share: Option<f64>,
}

pub struct StatsPage<'a> {
    pub totals: TotalsView,
    pub spent: UsageFigures,
    /// One bar per day, week or month, from the first to the last.
    pub periods: Vec<UsageBar>,
    pub period: Period,
    pub hours: Vec<HourFigures>,
    pub agents: Vec<UsageBar>,
    pub models: Vec<UsageBar>,
    pub projects: Vec<UsageBar>,
    pub expensive: Vec<ExpensiveRow>,
    pub tools: Vec<ToolStats>,
    pub slowest: Vec<SlowCallRow>,
    pub failures: Vec<FailureRow>,
    pub chosen: &'a UrlQuery,
    pub choices: &'a [FilterMenu],
}

const LABELS: &[(&str, &str)] =
    &[("agent", "agent"), ("project", "project"), ("since", ""), ("until", "until")];

/// Visible rows; the rest is behind a `details`.
const VISIBLE_ROWS: usize = 12;

pub fn stats(page: &StatsPage<'_>) -> Markup {
    let main = html! {
        div.stats {
            header.stats-head {
                h1 { "Stats" }
                (form("/stats", page.chosen, page.choices, &[]))
            }
            (chips("/stats", page.chosen, LABELS))
            @if page.totals.sessions == 0 {
                div.trouble { h2 { "No sessions match these filters" } p { a href="/stats" { "Show the statistics of all sessions" } "." } }
            } @else {
                (totals(page))
                (by_time(page))
                (heat_map(&page.hours))
                div.pair {
                    (groups("Agents", "agent", &page.agents))
                    (groups("Models", "model", &page.models))
                }
                (groups("Projects", "project", &page.projects))
                (expensive(&page.expensive))
                (tools(&page.tools))
                div.pair { (slowest(&page.slowest)) (failures(&page.failures)) }
                (downloads(page))
                p.dim {
                    "As JSON: " code { "unspool stats --json" }
                    ". Days and hours are in UTC; a turn counts on the day on which it started. "
                    "Cached tokens were read from the provider's cache. ~ marks a cost that is estimated from list prices, in whole or in part."
                }
            }
        }
    };
    shell("Stats", "list.js", main)
}

/// The tables as CSV, with the filters of the page.
fn downloads(page: &StatsPage<'_>) -> Markup {
    let filters = page.chosen.without("period");
    html! {
        p.downloads {
            "CSV: "
            @for name in StatsTable::NAMES {
                a href=(filters.clone().with("by", Some(name)).at("/api/stats.csv")) download={ "unspool-" (name) ".csv" } {
                    "by " (name)
                }
                " "
            }
        }
    }
}

fn figure(name: &str, key: &str, value: u64, text: String, note: Option<String>) -> Markup {
    html! {
        div.figure {
            dt { (name) }
            dd {
                data value=(value) data-figure=(key) title=(format::number(value)) { (text) }
                @if let Some(note) = note { span.note { (note) } }
            }
        }
    }
}

fn totals(page: &StatsPage<'_>) -> Markup {
    let TotalsView { sessions, sub_agents, turns, steps, tool_calls, errors, .. } = page.totals;
    let number = |count: u64| format::number(count);
    let tokens = page.spent.tokens;
    let agents = (sub_agents > 0)
        .then(|| format!("including {}", format::count(sub_agents as usize, "sub-agent")));
    let unpriced = (page.spent.unpriced_steps > 0)
        .then(|| format!("{} without a price", number(page.spent.unpriced_steps)));
    let cached =
        (tokens.cache_read > 0).then(|| format!("+ {} cached", format::compact(tokens.cache_read)));
    let reasoning = page.totals.reasoning_share;
    let reasoning = reasoning.map(|share| format!("{:.0}% of parts are reasoning", share * 100.0));
    let reported = page.totals.sessions_with_cost;
    let reported = (page.spent.is_estimated && reported > 0).then(|| {
        format!(
            "{} reported by {}",
            dollars(page.spent.cost_usd.unwrap_or(0.0)),
            count_of(reported)
        )
    });
    html! {
        dl.figures-row {
            (figure("Sessions", "sessions", sessions, number(sessions), agents))
            (figure("Turns", "turns", turns, number(turns), reasoning))
            (figure("Model calls", "steps", steps, number(steps), unpriced))
            (figure("Tool calls", "tool_calls", tool_calls, number(tool_calls), None))
            (figure("Errors", "errors", errors, number(errors), None))
            (figure("Tokens", "tokens", tokens.total(), format::compact(tokens.fresh()), cached))
            div.figure {
                dt { "Cost" }
                dd {
                    @match page.spent.spent_usd {
                        Some(cost) => data value=(cost) data-figure="cost" { (cost_text(&page.spent)) },
                        None => span.dim { "unknown" },
                    }
                    @if let Some(reported) = reported { span.note { (reported) } }
                }
            }
        }
    }
}

fn count_of(sessions: u64) -> String {
    format::count(usize::try_from(sessions).unwrap_or(usize::MAX), "session")
}
