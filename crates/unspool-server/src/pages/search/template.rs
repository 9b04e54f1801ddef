//! Search results, grouped by session. Each hit shows its snippet and links to its part.

use std::ops::Range;

use jiff::Timestamp;
use maud::{Markup, html};
use unspool_export::html::dom;
use unspool_export::html::text::safe;
use unspool_query::search::{Reading, Suggestion};
use unspool_view::present::format;

use crate::pages::filters::{FilterMenu, chips, form, last_segment};
use crate::pages::shell::shell_with;
use crate::url_query::UrlQuery;

/// One hit.
pub struct HitRow<'a> {
    pub session: String,
    pub agent: &'a str,
    pub project: Option<&'a str>,
    pub title: Option<&'a str>,
    /// None for a hit in the title.
    pub turn: Option<u32>,
    pub part: Option<String>,
    pub kind: &'a str,
    pub tool: Option<&'a str>,
    /// The state of a call that did not simply complete.
    pub state: Option<&'a str>,
    pub at: Option<Timestamp>,
    pub text: &'a str,
    /// Byte ranges of the matches in `text`.
    pub ranges: &'a [Range<usize>],
}

/// The data of the page.
pub struct SearchPage<'a> {
    pub query: &'a str,
    pub found: Vec<HitRow<'a>>,
    /// There may be more hits.
    pub more: bool,
    /// How the search was understood, and other searches.
    pub reading: &'a Reading,
    /// A remark on how the hits were found.
    pub note: Option<&'a str>,
    pub chosen: &'a UrlQuery,
    pub choices: &'a [FilterMenu],
}

const LABELS: &[(&str, &str)] = &[
    ("agent", "agent"),
    ("project", "project"),
    ("kind", "kind"),
    ("tool", "tool"),
    ("since", ""),
];

pub fn search(page: &SearchPage<'_>) -> Markup {
    let main = html! {
        div.sessions.results data-list data-query=(page.chosen.text()) {
            h1.visually-hidden { "Search" }
            div.bar { (form("/", page.chosen, page.choices, &[])) }
            (chips("/", page.chosen, LABELS))
            div.found { (found(page)) }
        }
    };
    shell_with(page.query, "list.js", page.query, main)
}

/// The hits as a fragment, for search while the user types.
pub fn found(page: &SearchPage<'_>) -> Markup {
    let mut sessions: Vec<(&str, Vec<&HitRow<'_>>)> = Vec::new();
    for hit in &page.found {
        match sessions.iter_mut().find(|(id, _)| *id == hit.session) {
            Some((_, hits)) => hits.push(hit),
            None => sessions.push((&hit.session, vec![hit])),
        }
    }
    html! {
        @if sessions.is_empty() {
            (nothing(page))
        } @else {
            p.sum role="status" {
                span {
                    (format::count(page.found.len(), "hit")) " in " (format::count(sessions.len(), "session"))
                    @if page.more { "; there are more: add a word to narrow the search" }
                }
            }
            p.understood {
                (safe(&page.reading.understood))
                @for other in page.reading.suggestions.iter().take(1) { " " (link(page, other)) }
            }
            @if let Some(note) = page.note { p.dim { (note) } }
        }
        @for (_, hits) in &sessions { (group(hits)) }
    }
}

/// No hits: one sentence, and other searches.
fn nothing(page: &SearchPage<'_>) -> Markup {
    html! {
        div.trouble role="status" {
            h2 { (safe(&page.reading.understood)) }
            @if page.reading.suggestions.is_empty() {
                p {
                    @if page.reading.texts.is_empty() { "Change the filters, or type a word." }
                    @else { "Try another word or a part of it." }
                }
            } @else {
                ul { @for other in &page.reading.suggestions { li { (link(page, other)) } } }
            }
        }
    }
}

fn link(page: &SearchPage<'_>, other: &Suggestion) -> Markup {
    let kept = if other.without_filters { UrlQuery::default() } else { page.chosen.clone() };
    let address = kept.with("q", Some(&other.query)).at("/");
    html! { a href=(address) { (safe(&other.label)) } }
}

fn group(hits: &[&HitRow<'_>]) -> Markup {
    let Some(first) = hits.first() else { return Markup::default() };
    let project = last_segment(first.project.unwrap_or_default());
    html! {
        section.group {
            h2 {
                a href={ "/s/" (first.session) } {
                    (safe(&format::first_line(first.title.unwrap_or("Untitled"), 160)))
                }
            }
            p.facts { span.agent-name { (safe(first.agent)) } span { (safe(project)) } }
            ol.rows { @for hit in hits { (row(hit)) } }
        }
    }
}

fn row(hit: &HitRow<'_>) -> Markup {
    let place = match (hit.turn, &hit.part) {
        (Some(turn), Some(part)) => {
            format!("/s/{}?turn={turn}&part={part}#{}", hit.session, dom::part(part))
        }
        (None, Some(part)) => format!("/s/{}?part={part}#{}", hit.session, dom::part(part)),
        (Some(turn), None) => format!("/s/{}?turn={turn}", hit.session),
        (None, _) => format!("/s/{}", hit.session),
    };
    html! {
        li.row.hit-row {
            a href=(place) {
                span.snippet { (marked(hit.text, hit.ranges)) }
                span.facts {
                    span { (safe(hit.kind)) }
                    @if let Some(tool) = hit.tool { span { (safe(tool)) } }
                    @if let Some(state) = hit.state { span.tone-warning { (safe(state)) } }
                    @if let Some(turn) = hit.turn { span { "turn " (turn) } }
                    @if let Some(at) = hit.at {
                        time datetime=(at) { (at.strftime("%Y-%m-%d %H:%M")) }
                    }
                }
            }
        }
    }
}

fn marked(text: &str, ranges: &[Range<usize>]) -> Markup {
    let mut at = 0;
    let mut pieces: Vec<(&str, bool)> = Vec::new();
    for range in ranges {
        pieces.extend(text.get(at..range.start).map(|before| (before, false)));
        pieces.extend(text.get(range.clone()).map(|found| (found, true)));
        at = range.end;
    }
    pieces.extend(text.get(at..).map(|rest| (rest, false)));
    html! {
        @for (piece, found) in pieces {
            @if found { mark { (safe(piece)) } } @else { (safe(piece)) }
        }
    }
}
