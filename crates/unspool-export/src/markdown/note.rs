//! The user's notes and bookmarks as Markdown.

use unspool_view::present::notes::{HeadNote, NoteView};

use super::inline::escape;
use super::{block_quote, blocks, join_blocks};

/// A note as a quote that says whose words these are.
pub fn note(view: &NoteView) -> String {
    match view.is_bookmark() {
        true => format!("{} *Bookmark*", view.glyph()),
        false => block_quote(&format!("**{} Note**\n\n{}", view.glyph(), blocks(&view.blocks()))),
    }
}

/// The notes at the head of a session.
pub fn head_notes(notes: &[HeadNote]) -> String {
    join_blocks(notes.iter().map(|HeadNote { note: view, remark }| {
        let remark = remark.as_ref().map(|remark| format!("<sub>{}</sub>", escape(remark)));
        join_blocks([note(view)].into_iter().chain(remark))
    }))
}
