//! Findings by rule: each with its figures and links to the parts that show it.

use maud::{Markup, html};
use unspool_export::html::dom;
use unspool_export::html::text::safe;
use unspool_model::id::SessionId;
use unspool_model::summary::Summary;
use unspool_view::finding::{Evidence, Rule};
use unspool_view::present::findings::{MAX_OF_RULE, PlacedFinding, cost, place, rate};
use unspool_view::present::{UNTITLED, format};

use crate::pages::filters::{FilterMenu, chips, form};
use crate::pages::shell::shell;
use crate::url_query::UrlQuery;

/// The data of the page over all sessions.
pub struct FindingsPage<'a> {
    pub findings: &'a [PlacedFinding<'a>],
    /// How many sessions were looked at.
    pub sessions: usize,
    /// There are older sessions that were not.
    pub is_cut: bool,
    pub rule: Option<Rule>,
    pub chosen: &'a UrlQuery,
    pub choices: &'a [FilterMenu],
}

/// The labels of the filter chips.
const LABELS: &[(&str, &str)] = &[
    ("agent", "agent"),
    ("project", "project"),
    ("since", ""),
    ("until", "until"),
    ("rule", "rule"),
];
/// Findings in the panel of a session.
const MAX_IN_PANEL: usize = 12;

pub fn findings(page: &FindingsPage<'_>) -> Markup {
    let main = html! {
        div.stats.findings {
            header.stats-head {
                h1 { "Findings" }
                (form("/findings", page.chosen, page.choices, &[]))
            }
            (chips("/findings", page.chosen, LABELS))
            p.dim role="status" {
                (format::count(page.findings.len(), "finding")) " in "
                @if page.is_cut { "the newest " }
                (format::count(page.sessions, "session")) ". "
                @if page.is_cut { "Choose a project or a time to look at older ones." }
            }
            @if page.findings.is_empty() {
                div.trouble {
                    h2 { "Nothing found" }
                    @if page.chosen.pairs().next().is_some() {
                        p { a href="/findings" { "Look at all sessions" } "." }
                    }
                }
            }
            @for rule in Rule::ALL {
                (of_rule(*rule, page.findings, page.rule.is_some(), page.chosen))
            }
            p.dim { "As JSON: " code { "unspool reflect --json" } "." }
        }
    };
    shell("Findings", "list.js", main)
}

/// The findings of one session, all of them.
pub fn of_session(summary: &Summary, findings: &[PlacedFinding<'_>]) -> Markup {
    let id = summary.session.id;
    let title = summary.title.as_deref().unwrap_or(UNTITLED);
    let title = format::first_line(&safe(title), 120);
    let main = html! {
        div.stats.findings {
            p.kicker { a href={ "/s/" (id) } { (title) } }
            h1 { "Findings" }
            p.dim role="status" { (format::count(findings.len(), "finding")) }
            @for rule in Rule::ALL { (of_rule(*rule, findings, true, &UrlQuery::default())) }
            p { a href="/findings" { "Findings of all sessions" } }
        }
    };
    shell(&format!("Findings: {title}"), "list.js", main)
}

fn of_rule(rule: Rule, findings: &[PlacedFinding<'_>], all: bool, chosen: &UrlQuery) -> Markup {
    let found: Vec<&PlacedFinding<'_>> =
        findings.iter().filter(|placed| placed.finding.rule == rule).collect();
    let shown = if all { found.len() } else { MAX_OF_RULE };
    html! {
        @if !found.is_empty() {
            section.calls id=(rule.name()) {
                h2 { (rule.label()) " " span.dim { (found.len()) } }
                ol { @for placed in found.iter().take(shown) { (one(placed)) } }
                @if found.len() > shown {
                    p { a href=(chosen.clone().with("rule", Some(rule.name())).at("/findings")) {
                        "All " (found.len())
                    } }
                }
                p.dim { "What may help: " (rule.hint()) "." }
            }
        }
    }
}

fn one(placed: &PlacedFinding<'_>) -> Markup {
    let finding = placed.finding;
    let cost = cost(&finding.cost);
    let inner = html! {
        span.took.tone-warning { (format::number(finding.count)) "×" }
        span.what title=(safe(&finding.title)) { (safe(&finding.title)) }
        span.dim {
            (rate(finding))
            @if placed.sessions > 1 { " in " (placed.sessions) " sessions" }
            @if !cost.is_empty() { " · " (cost) }
            @if let Some((_, title, evidence)) = &placed.place {
                " · "
                @if let Some(title) = title { (safe(&format::first_line(title, 60))) ", " }
                (place(evidence)) ": " (safe(&format::first_line(&evidence.what, 100)))
            }
        }
    };
    html! {
        li {
            @match &placed.place {
                Some((session, _, evidence)) => a href=(address(*session, evidence)) { (inner) },
                None => div { (inner) },
            }
        }
    }
}

/// The panel beside a transcript.
pub fn panel(session: SessionId, findings: &[PlacedFinding<'_>]) -> Markup {
    let more = findings.len().saturating_sub(MAX_IN_PANEL);
    html! {
        @if !findings.is_empty() {
            details open {
                summary { "Findings " span.dim { (findings.len()) } }
                ul {
                    @for placed in findings.iter().take(MAX_IN_PANEL) {
                        @if let Some((session, _, evidence)) = &placed.place {
                            li {
                                a href=(address(*session, evidence)) title=(safe(&placed.finding.title)) {
                                    span.number { (format::number(placed.finding.count)) "×" }
                                    span.said { (safe(&format::first_line(&placed.finding.title, 120))) }
                                }
                            }
                        }
                    }
                }
                p.dim {
                    a href={ "/s/" (session) "/findings" } {
                        @if more > 0 { "All " (findings.len()) ", with their cost" } @else { "What they cost" }
                    }
                }
            }
        }
    }
}

/// Where a finding is to be seen: a part of the transcript, or the prompts of the session.
fn address(session: SessionId, evidence: &Evidence) -> String {
    let Evidence { turn, part, .. } = evidence;
    match part {
        Some(part) => format!("/s/{session}?turn={turn}&part={part}#{}", dom::part(part)),
        None => format!("/s/{session}?turn={turn}"),
    }
}
