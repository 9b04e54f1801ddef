//! The ThoughtFlow page: the runs of a session as a picture, with links and downloads.

use maud::{Markup, html};
use unspool_export::html::flow::{FlowRun, picture};
use unspool_export::html::text::safe;
use unspool_model::summary::Summary;
use unspool_view::present::{UNTITLED, format};

use crate::pages::shell::shell;

/// Some runs of a session.
pub struct FlowPage<'a> {
    pub summary: &'a Summary,
    pub runs: &'a [FlowRun],
    /// There are earlier steps.
    pub earlier: bool,
    /// Where the next page starts: a turn, and how many of its steps were shown.
    pub later: Option<(u32, usize)>,
}

/// The legend of the colours.
const LEGEND: [(&str, &str); 8] = [
    ("is-user", "user"),
    ("is-model", "model call"),
    ("is-said", "reply"),
    ("is-tool", "tool call"),
    ("is-output", "output"),
    ("is-error", "error"),
    ("is-prompt", "prompt"),
    ("is-other", "everything else"),
];

pub fn thoughtflow(page: &FlowPage<'_>) -> Markup {
    let session = &page.summary.session;
    let id = session.id.to_string();
    let title = page.summary.title.as_deref().unwrap_or(UNTITLED);
    let title = format::first_line(&safe(title), 120);
    let empty = page.runs.iter().all(|run| run.conversation.steps.is_empty());
    let main = html! {
        div.flow-page {
            header.flow-top {
                h1 { a href={ "/s/" (id) } { (title) } }
                div.actions role="toolbar" aria-label="Diagram" {
                    button type="button" data-zoom="out" title="Zoom out (-)" hidden { "−" }
                    button type="button" data-zoom="fit" title="Fit width (0)" hidden { "Fit" }
                    button type="button" data-zoom="in" title="Zoom in (+)" hidden { "+" }
                    a href={ "/s/" (id) } { "Transcript" }
                    a href={ "/thoughtflow/" (id) ".json" } download={ (id) ".json" } { "ThoughtFlow (JSON)" }
                    a href={ "/thoughtflow/" (id) ".d2" } download={ (id) ".d2" } { "Diagram (D2)" }
                }
                ul.flow-legend aria-label="Colours" {
                    @for (class, name) in LEGEND { li { span.dot.(class) aria-hidden="true" {} (name) } }
                }
            }
            @if page.earlier { p.flow-way { a href={ "/s/" (id) "/thoughtflow" } { "From the beginning" } } }
            @if empty {
                p.flow-nothing { "This session has no steps." }
            } @else {
                div.flow-view tabindex="0" role="region" aria-label="Diagram of the runs" { (picture(&id, page.runs)) }
            }
            @if let Some((turn, step)) = page.later {
                p.flow-way {
                    a href={ "/s/" (id) "/thoughtflow?turn=" (turn) "&step=" (step) } { "Later steps" }
                }
            }
        }
    };
    shell(&title, "flow.js", main)
}
