//! Pieces of prompts, for all decoders that report what a model call was sent.

use std::sync::Arc;

use unspool_model::event::EventKind;
use unspool_model::id::sha256;
use unspool_model::json::Json;
use unspool_model::prompt::{
    CallTimes, Piece, PieceKind, PieceSpan, PieceText, PromptRecord, PromptTimes,
};

use super::Emitter;

/// The kind of a content that a prompt refers to.
const SNAPSHOT_KIND: &str = "prompt-text";

/// A piece whose text no part has: it is kept once, by its digest.
pub(super) fn kept(
    emit: &mut Emitter<'_>,
    kind: PieceKind,
    at: impl Into<String>,
    text: &str,
) -> Piece {
    let sha256 = sha256(text.as_bytes());
    let piece = Piece::new(kind, at.into(), PieceText::Kept(sha256.clone()), text);
    let content = Json::string(text);
    emit.push(EventKind::SnapshotTaken { kind: SNAPSHOT_KIND.to_owned(), sha256, content });
    piece
}

/// A piece that is no text: only its length is known.
pub(super) fn binary(at: impl Into<String>, data: &str) -> Piece {
    Piece::new(PieceKind::File, at.into(), PieceText::Binary, data)
}

/// Marks where a text stands in a piece. Texts that overlap what is marked already are left out.
/// True if it was found.
pub(super) fn mark(
    piece: &mut Piece,
    whole: &str,
    text: &str,
    kind: PieceKind,
    label: Option<String>,
) -> bool {
    if text.is_empty() {
        return false;
    }
    let mut from = 0;
    while let Some(found) = whole[from..].find(text) {
        let at = from + found;
        let chars = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let start = chars(&whole[..at]);
        let end = start.saturating_add(chars(text));
        let is_free = |span: &PieceSpan| span.end <= start || end <= span.start;
        if piece.spans.iter().all(is_free) {
            piece.spans.push(PieceSpan { kind, start, end, label });
            piece.spans.sort_unstable_by_key(|span| span.start);
            return true;
        }
        from = at + text.len();
    }
    false
}

/// Reports when a call was made and answered, unless nothing is known of it.
pub(super) fn timed(emit: &mut Emitter<'_>, request: Arc<str>, times: CallTimes) {
    if times != CallTimes::default() {
        let record = PromptRecord::Timed(PromptTimes { request, times });
        emit.push(EventKind::PromptRecorded(Box::new(record)));
    }
}
