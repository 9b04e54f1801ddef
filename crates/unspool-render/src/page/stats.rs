//! The stats page: usage by day, agent, model and project, tool statistics, the slowest calls and
//! recurring failures. The figures are those of `unspool stats --json`.

use maud::{Markup, html};
use unspool_core::present::format;
use unspool_core::session::Usage;

use super::filters::{FilterMenu, chips, form, last_segment};
use super::shell;
use crate::chart::{self, ChartBar, Series, compact, dollars};
use crate::text::safe;
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
    pub failed: u64,
    pub error_rate: Option<f64>,
    pub median_ms: Option<u64>,
    pub p95_ms: Option<u64>,
    pub total_ms: u64,
}

/// A slow call, with a link to it.
pub struct SlowCall {
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
pub struct Totals {
    pub sessions: u64,
    pub sub_agents: u64,
    pub turns: u64,
    pub steps: u64,
    pub tool_calls: u64,
    pub errors: u64,
    pub reasoning_share: Option<f64>,
}

pub struct StatsPage<'a> {
    pub totals: Totals,
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
    pub slowest: Vec<SlowCall>,
    pub failures: Vec<FailureRow>,
    pub chosen: &'a UrlQuery,
    pub choices: &'a [FilterMenu],
}

const LABELS: &[(&str, &str)] = &[("agent", "agent"), ("project", "project"), ("since", "")];

/// Visible rows; the rest is behind a `details`.
const VISIBLE_ROWS: usize = 12;

const KINDS: [Series; 4] = [
    Series { name: "Cache read", class: "kind-read" },
    Series { name: "Cache write", class: "kind-write" },
    Series { name: "Input", class: "kind-input" },
    Series { name: "Output", class: "kind-output" },
];

fn by_kind(usage: &Usage) -> [u64; 4] {
    [usage.cache_read, usage.cache_write, usage.input, usage.output]
}

