//! Redacts the prompt of a step, whose pieces say where they stand in it.

use unspool_model::session::{PromptPiece, Provenance, SnapshotUse};

use super::scan::ScanContext;
use super::{Redactor, Shift};

impl Redactor<'_> {
    /// Redacts the prompt and its pieces, and recomputes the span of each piece.
    pub(super) fn provenance(&mut self, provenance: &mut Provenance) {
        let Provenance { pieces, final_prompt, snapshots } = provenance;
        for SnapshotUse { kind, sha256: _ } in snapshots {
            self.string("snapshot", kind);
        }
        let whole = final_prompt.clone().unwrap_or_default();
        let places: Vec<Option<(usize, usize)>> =
            pieces.iter().map(|piece| byte_range(&whole, piece.span)).collect();
        let same: Vec<bool> = pieces
            .iter()
            .zip(&places)
            .map(|(piece, place)| {
                place.and_then(|(from, to)| whole.get(from..to)) == Some(piece.value.as_str())
            })
            .collect();
        self.each("prompt", pieces, |this, field, PromptPiece { kind, value, span: _ }| {
            this.string(&format!("{field}.kind"), kind);
            this.string(field, value);
        });
        let Some(prompt) = final_prompt else { return };
        "final_prompt".clone_into(&mut self.location.field);
        let mut places = places;
        let replaced = self.replaced(prompt, ScanContext::default(), &mut |edits| {
            places.iter_mut().flatten().for_each(|(from, to)| {
                *from = shifted(edits, *from, false);
                *to = shifted(edits, *to, true);
            });
        });
        let Some(replaced) = replaced.filter(|_| !self.collecting) else { return };
        for ((piece, place), same) in pieces.iter_mut().zip(places).zip(same) {
            let Some((from, to)) = place else { continue };
            let Some(value) = replaced.get(from..to) else { continue };
            let before = replaced.get(..from).unwrap_or_default().chars().count();
            piece.span = Some((before as u32, (before + value.chars().count()) as u32));
            if same {
                value.clone_into(&mut piece.value);
            }
        }
        *prompt = replaced;
    }
}

/// Converts a span in characters to a byte range.
fn byte_range(text: &str, span: Option<(u32, u32)>) -> Option<(usize, usize)> {
    let (from, to) = span?;
    let place = |at: u32| {
        let ends = std::iter::once(text.len());
        text.char_indices().map(|(at, _)| at).chain(ends).nth(at as usize)
    };
    Some((place(from)?, place(to)?)).filter(|(from, to)| from <= to)
}

/// Maps an offset through a round of edits. An offset inside an edit moves to its start or end.
fn shifted(edits: &[Shift], at: usize, to_end: bool) -> usize {
    let mut shifted = at;
    for Shift { start, end, length } in edits {
        if *end <= at {
            shifted = shifted + length - (end - start);
        } else if *start < at {
            let begin = shifted - (at - start);
            return if to_end { begin + length } else { begin };
        } else {
            break;
        }
    }
    shifted
}
