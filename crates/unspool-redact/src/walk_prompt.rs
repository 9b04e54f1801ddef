//! Redacts prompts: of an imported step, whose pieces say where they stand in it, and those that an
//! agent recorded, whose pieces say what stands in them.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use unspool_model::prompt::{
    Piece, PieceKind, PieceSpan, PieceText, PromptCall, PromptMessage, RecordedPrompts,
};
use unspool_model::session::{MessageRecord, MessageRecords, PromptPiece, Provenance, SnapshotUse};

use super::report::{Location, Owner};
use super::scan::ScanContext;
use super::{Redactor, Shift};

/// A text without its secrets, and what was replaced in each round.
type RedactedText = (Arc<str>, Vec<Vec<Shift>>);

impl Redactor<'_> {
    /// The ids of the records that the messages of a turn begin with.
    pub(super) fn message_records(&mut self, records: &mut MessageRecords) {
        let MessageRecords { user, reply } = records;
        for record in [user, reply].into_iter().flatten() {
            let MessageRecord { at: _, id, parent } = &mut **record;
            self.id("uuid", id);
            self.optional_id("parentUuid", parent);
        }
    }

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

impl Redactor<'_> {
    /// Redacts the prompts of a session. Each text is scanned once, however many messages have it.
    pub(super) fn recorded_prompts(&mut self, prompts: &mut RecordedPrompts) {
        self.location = Location { turn: None, owner: Owner::Session, field: String::new() };
        let RecordedPrompts { tree, texts } = prompts;
        let mut done: FxHashMap<(PieceText, u64), RedactedText> = FxHashMap::default();
        for message in tree.messages_mut() {
            let PromptMessage { digest: _, role: _, verified: _, pieces } = message;
            for piece in pieces {
                self.optional("prompt.label", &mut piece.label);
                for PieceSpan { kind: _, start: _, end: _, label } in &mut piece.spans {
                    self.optional("prompt.label", label);
                }
                self.piece(piece, texts, &mut done);
            }
        }
        for PromptCall {
            request: _,
            at: _,
            model,
            head: _,
            base: _,
            keep: _,
            tail: _,
            list: _,
            gaps: _,
        } in tree.calls_mut()
        {
            if let Some(model) = model {
                self.shared("model", model, ScanContext::default());
            }
        }
        if !self.collecting {
            texts.extend(done.into_iter().map(|(place, (text, _))| (place, text)));
        }
    }

    fn piece(
        &mut self,
        piece: &mut Piece,
        texts: &FxHashMap<(PieceText, u64), Arc<str>>,
        done: &mut FxHashMap<(PieceText, u64), RedactedText>,
    ) {
        // The digest stays that of what was sent: it names the text.
        let Piece { kind, at: _, text, chars, digest, label: _, spans } = piece;
        let place = (text.clone(), *digest);
        let Some(sent) = texts.get(&place) else { return };
        if !done.contains_key(&place) {
            if !self.collecting {
                "prompt".clone_into(&mut self.location.field);
            }
            let mut rounds = Vec::new();
            let replaced = if *kind == PieceKind::ToolSchema {
                self.replaced_json(sent, "prompt")
            } else {
                let mut add = |edits: &[Shift]| rounds.push(edits.to_vec());
                self.replaced(sent, ScanContext::default(), &mut add)
            };
            let redacted = replaced.map_or_else(|| sent.clone(), Arc::from);
            done.insert(place.clone(), (redacted, rounds));
        }
        let Some((redacted, rounds)) = done.get(&place).filter(|_| !self.collecting) else {
            return;
        };
        if redacted == sent {
            return;
        }
        *chars = u32::try_from(redacted.chars().count()).unwrap_or(u32::MAX);
        shift_spans(spans, sent, redacted, rounds);
    }
}

/// Moves spans with the text that they mark.
fn shift_spans(spans: &mut Vec<PieceSpan>, sent: &str, redacted: &str, rounds: &[Vec<Shift>]) {
    let mut places: Vec<Option<(usize, usize)>> =
        spans.iter().map(|span| byte_range(sent, Some((span.start, span.end)))).collect();
    for edits in rounds {
        places.iter_mut().flatten().for_each(|(from, to)| {
            *from = shifted(edits, *from, false);
            *to = shifted(edits, *to, true);
        });
    }
    let mut last = 0;
    for (span, place) in spans.iter_mut().zip(places) {
        let chars = |at: usize| redacted.get(..at).map(|before| before.chars().count());
        let place = place.and_then(|(from, to)| Some((chars(from)?, chars(to)?)));
        // Two spans that one replacement joined: the first has it.
        let (from, to) = place.map_or((last, last), |(from, to)| (from.max(last), to.max(last)));
        (span.start, span.end) = (from as u32, to as u32);
        last = to;
    }
    spans.retain(|span| span.start < span.end);
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
