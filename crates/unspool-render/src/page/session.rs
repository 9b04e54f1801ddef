//! One session: its head, an outline, and its turns in order.

use maud::{Markup, html};
use unspool_core::block::{Block, text_of};
use unspool_core::present::outline::Outline;
use unspool_core::present::{self, TurnView, format};
use unspool_core::price::Prices;
use unspool_core::summary::Summary;

use super::shell;
use crate::block::blocks;
use crate::text::safe;
use crate::turn::{turn, turn_id};

/// What the page shows.
pub struct Session<'a> {
    pub summary: &'a Summary,
    pub prices: &'a Prices,
    /// How many events of it were taken: what is told live goes on from there.
    pub seq: u64,
    /// The turns of the window.
    pub turns: &'a [TurnView],
    /// The number of the turn before the window, where there is one.
    pub older: Option<u32>,
    /// How to go on with it in its agent.
    pub resume: Option<String>,
}

pub fn session(page: &Session<'_>) -> Markup {
    let summary = page.summary;
    let id = summary.session.id.to_string();
    let title = summary.title.as_deref().unwrap_or(&summary.session.agent_session_id);
    let title = format::first_line(&safe(title), 120);
    let main = html! {
        div.session data-session=(id) data-seq=(page.seq) {
            nav.outline aria-label="Outline" { ol { @for view in page.turns { (outline_entry(view)) } } }
            article.transcript {
                (session_head(summary, page.prices))
                (actions(page))
                @if let Some(older) = page.older { (older_link(&id, older)) }
                div.turns { @for view in page.turns { (turn(view)) } }
                div.end aria-hidden="true" {}
            }
            button.news type="button" hidden { "0 new parts" }
        }
    };
    shell(&title, "session.js", main)
}

/// Title and facts.
pub fn session_head(summary: &Summary, prices: &Prices) -> Markup {
    let mut shown = present::session(summary, prices);
    let title = match shown.first() {
        Some(Block::Heading { spans, .. }) => text_of(spans),
        Some(_) | None => String::new(),
    };
    shown.retain(|block| !matches!(block, Block::Heading { .. }));
    html! {
        header.session-head id="session-head" {
            h1 { (safe(&title)) }
            (blocks(&shown))
        }
    }
}

fn actions(page: &Session<'_>) -> Markup {
    let id = page.summary.session.id;
    html! {
        div.actions role="toolbar" aria-label="Session" {
            button type="button" data-act="fold" { "Collapse all" }
            button type="button" data-act="unfold" { "Expand all" }
            button type="button" data-act="brief" aria-pressed="false" { "Hide intermediate work" }
            @if let Some(resume) = &page.resume {
                button type="button" data-copy=(resume) { "Copy resume command" }
            }
            a href={ "/api/sessions/" (id) } { "JSON" }
        }
    }
}

/// Leads to the turns before the window.
fn older_link(session: &str, older: u32) -> Markup {
    html! {
        a.older id="older" href={ "/s/" (session) "?before=" (older + 1) } data-before=(older + 1) {
            "Earlier turns"
        }
    }
}

/// A turn in the outline, with what one looks for in it.
pub fn outline_entry(view: &TurnView) -> Markup {
    let Outline { number, said, errors, edits, agents } = Outline::of(view);
    let marks = [
        (errors, "tone-failed", "✕", "error"),
        (edits, "tone-added", "±", "edit"),
        (agents, "tone-running", "⧈", "sub-agent call"),
    ];
    html! {
        li data-turn=(turn_id(view)) {
            a href={ "#" (turn_id(view)) } {
                span.number { (number) }
                span.said { (safe(&said)) }
            }
            @for (count, class, sign, noun) in marks {
                @if count > 0 {
                    span.mark.(class) title=(format::count(count, noun)) { (sign) (count) }
                }
            }
        }
    }
}

/// Earlier turns by themselves, for pages that load more.
pub fn stretch(session: &str, views: &[TurnView], older: Option<u32>) -> Markup {
    html! {
        @if let Some(older) = older { (older_link(session, older)) }
        ol.entries { @for view in views { (outline_entry(view)) } }
        @for view in views { (turn(view)) }
    }
}
