//! All sessions, newest first.

use jiff::Timestamp;
use maud::{Markup, html};
use unspool_core::present::{self, format};
use unspool_core::price::Prices;
use unspool_core::summary::Summary;

use super::shell;
use crate::text::safe;

/// A session in the list.
pub struct Row<'a> {
    pub summary: &'a Summary,
    pub sub_agent: bool,
}

/// What the page shows.
pub struct Sessions<'a> {
    pub rows: Vec<Row<'a>>,
    pub prices: &'a Prices,
}

pub fn sessions(page: &Sessions<'_>) -> Markup {
    let main = html! {
        div.sessions {
            h1.visually-hidden { "Sessions" }
            @if page.rows.is_empty() { (welcome()) } @else {
                ol.rows { (rows(&page.rows, page.prices)) }
            }
        }
    };
    shell("Sessions", "list.js", main)
}

fn welcome() -> Markup {
    html! {
        div.trouble {
            h1 { "Nothing here yet" }
            p {
                "Sessions of Claude Code, Codex, OpenCode, Copilot and Gemini appear here by themselves while they run. "
                code { "unspool doctor" } " says where they are looked for."
            }
            p.dim { "To see what it looks like, run " code { "unspool serve --demo" } "." }
        }
    }
}

/// Rows, with a heading before the first one of each day.
pub fn rows(rows: &[Row<'_>], prices: &Prices) -> Markup {
    let day =
        |row: &Row<'_>| row.summary.started.map(|at| at.strftime("%A, %-d %B %Y").to_string());
    let days: Vec<Option<String>> = rows.iter().map(day).collect();
    html! {
        @for (at, row) in rows.iter().enumerate() {
            @if at == 0 || days[at] != days[at - 1] {
                li.day { (days[at].as_deref().unwrap_or("Without a time")) }
            }
            (one(row, prices))
        }
    }
}

fn one(row: &Row<'_>, prices: &Prices) -> Markup {
    let summary = row.summary;
    let session = &summary.session;
    let title = summary.title.as_deref().unwrap_or(&session.agent_session_id);
    let project = session.facts.project.as_deref().unwrap_or_default();
    let cost = present::short_cost(&summary.spending_with_agents, prices);
    html! {
        li.row.agent[row.sub_agent] id={ "s-" (session.id) } {
            a href={ "/s/" (session.id) } {
                span.title {
                    @if row.sub_agent { span.dim { "↳ " } }
                    (safe(&format::first_line(title, 200)))
                }
                span.facts {
                    span.agent-name data-agent=(safe(&session.agent)) { (safe(&session.agent)) }
                    span.project title=(safe(project)) { (safe(end_of(project))) }
                    @if let Some(model) = summary.models.first() { span { (safe(model)) } }
                    span { (format::count(summary.turns as usize, "turn")) }
                    @if summary.errors > 0 {
                        span.tone-failed { (format::count(summary.errors as usize, "error")) }
                    }
                    @for tag in &summary.tags { span.tag { (safe(tag)) } }
                }
                span.figures {
                    @if let Some(started) = summary.started { (clock(started)) }
                    span.tokens { (format::number(summary.usage_with_agents.total())) }
                    span.cost { (cost) }
                }
            }
        }
    }
}

fn clock(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (at.strftime("%H:%M")) } }
}

fn end_of(path: &str) -> &str {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path)
}
