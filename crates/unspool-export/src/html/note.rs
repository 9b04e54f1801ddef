//! Paints the user's notes and bookmarks.

use maud::{Markup, html};
use unspool_view::present::notes::NoteView;

use crate::html::block::blocks;

/// A note below its target, or the mark of a bookmark.
pub fn note(view: &NoteView) -> Markup {
    html! {
        @if view.is_bookmark() {
            span.bookmark role="img" aria-label="Bookmark" title="Bookmark" { (view.glyph()) }
        } @else {
            div.user-note role="note" aria-label="Note" {
                span.note-sign aria-hidden="true" { (view.glyph()) }
                div.note-text { (blocks(&view.blocks())) }
            }
        }
    }
}
