//! The session list: live sessions on top, then newest first, by day or by project.

use jiff::Timestamp;
use maud::{Markup, html};
use unspool_export::html::text::{safe, tone_class};
use unspool_model::price::Prices;
use unspool_model::session::{SessionState, Usage};
use unspool_model::summary::{Summary, UsageScope};
use unspool_view::block::Tone;
use unspool_view::present::activity::Activity;
use unspool_view::present::budget::BudgetUse;
use unspool_view::present::ending::ending;
use unspool_view::present::{self, format};

use crate::pages::filters::{FilterMenu, Switch, chips, form, last_segment};
use crate::pages::shell::shell;
use crate::url_query::UrlQuery;

/// A session in the list.
pub struct ListRow<'a> {
    pub summary: &'a Summary,
    pub sub_agent: bool,
    /// The current activity of a live session.
    pub activity: Option<Activity>,
    /// Own, if the list has rows for sub-agents: what a sub-agent used stands in its own row.
    pub scope: UsageScope,
    /// The number of findings, as far as it is known.
    pub findings: u64,
}

/// The newest sessions of a project.
pub struct Project<'a> {
    pub path: &'a str,
    pub sessions: u64,
    pub rows: Vec<ListRow<'a>>,
}

/// Totals over all matching sessions, not only the listed ones.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sum {
    pub sessions: u64,
    pub sub_agents: u64,
    pub errors: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Part of the cost is estimated from list prices.
    pub is_estimated: bool,
}

/// The data of the page.
pub struct SessionsPage<'a> {
    pub live: Vec<ListRow<'a>>,
    pub rows: Vec<ListRow<'a>>,
    /// Replaces `rows` in the view by project.
    pub projects: Option<Vec<Project<'a>>>,
    /// The query of the next page.
    pub next: Option<String>,
    /// Budgets that are nearly spent.
    pub budgets: Vec<BudgetUse>,
    pub chosen: &'a UrlQuery,
    pub choices: &'a [FilterMenu],
    pub sum: Sum,
    pub prices: &'a Prices,
    /// The browser may start agents.
    pub may_drive: bool,
}

/// The labels of the filter chips.
const LABELS: &[(&str, &str)] = &[
    ("agent", "agent"),
    ("project", "project"),
    ("model", "model"),
    ("tag", "tag"),
    ("since", ""),
    ("until", "until"),
    ("errors", "with errors"),
    ("agents", "with sub-agents"),
];

pub fn sessions(page: &SessionsPage<'_>) -> Markup {
    let chosen = page.chosen;
    let switches = [
        Switch { name: "errors", label: "With errors", count: page.sum.errors },
        Switch { name: "agents", label: "With sub-agents", count: page.sum.sub_agents },
    ];
    let by_project = chosen.get("by") == Some("project");
    let none = page.live.is_empty()
        && page.rows.is_empty()
        && page.projects.as_ref().is_none_or(|projects| projects.is_empty());
    let main = html! {
        div.sessions data-list data-query=(chosen.text()) {
            h1.visually-hidden { "Sessions" }
            div.bar {
                @if page.may_drive { a.begin-chat href="/new" { "New chat" } }
                (form("/", chosen, page.choices, &switches))
                div.by role="group" aria-label="Group by" {
                    a href=(chosen.without("by").at("/")) aria-current=[(!by_project).then_some("true")] { "By day" }
                    a href=(chosen.clone().with("by", Some("project")).at("/"))
                        aria-current=[by_project.then_some("true")] { "By project" }
                }
            }
            (chips("/", chosen, LABELS))
            @for budget in &page.budgets {
                p.budget.(tone_class(budget.tone())) role="status" { (safe(&budget.sentence())) }
            }
            p.sum role="status" { (sum(&page.sum)) }
            div.listing {
                section.live aria-labelledby="now" hidden[page.live.is_empty()] {
                    h2 id="now" { "Live" }
                    ol.rows.now { @for one in &page.live { (row(one, page.prices)) } }
                }
                @if none {
                    div.trouble {
                        h2 { "No sessions match these filters" }
                        p { "Remove a filter, or " a href="/" { "show all sessions" } "." }
                    }
                } @else if let Some(projects) = &page.projects {
                    @for project in projects { (of_project(project, chosen, page.prices)) }
                } @else {
                    ol.rows.all { (rows(&page.rows, page.prices, None)) }
                    (next(page.next.as_deref()))
                }
            }
            div.found hidden role="region" aria-label="Search results" {}
        }
    };
    shell("Sessions", "list.js", main)
}

fn sum(sum: &Sum) -> Markup {
    let cost = sum.cost_usd.map(|cost| format::cost(cost, sum.is_estimated));
    html! {
        span { (format::count(sum.sessions as usize, "session")) }
        span title=(present::usage_text(sum.usage)) { (format::token_phrase(sum.usage.fresh(), sum.usage.cache_read)) }
        @if let Some(cost) = cost { span { (cost) } }
    }
}

/// The next rows, for an open page. The heading of the day they continue is not repeated.
pub fn more(
    list: &[ListRow<'_>],
    prices: &Prices,
    before: Option<Timestamp>,
    at: Option<&str>,
) -> Markup {
    html! { ol.rows { (rows(list, prices, before)) } (next(at)) }
}

fn next(at: Option<&str>) -> Markup {
    html! {
        @if let Some(at) = at {
            a.more id="more" href={ "/?" (at) } data-more=(at) { "More sessions" }
        }
    }
}

fn day(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "No date".to_owned(), |at| at.strftime("%A, %-d %B %Y").to_string())
}

