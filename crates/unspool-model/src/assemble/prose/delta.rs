//! Deltas of prose: which part a delta extends, and leading white space, which waits for the first
//! word because an empty part is never created.

use crate::assemble::fold::Prose;
use crate::assemble::part::PartIndex;
use crate::assemble::{Assembler, Head};
use crate::change::{Change, DeltaField, PartPatch};
use crate::event::{ProseDetail, ProseKind};
use crate::id::digest;
use crate::provenance::{Feed, Name};
use crate::rank::PartField;
use crate::session::PendingWhitespace;

impl Assembler {
    pub(in crate::assemble) fn grow_prose(
        &mut self,
        head: &Head,
        prose_kind: ProseKind,
        block: Option<Name>,
        text: String,
    ) {
        if text.is_empty() {
            return;
        }
        let turn = self.turn_for(head);
        if self.has_stronger_kind(head, turn, block.as_ref()) {
            return;
        }
        let block = self.block_of(head, turn, prose_kind, block);
        // A delta for a block that has ended counts as unnamed (R-X-07).
        let block = block.filter(|name| !self.has_ended(head, turn, name));
        let found = self.find_prose(head, turn, prose_kind, block.as_ref());
        if let Some(at) = found.filter(|at| self.is_placed(head, *at)) {
            return self.grow_at(head, at, text);
        }
        // Hold leading white space back: if nothing else follows, there is no part.
        if text.trim().is_empty() {
            return self.hold_whitespace(head, turn, prose_kind, block, &text);
        }
        let text = self.take_whitespace(head, turn, prose_kind, block.as_ref()) + &text;
        if let Some(found) = found {
            let at = self.arrive(head, turn, found);
            return self.grow_at(head, at, text);
        }
        let named = block.is_some();
        let at =
            self.open_prose(head, turn, prose_kind, block, text.clone(), ProseDetail::default());
        // A turn that is over shows no open prose.
        let open = !self.is_over(turn);
        let part = self.part(at);
        part.origin.unfinished = !open;
        part.prose =
            Some(Box::new(Prose { owner: head.feed, source: head.evidence.source, text, open }));
        if !open {
            self.emit_part_patch(at, PartPatch { open: Some(false), ..PartPatch::default() });
        }
        let track = &mut self.tracks[head.feed.index()];
        if named {
            track.open.push(at);
        } else {
            track.nameless = Some(at);
        }
    }

    fn is_placed(&mut self, head: &Head, at: PartIndex) -> bool {
        self.part(at).origin.at.of(head.feed).is_some()
    }

    /// True if this very source has completed the block. A weaker feed, or another capture of the
    /// same stream, only repeats it.
    fn has_ended(&mut self, head: &Head, turn: usize, name: &Name) -> bool {
        let Some(at) = self.find_part(turn, name) else { return false };
        let part = self.part(at);
        part.prose.is_none()
            && part.origin.ranks.holder(PartField::Body) == Some(head.feed)
            && part.source == Some(head.evidence.source)
    }

    fn grow_at(&mut self, head: &Head, at: PartIndex, text: String) {
        let part = self.part(at);
        let (id, holder) = (part.id, part.origin.ranks.holder(PartField::Body));
        let evidence = head.evidence;
        let Some(prose) = &mut part.prose else { return self.regrow(head, at, text) };
        if prose.owner == head.feed {
            if prose.source == evidence.source {
                prose.text.push_str(&text);
                self.emit(Change::PartDelta { part: id, field: DeltaField::Text, text });
                self.note_run_growth(at);
            } else if head.feed == Feed::Log && prose.source < evidence.source {
                // A rewritten log repeats the block from its beginning.
                prose.source = evidence.source;
                prose.text.clone_from(&text);
                let (text, evidence) = (Some(text), vec![evidence]);
                self.emit_part_patch(at, PartPatch { text, evidence, ..PartPatch::default() });
            }
        } else if holder < Some(head.feed) {
            prose.owner = head.feed;
            prose.source = evidence.source;
            prose.text.clone_from(&text);
            part.origin.ranks.claim(PartField::Body, head.feed);
            self.tracks[head.feed.index()].open.push(at);
            self.emit_part_patch(at, PartPatch { text: Some(text), ..PartPatch::default() });
        }
    }

    /// Reopens prose that was closed early and continues in a rewritten log.
    fn regrow(&mut self, head: &Head, at: PartIndex, text: String) {
        let open = !self.is_over(at.0);
        let part = self.part(at);
        let source = head.evidence.source;
        let anew = head.feed == Feed::Log
            && part.origin.ranks.holder(PartField::Body) == Some(Feed::Log)
            && part.source.is_some_and(|previous| previous < source);
        if !anew || part.digest == digest(text.as_bytes()) {
            return;
        }
        part.origin.unfinished = !open;
        part.prose = Some(Box::new(Prose { owner: head.feed, source, text: text.clone(), open }));
        self.tracks[head.feed.index()].open.push(at);
        let (text, evidence) = (Some(text), vec![head.evidence]);
        self.emit_part_patch(
            at,
            PartPatch { text, evidence, open: Some(open), ..PartPatch::default() },
        );
    }

    // ── Leading white space ─────────────────────────────────────────────────────────────────

    fn hold_whitespace(
        &mut self,
        head: &Head,
        turn: usize,
        prose_kind: ProseKind,
        block: Option<Name>,
        text: &str,
    ) {
        let held = self.take_whitespace(head, turn, prose_kind, block.as_ref()) + text;
        let feed = head.feed;
        self.turns[turn].origin.pending_whitespace.push(PendingWhitespace {
            feed,
            block,
            prose_kind,
            text: held,
        });
        self.emit_turn_origin(turn);
    }

    /// Takes the white space held back for a block. White space of unnamed prose of another kind
    /// is dropped.
    pub(super) fn take_whitespace(
        &mut self,
        head: &Head,
        turn: usize,
        prose_kind: ProseKind,
        block: Option<&Name>,
    ) -> String {
        let held = &mut self.turns[turn].origin.pending_whitespace;
        let mine =
            |held: &PendingWhitespace| held.feed == head.feed && held.block.as_ref() == block;
        let Some(at) = held.iter().position(mine) else { return String::new() };
        let held = held.remove(at);
        self.emit_turn_origin(turn);
        if held.prose_kind == prose_kind { held.text } else { String::new() }
    }
}
