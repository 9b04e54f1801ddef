//! The user's notes and bookmarks, as every surface shows them. They are joined in here: a turn or
//! part does not know its note.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use unspool_model::note::{NoteTarget, PlacedNote};

use super::{body, format};
use crate::block::{Block, Span, Tone};

/// A note at its target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NoteView {
    /// As it was typed; empty for a bookmark.
    pub text: String,
}

/// The sign of a note and of a bookmark.
pub const NOTE_GLYPH: &str = "✎";
pub const BOOKMARK_GLYPH: &str = "★";

impl NoteView {
    pub fn is_bookmark(&self) -> bool {
        self.text.is_empty()
    }

    pub fn glyph(&self) -> &'static str {
        if self.is_bookmark() { BOOKMARK_GLYPH } else { NOTE_GLYPH }
    }

    /// The text as it was typed, not as Markdown. Empty for a bookmark.
    pub fn blocks(&self) -> Vec<Block> {
        body::literal(&self.text)
    }
}

/// The notes of a session, by target.
#[derive(Clone, Default, Debug)]
pub struct NoteViews(HashMap<NoteTarget, NoteView>);

impl NoteViews {
    pub fn of(notes: &[PlacedNote]) -> NoteViews {
        NoteViews(notes.iter().map(|placed| (placed.note.target, view(placed))).collect())
    }

    pub(super) fn at(&self, target: NoteTarget) -> Option<NoteView> {
        self.0.get(&target).cloned()
    }
}

fn view(placed: &PlacedNote) -> NoteView {
    NoteView { text: placed.note.text.clone() }
}

/// A note that is shown at the head of its session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeadNote {
    pub note: NoteView,
    /// Why it is here, if it was written elsewhere.
    pub remark: Option<String>,
}

/// The notes at the head of a session: on the session as a whole, and those whose target is gone,
/// so that none is lost.
pub fn head_notes(notes: &[PlacedNote]) -> Vec<HeadNote> {
    let shown = notes.iter().filter(|placed| placed.turn.is_none());
    shown
        .map(|placed| {
            let remark = match placed.note.target {
                NoteTarget::Session => None,
                NoteTarget::Turn(_) => Some("on a turn that is no longer in the transcript"),
                NoteTarget::Part(_) => Some("on a part that is no longer in the transcript"),
            };
            HeadNote { note: view(placed), remark: remark.map(str::to_owned) }
        })
        .collect()
}

/// The same as blocks, for surfaces that paint the head of a session as blocks.
pub fn head_blocks(notes: &[PlacedNote]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for HeadNote { note, remark } in head_notes(notes) {
        let sign = Span::plain(note.glyph()).toned(Tone::Accent);
        let mut spans = vec![sign, Span::plain(format!(" {}", note.text)).toned(Tone::Accent)];
        spans.extend(remark.map(|remark| Span::plain(format!("  ({remark})")).dim()));
        blocks.push(Block::Paragraph { spans });
    }
    blocks
}

/// A line about a note for lists: its first words, or what a bookmark is on.
pub fn note_line(placed: &PlacedNote, length: usize) -> String {
    match (placed.note.is_bookmark(), placed.about.as_str()) {
        (true, "") => "bookmark".to_owned(),
        (true, about) => {
            let room = length.saturating_sub(BOOKMARK_GLYPH.len());
            format!("{BOOKMARK_GLYPH} {}", format::first_line(about, room))
        }
        (false, _) => format::first_line(&placed.note.text, length),
    }
}

/// Where a note is: `session`, `turn 3`, `turn 3, part`, `no longer there`.
pub fn note_place(placed: &PlacedNote) -> String {
    match (placed.note.target, placed.turn) {
        (NoteTarget::Session, _) => "session".to_owned(),
        (NoteTarget::Turn(_), Some(turn)) => format!("turn {turn}"),
        (NoteTarget::Part(_), Some(turn)) => format!("turn {turn}, part"),
        (NoteTarget::Turn(_) | NoteTarget::Part(_), None) => "no longer there".to_owned(),
    }
}
