//! The stats page: usage by day, agent, model and project, tool statistics, the slowest calls and
//! recurring failures. The figures are those of `unspool stats --json`.

mod calls;
mod usage;

use calls::{failures, slowest, tools};
use maud::{Markup, html};
use unspool_model::session::Usage;
use unspool_view::present::format;
use usage::{by_time, groups};

use crate::pages::chart::{compact, dollars};
use crate::pages::filters::{FilterMenu, chips, form};
use crate::pages::shell::shell;
use crate::url_query::UrlQuery;

/// Tokens and cost.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Spent {
    pub tokens: Usage,
    pub cost_usd: Option<f64>,
    pub estimated_usd: Option<f64>,
    pub unpriced: u64,
}

impl Spent {
    fn cost(&self) -> Option<f64> {
        self.cost_usd.or(self.estimated_usd)
    }

    /// `$1.20` as reported, or `~$1.20` estimated from list prices.
    fn cost_text(&self) -> String {
        match (self.cost_usd, self.estimated_usd) {
            (Some(cost), _) => dollars(cost),
            (None, Some(cost)) => format!("~{}", dollars(cost)),
            (None, None) => String::new(),
        }
    }
}

/// A day, an agent, a model or a project.
pub struct UsageBar {
    pub name: Option<String>,
    pub sessions: u64,
    pub turns: u64,
    pub steps: u64,
    pub spent: Spent,
}

pub struct ToolStats {
    pub name: String,
    pub calls: u64,
    pub error_rate: Option<f64>,
    pub median_ms: Option<u64>,
    pub p95_ms: Option<u64>,
    pub total_ms: u64,
}

/// A slow call, with a link to it.
pub struct SlowCallRow {
    pub tool: String,
    pub what: String,
    pub duration_ms: u64,
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
    pub turns: u64,
    pub steps: u64,
    pub tool_calls: u64,
    pub errors: u64,
    pub reasoning_share: Option<f64>,
}

pub struct StatsPage<'a> {
    pub totals: TotalsView,
    pub spent: Spent,
    /// One bar per day from the first to the last, or per week or month where there are many.
    pub periods: Vec<UsageBar>,
    /// `day`, `week` or `month`.
    pub period: &'static str,
    pub days: Vec<UsageBar>,
    pub agents: Vec<UsageBar>,
    pub models: Vec<UsageBar>,
    pub projects: Vec<UsageBar>,
    pub tools: Vec<ToolStats>,
    pub slowest: Vec<SlowCallRow>,
    pub failures: Vec<FailureRow>,
    pub chosen: &'a UrlQuery,
    pub choices: &'a [FilterMenu],
}

const LABELS: &[(&str, &str)] = &[("agent", "agent"), ("project", "project"), ("since", "")];

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
                div.pair {
                    (groups("Agents", "agent", &page.agents, Some("agent"), page.chosen))
                    (groups("Models", "model", &page.models, Some("model"), page.chosen))
                }
                (groups("Projects", "project", &page.projects, Some("project"), page.chosen))
                (tools(&page.tools))
                div.pair { (slowest(&page.slowest)) (failures(&page.failures)) }
                p.dim {
                    "The same as JSON: " code { "unspool stats --json" }
                    ". Days are in UTC; a turn counts on the day it started. ~ marks estimates from list prices."
                }
            }
        }
    };
    shell("Stats", "list.js", main)
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
    let TotalsView { sessions, sub_agents, turns, steps, tool_calls, errors, reasoning_share } =
        page.totals;
    let number = |count: u64| format::number(count);
    let tokens = page.spent.tokens;
    let agents = (sub_agents > 0).then(|| format!("{} by sub-agents", number(sub_agents)));
    let unpriced = (page.spent.unpriced > 0)
        .then(|| format!("{} without a price", number(page.spent.unpriced)));
    let both = page.spent.cost_usd.and(page.spent.estimated_usd);
    html! {
        dl.figures-row {
            (figure("Sessions", "sessions", sessions, number(sessions), agents))
            (figure("Turns", "turns", turns, number(turns), None))
            (figure("Model calls", "steps", steps, number(steps), unpriced))
            (figure("Tool calls", "tool_calls", tool_calls, number(tool_calls), None))
            (figure("Errors", "errors", errors, number(errors), None))
            (figure("Tokens", "tokens", tokens.total(), compact(tokens.total() as f64),
                reasoning_share.map(|share| format!("{:.0}% of parts are reasoning", share * 100.0))))
            div.figure {
                dt { "Cost" }
                dd {
                    @match page.spent.cost() {
                        Some(cost) => data value=(cost) data-figure="cost" { (page.spent.cost_text()) },
                        None => span.dim { "not known" },
                    }
                    @if let Some(estimated) = both { span.note { "~" (dollars(estimated)) " estimated" } }
                }
            }
        }
    }
}