/// Rows with a heading per day.
fn rows(rows: &[ListRow<'_>], prices: &Prices, before: Option<Timestamp>) -> Markup {
    let mut last = before.map(|before| day(Some(before)));
    let with_days: Vec<(Option<String>, &ListRow<'_>)> = rows
        .iter()
        .map(|row| {
            let day = day(row.summary.started);
            let new = last.replace(day.clone()) != Some(day.clone());
            (new.then_some(day), row)
        })
        .collect();
    html! {
        @for (day, one) in with_days {
            @if let Some(day) = day { li.day { h2 { (day) } } }
            (row(one, prices))
        }
    }
}

fn of_project(project: &Project<'_>, chosen: &UrlQuery, prices: &Prices) -> Markup {
    let all = chosen.without("by").with("project", Some(project.path)).at("/");
    html! {
        section.group {
            h2 title=(safe(project.path)) { a href=(all) { (safe(last_segment(project.path))) } }
            p.facts { span.path { (safe(project.path)) } }
            ol.rows { @for one in &project.rows { (row(one, prices)) } }
            @if project.sessions > project.rows.len() as u64 {
                a.rest href=(all) { "All " (format::number(project.sessions)) }
            }
        }
    }
}

/// One session.
pub fn row(row: &ListRow<'_>, prices: &Prices) -> Markup {
    let summary = row.summary;
    let session = &summary.session;
    let title = summary.title.as_deref().unwrap_or(present::UNTITLED);
    let project = session.facts.project.as_deref().unwrap_or_default();
    let used = summary.usage_in(row.scope);
    let cost = present::short_cost(summary.spending_in(row.scope), prices);
    let started = summary.started.map(Timestamp::as_millisecond);
    let live = session.state == SessionState::Live;
    html! {
        li.row.agent[row.sub_agent].live[live] id={ "s-" (session.id) }
            data-started=[started] data-day=(day(summary.started))
            data-order=(Activity::order(row.activity.as_ref())) {
            a href={ "/s/" (session.id) } {
                span.title {
                    @if live { span.pulse aria-hidden="true" {} span.visually-hidden { "live: " } }
                    @if row.sub_agent { span.dim { "↳ " } }
                    (safe(&format::first_line(title, 200)))
                }
                @if live { (now(row.activity.as_ref(), Timestamp::now())) }
                span.facts {
                    span.agent-name data-agent=(safe(&session.agent)) { (safe(&session.agent)) }
                    @if !project.is_empty() {
                        span.project title=(safe(project)) { (safe(last_segment(project))) }
                    }
                    @if let Some(model) = summary.models.first() { span.model { (safe(model)) } }
                    span { (format::count(summary.turns as usize, "turn")) }
                    @if let Some((ending, tone)) = ending(session.state, summary.last_turn) {
                        span class=(tone_class(tone)) { (ending) }
                    }
                    @if summary.errors > 0 {
                        span.tone-failed { (format::count(summary.errors as usize, "error")) }
                    }
                    @if row.findings > 0 {
                        span.tone-warning title="What went wrong: open the session" {
                            (format::count(row.findings as usize, "finding"))
                        }
                    }
                    @for tag in &summary.tags { span.tag { (safe(tag)) } }
                }
                span.figures {
                    @if let Some(started) = summary.started { (clock(started)) }
                    span.tokens title=(tokens_hint(used, row.scope)) { (format::token_sum(used.fresh(), used.cache_read)) }
                    span.cost { (cost) }
                }
            }
        }
    }
}

/// `Tokens: 1,729 · 12 in · 417 out · 1,300 cached`
fn tokens_hint(used: Usage, scope: UsageScope) -> String {
    let agents = match scope {
        UsageScope::Own => ", without sub-agents",
        UsageScope::WithAgents => "",
    };
    format!("Tokens{agents}: {}", present::usage_text(used))
}

/// What a session does now: `Waiting for you: rm -rf build/ · 2 min`.
pub fn now(activity: Option<&Activity>, at: Timestamp) -> Markup {
    let Some(activity) = activity else { return html! {} };
    let waiting = activity.tone() == Tone::Warning;
    html! {
        span.now.waiting[waiting] {
            @if let Some(label) = activity.label() {
                strong { (label) @if activity.what().is_some() { ": " } }
            }
            @if let Some(what) = activity.what() { (safe(what)) }
            @if let Some(duration) = activity.duration(at) {
                span.dim { @if activity.what().is_some() { " · " } @else { " for " } (duration) }
            }
        }
    }
}

fn clock(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (at.strftime("%H:%M")) } }
}

/// Suggestions for the command palette.
pub fn suggestions(list: &[ListRow<'_>]) -> Markup {
    html! {
        @for one in list {
            @let session = &one.summary.session;
            @let title = one.summary.title.as_deref().unwrap_or(present::UNTITLED);
            a href={ "/s/" (session.id) } {
                span.title { (safe(&format::first_line(title, 120))) }
                span.dim {
                    (safe(&session.agent)) " " (safe(last_segment(session.facts.project.as_deref().unwrap_or_default())))
                    @if let Some(at) = one.summary.started { " " (at.strftime("%-d %b %Y")) }
                }
            }
        }
    }
}