pub fn stats(page: &StatsPage<'_>) -> Markup {
    let main = html! {
        div.stats {
            header.stats-head {
                h1 { "Stats" }
                (form("/stats", page.chosen, page.choices, &[]))
            }
            (chips("/stats", page.chosen, LABELS))
            @if page.totals.sessions == 0 {
                div.trouble { h2 { "Nothing to count" } p { a href="/stats" { "Count everything" } "." } }
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
    let Totals { sessions, sub_agents, turns, steps, tool_calls, errors, reasoning_share } =
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

fn by_time(page: &StatsPage<'_>) -> Markup {
    let label = |bar: &UsageBar| bar.name.clone().unwrap_or_else(|| "no date".to_owned());
    let tokens: Vec<ChartBar> = page
        .periods
        .iter()
        .map(|bar| ChartBar {
            label: label(bar),
            values: by_kind(&bar.spent.tokens).map(|count| count as f64).to_vec(),
            hint: format!(
                "{}: {} tokens in {}",
                label(bar),
                format::number(bar.spent.tokens.total()),
                format::count(bar.turns as usize, "turn")
            ),
        })
        .collect();
    let costs: Vec<ChartBar> = page
        .periods
        .iter()
        .map(|bar| ChartBar {
            label: label(bar),
            values: vec![bar.spent.cost().unwrap_or(0.0)],
            hint: format!("{}: {}", label(bar), bar.spent.cost_text()),
        })
        .collect();
    let cost = [Series { name: "Cost", class: "kind-cost" }];
    html! {
        section aria-label="By day" {
            (chart::columns("tokens-by-day", &format!("Tokens by {}", page.period), &KINDS, &tokens, compact))
            (chart::columns("cost-by-day", &format!("Cost by {}", page.period), &cost, &costs, dollars))
            details.table {
                summary { "As a table" }
                (table("Day", &page.days, None))
            }
        }
    }
}

/// A table of bars by agent, model or project.
fn groups(
    title: &str,
    kind: &'static str,
    bars: &[UsageBar],
    name: Option<&'static str>,
    chosen: &UrlQuery,
) -> Markup {
    let most = bars.iter().map(|bar| bar.spent.tokens.total()).max().unwrap_or(0);
    let address = |bar: &UsageBar| {
        let (name, value) = (name?, bar.name.as_deref()?);
        let since = chosen.get("since");
        Some(UrlQuery::default().with(name, Some(value)).with("since", since).at("/"))
    };
    let row = |bar: &UsageBar| {
        let shown = bar.name.as_deref().unwrap_or("not said");
        let end = last_segment(shown);
        let same =
            |other: &&UsageBar| other.name.as_deref().is_some_and(|name| last_segment(name) == end);
        let short =
            if kind == "project" && bars.iter().filter(same).count() == 1 { end } else { shown };
        html! {
            tr {
                th scope="row" title=(safe(shown)) {
                    @match address(bar) {
                        Some(address) => a href=(address) { (safe(short)) },
                        None => span.dim { (safe(short)) },
                    }
                }
                td.bar-cell { (chart::share_bar(bar.spent.tokens.total() as f64, most as f64, "kind-bar")) }
                td { data value=(bar.spent.tokens.total()) { (compact(bar.spent.tokens.total() as f64)) } }
                td { (bar.spent.cost_text()) }
                td.minor { (format::count(bar.sessions as usize, "session")) }
            }
        }
    };
    let head = html! {
        thead.visually-hidden { tr { th { (title) } th { "Share" } th { "Tokens" } th { "Cost" } th { "Sessions" } } }
    };
    html! {
        section.groups data-kind=(kind) {
            h2 { (title) }
            table.bars { (head) tbody { @for bar in bars.iter().take(VISIBLE_ROWS) { (row(bar)) } } }
            @if bars.len() > VISIBLE_ROWS {
                details.table {
                    summary { (format::number((bars.len() - VISIBLE_ROWS) as u64)) " more" }
                    table.bars { (head) tbody { @for bar in bars.iter().skip(VISIBLE_ROWS) { (row(bar)) } } }
                }
            }
        }
    }
}

/// All figures as a table.
fn table(title: &str, bars: &[UsageBar], limit: Option<usize>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table.figures-table {
                thead {
                    tr {
                        th scope="col" { (title) }
                        @for name in ["Sessions", "Turns", "Calls", "Input", "Output", "Cache read", "Cache write", "Reported", "Estimated"] {
                            th scope="col" { (name) }
                        }
                    }
                }
                tbody {
                    @for bar in bars.iter().take(limit.unwrap_or(usize::MAX)) {
                        @let Usage { input, output, cache_read, cache_write, .. } = bar.spent.tokens;
                        tr {
                            th scope="row" { (safe(bar.name.as_deref().unwrap_or("not said"))) }
                            @for count in [bar.sessions, bar.turns, bar.steps, input, output, cache_read, cache_write] {
                                td { (format::number(count)) }
                            }
                            @for cost in [bar.spent.cost_usd, bar.spent.estimated_usd] {
                                td { @if let Some(cost) = cost { (dollars(cost)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn tools(tools: &[ToolStats]) -> Markup {
    let most = tools.iter().map(|tool| tool.calls).max().unwrap_or(0);
    let duration = |ms: Option<u64>| ms.map(format::duration).unwrap_or_default();
    let rows = |tools: &[ToolStats]| {
        html! {
            @for tool in tools {
                tr {
                    th scope="row" { (safe(&tool.name)) }
                    td.bar-cell { (chart::share_bar(tool.calls as f64, most as f64, "kind-bar")) }
                    td { data value=(tool.calls) { (format::number(tool.calls)) } }
                    td.tone-failed[tool.error_rate.is_some_and(|rate| rate >= 0.1)] {
                        @if let Some(rate) = tool.error_rate { (percent(rate)) }
                    }
                    td { (duration(tool.median_ms)) }
                    td.minor { (duration(tool.p95_ms)) }
                    td.minor { (format::duration(tool.total_ms)) }
                }
            }
        }
    };
    let head = html! {
        thead {
            tr {
                th scope="col" { "Tool" } th { span.visually-hidden { "Share" } }
                th scope="col" { "Calls" } th scope="col" { "Failed" } th scope="col" { "Median" }
                th.minor scope="col" { "95%" } th.minor scope="col" { "Total" }
            }
        }
    };
    let (open, rest) = tools.split_at(tools.len().min(VISIBLE_ROWS));
    html! {
        @if !tools.is_empty() {
            section.groups data-kind="tool" {
                h2 { "Tools" }
                table.bars { (head) tbody { (rows(open)) } }
                @if !rest.is_empty() {
                    details.table {
                        summary { (format::number(rest.len() as u64)) " more" }
                        table.bars { (head) tbody { (rows(rest)) } }
                    }
                }
            }
        }
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 10.0 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

fn slowest(calls: &[SlowCall]) -> Markup {
    html! {
        @if !calls.is_empty() {
            section.calls {
                h2 { "Slowest calls" }
                ol {
                    @for call in calls {
                        li {
                            a href=(call.address) {
                                span.took { (format::duration(call.duration_ms)) }
                                span.what { strong { (safe(&call.tool)) } " " (safe(&call.what)) }
                                span.dim { (safe(&call.title)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn failures(failures: &[FailureRow]) -> Markup {
    html! {
        @if !failures.is_empty() {
            section.calls {
                h2 { "Recurring failures" }
                ol {
                    @for failure in failures {
                        li {
                            a href=(failure.address) {
                                span.took.tone-failed { (format::number(failure.count)) "×" }
                                span.what { strong { (safe(&failure.tool)) } " " (safe(&failure.error)) }
                                span.dim { "in " (format::count(failure.sessions as usize, "session")) "; opens the latest" }
                            }
                        }
                    }
                }
            }
        }
    }
}
