//! The head of a session, on its page and in an HTML export.

use maud::{Markup, html};
use unspool_model::price::Prices;
use unspool_model::summary::Summary;
use unspool_view::block::{Block, text_of};
use unspool_view::present;

use crate::html::block::blocks;
use crate::html::text::safe;

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
