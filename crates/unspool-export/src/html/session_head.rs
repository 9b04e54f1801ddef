//! The head of a session, on its page and in an HTML export.

use maud::{Markup, html};
use unspool_model::context::ContextUse;
use unspool_model::note::PlacedNote;
use unspool_model::price::Prices;
use unspool_model::summary::Summary;
use unspool_view::block::{Block, text_of};
use unspool_view::present;
use unspool_view::present::burn_rate::BurnRate;
use unspool_view::present::context::{compactions_text, context_text};
use unspool_view::present::notes::head_notes;

use crate::html::block::blocks;
use crate::html::note::note;
use crate::html::text::safe;

/// What the head of a session says about the present, and its notes.
#[derive(Default)]
pub struct HeadFigures {
    /// All notes of the session; the head shows those that have no place in the transcript.
    pub notes: Vec<PlacedNote>,
    pub context: Option<ContextUse>,
    pub burn_rate: Option<BurnRate>,
}

/// Title and facts; the use of the context and the burn rate, if they are known.
pub fn session_head(summary: &Summary, prices: &Prices, figures: &HeadFigures) -> Markup {
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
            @if let Some(used) = &figures.context { (context_meter(used)) }
            @if let Some(rate) = &figures.burn_rate { p.burn-rate { (rate.text()) " in the last minutes" } }
            @for head_note in head_notes(&figures.notes) {
                div.head-note {
                    (note(&head_note.note))
                    @if let Some(remark) = &head_note.remark { p.dim { (remark) } }
                }
            }
        }
    }
}

/// The meter is beside its text, which says the same.
fn context_meter(used: &ContextUse) -> Markup {
    let texts = [context_text(used), compactions_text(used)];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    html! {
        p.context {
            @if let Some(percent) = used.percent() {
                meter min="0" max="100" value=(percent) aria-label="Context window in use" {
                    (percent) " %"
                }
            }
            span { (texts.join(" · ")) }
        }
    }
}
