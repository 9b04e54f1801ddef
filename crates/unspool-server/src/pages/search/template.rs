//! Search results, grouped by session. Each hit shows its snippet and links to its part.

use std::ops::Range;

use jiff::Timestamp;
use maud::{Markup, html};
use unspool_export::html::dom;
use unspool_export::html::text::safe;
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
    /// A remark on how the hits were found.
    pub note: Option<&'a str>,
    pub chosen: &'a UrlQuery,
    pub choices: &'a [FilterMenu],
}

const LABELS: &[(&str, &str)] =
    &[("agent", "agent"), ("project", "project"), ("kind", "kind"), ("since", "")];

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
    let narrowed = LABELS.iter().any(|(name, _)| page.chosen.get(name).is_some());
    html! {
        p.sum role="status" {
            span {
                (format::count(page.found.len(), "hit")) " in " (format::count(sessions.len(), "session"))
                @if page.more { ", and more: refine the search to see them" }
            }
        }
        @if let Some(note) = page.note { p.dim { (note) } }
        @if sessions.is_empty() { (nothing(page.query, narrowed)) }
        @for (_, hits) in &sessions { (group(hits)) }
    }
}

/// No hits: suggests other searches.
fn nothing(query: &str, narrowed: bool) -> Markup {
    let words: Vec<&str> = query.split_whitespace().filter(|word| !word.starts_with('-')).collect();
    let plain = |word: &str| word.chars().all(char::is_alphanumeric);
    let again = |query: &str| UrlQuery::default().with("q", Some(query)).at("/");
    let begun: Vec<String> = words
        .iter()
        .map(|word| if plain(word) { format!("{word}*") } else { (*word).to_owned() })
        .collect();
    let begun = begun.join(" ");
    html! {
        div.trouble {
            h2 { "No matches" }
            ul {
                @if narrowed {
                    li { "Search without filters: " a href=(again(query)) { (safe(query)) } }
                }
                @if begun != query && !begun.is_empty() {
                    li { "Words with this prefix: " a href=(again(&begun)) { (safe(&begun)) } }
                }
                @if words.len() > 1 {
                    li {
                        "A single word: "
                        @for word in &words { a href=(again(word)) { (safe(word)) } " " }
                    }
                }
                li { code { "\"an exact phrase\"" } ", " code { "begin*" } " and " code { "-not" } " are supported." }
            }
        }
    }
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
