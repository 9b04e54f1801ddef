//! What a search found: by session, each hit with the words around it, leading to its very place.

use std::ops::Range;

use jiff::Timestamp;
use maud::{Markup, html};
use unspool_core::present::format;

use super::shell_with;
use crate::text::safe;

/// One hit.
pub struct Found<'a> {
    pub session: String,
    pub agent: &'a str,
    pub project: Option<&'a str>,
    pub title: Option<&'a str>,
    /// None for a title.
    pub turn: Option<u32>,
    pub part: Option<String>,
    pub kind: &'a str,
    pub tool: Option<&'a str>,
    pub at: Option<Timestamp>,
    pub text: &'a str,
    /// Where in the text the words are.
    pub ranges: &'a [Range<usize>],
}

/// What the page shows.
pub struct Search<'a> {
    pub query: &'a str,
    pub found: Vec<Found<'a>>,
    /// What should be known of how it was found.
    pub note: Option<&'a str>,
}

pub fn search(page: &Search<'_>) -> Markup {
    let mut sessions: Vec<(&str, Vec<&Found<'_>>)> = Vec::new();
    for hit in &page.found {
        match sessions.iter_mut().find(|(id, _)| *id == hit.session) {
            Some((_, hits)) => hits.push(hit),
            None => sessions.push((&hit.session, vec![hit])),
        }
    }
    let main = html! {
        div.sessions.results {
            h1.visually-hidden { "Search" }
            @if sessions.is_empty() {
                div.trouble {
                    h1 { "Nothing has that" }
                    p { "Words are looked for as a whole; " code { "begin*" } ", "
                        code { "\"an exact phrase\"" } " and " code { "-not" } " are understood." }
                }
            }
            @if let Some(note) = page.note { p.dim { (note) } }
            @for (_, hits) in &sessions { (group(hits)) }
        }
    };
    shell_with(page.query, "list.js", page.query, main)
}

fn group(hits: &[&Found<'_>]) -> Markup {
    let Some(first) = hits.first() else { return Markup::default() };
    let project = first.project.unwrap_or_default();
    let project = project.rsplit(['/', '\\']).next().unwrap_or(project);
    html! {
        section.group {
            h2 {
                a href={ "/s/" (first.session) } {
                    (safe(&format::first_line(first.title.unwrap_or("Without a title"), 160)))
                }
            }
            p.facts { span.agent-name { (safe(first.agent)) } span { (safe(project)) } }
            ol.rows { @for hit in hits { (row(hit)) } }
        }
    }
}

fn row(hit: &Found<'_>) -> Markup {
    let place = match (hit.turn, &hit.part) {
        (Some(turn), Some(part)) => format!("/s/{}?turn={turn}#p-{part}", hit.session),
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
