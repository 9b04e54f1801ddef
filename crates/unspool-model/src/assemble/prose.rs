//! The text rule. A named delta extends its block, and only the end of that block or of its step
//! closes it. An unnamed delta extends the open part of the same kind; another kind, a tool call or
//! a tool result closes that part. Two blocks are never merged, and empty parts are never created.
//!
//! `delta` extends prose. This file finds the block of a text, and completes and closes it.

mod delta;

use crate::change::{PartPatch, SkipReason};
use crate::event::{ProseDetail, ProseKind};
use crate::id::digest;
use crate::part::{Body, Kind, Reasoning, Text};
use crate::provenance::{Feed, Name};
use crate::rank::PartField;

use super::fold::RunFold;
use super::part::PartIndex;
use super::runs::Words;
use super::{Assembler, Head};

/// A complete text, as far as it is kept.
struct Complete {
    digest: u64,
    /// Of a text of the log.
    words: Option<Words>,
    /// Of a text of a stream: it may be a run.
    text: Option<String>,
}

impl Complete {
    fn new(feed: Feed, text: &str) -> Complete {
        Complete {
            digest: digest(text.as_bytes()),
            words: (feed == Feed::Log).then(|| Words::of(text)),
            text: (feed == Feed::Stream).then(|| text.to_owned()),
        }
    }
}

impl Assembler {
    /// True if a stronger feed has this block as another kind: hooks send as text what the log
    /// records as an error.
    fn has_stronger_kind(&mut self, head: &Head, turn: usize, block: Option<&Name>) -> bool {
        let Some(at) = block.and_then(|name| self.find_part(turn, name)) else { return false };
        let part = self.part(at);
        !part.is_prose() && part.origin.ranks.holder(PartField::Body) > Some(head.feed)
    }

    /// The block name for prose of this kind. If the name already belongs to a part of another
    /// kind, that is a contradiction, and the prose gets a block of its own.
    fn block_of(
        &mut self,
        head: &Head,
        turn: usize,
        prose_kind: ProseKind,
        block: Option<Name>,
    ) -> Option<Name> {
        let name = block.filter(|name| self.names_part(name))?;
        let other =
            self.find_part(turn, &name).is_some_and(|at| self.part(at).kind != kind_of(prose_kind));
        if !other {
            return Some(name);
        }
        self.count(SkipReason::Contradiction);
        let apart = digest(format!("{:?} {prose_kind:?} {}", head.feed, name.id_text()).as_bytes());
        Some(Name::ByContent(apart, 0))
    }

    fn find_prose(
        &mut self,
        head: &Head,
        turn: usize,
        prose_kind: ProseKind,
        block: Option<&Name>,
    ) -> Option<PartIndex> {
        match block {
            Some(name) => {
                self.close_nameless(head);
                self.find_part(turn, name)
            }
            None => self.nameless_of(head, prose_kind),
        }
    }

    /// The open unnamed part, if prose of this kind extends it. Closes it otherwise.
    fn nameless_of(&mut self, head: &Head, prose_kind: ProseKind) -> Option<PartIndex> {
        let at = self.tracks[head.feed.index()].nameless?;
        if self.part(at).kind == kind_of(prose_kind) {
            return Some(at);
        }
        self.close_nameless(head);
        None
    }

    pub(super) fn say_prose(
        &mut self,
        head: &Head,
        prose_kind: ProseKind,
        block: Option<Name>,
        text: String,
        detail: ProseDetail,
    ) {
        let turn = self.turn_for(head);
        if self.has_stronger_kind(head, turn, block.as_ref()) {
            return;
        }
        let block = self.block_of(head, turn, prose_kind, block);
        // Complete text without a name completes the open part (R-X-05).
        let found = self.find_prose(head, turn, prose_kind, block.as_ref());
        if block.is_none() {
            self.tracks[head.feed.index()].nameless = None;
        }
        self.take_whitespace(head, turn, prose_kind, block.as_ref());
        let at = match found {
            Some(found) => self.arrive(head, turn, found),
            None if text.trim().is_empty() && !detail.redacted => return,
            None => {
                let complete = Complete::new(head.feed, &text);
                let at = self.open_prose(head, turn, prose_kind, block, text, detail);
                self.finish_prose(head, at, complete, PartPatch::default());
                return;
            }
        };
        let mut patch = self.seen_by(head, at);
        self.claim_detail(head, at, detail, &mut patch);
        let part = self.part(at);
        if !part.origin.ranks.claim(PartField::Body, head.feed) {
            return self.emit_part_patch(at, patch);
        }
        let held = part.prose.as_ref().map(|prose| prose.text.as_str());
        // An empty complete text does not delete accumulated text.
        let text = if text.trim().is_empty() { held.unwrap_or_default().to_owned() } else { text };
        let complete = Complete::new(head.feed, &text);
        if held != Some(text.as_str()) && part.digest != complete.digest && !text.is_empty() {
            patch.text = Some(text);
        }
        self.finish_prose(head, at, complete, patch);
    }

    fn claim_detail(
        &mut self,
        head: &Head,
        at: PartIndex,
        detail: ProseDetail,
        patch: &mut PartPatch,
    ) {
        let ranks = &mut self.part(at).origin.ranks;
        patch.signature = ranks.take(PartField::Signature, head.feed, detail.signature);
        patch.signer = detail.signer.filter(|_| patch.signature.is_some());
        patch.duration_ms = ranks.take(PartField::Duration, head.feed, detail.duration_ms);
        let citations = (!detail.citations.is_empty()).then_some(detail.citations);
        patch.citations = ranks.take(PartField::Citations, head.feed, citations);
        patch.redacted = detail.redacted.then_some(true);
    }

    fn open_prose(
        &mut self,
        head: &Head,
        turn: usize,
        prose_kind: ProseKind,
        block: Option<Name>,
        text: String,
        detail: ProseDetail,
    ) -> PartIndex {
        let body = match prose_kind {
            ProseKind::Text => {
                Body::Text(Text { text, open: true, citations: detail.citations.clone() })
            }
            ProseKind::Reasoning => Body::Reasoning(Reasoning {
                text,
                open: true,
                redacted: detail.redacted,
                signature: detail.signature.clone(),
                signer: detail.signer.clone(),
                duration_ms: detail.duration_ms,
            }),
        };
        let at = self.open_part(head, turn, block, body);
        // The body has the details already; this only claims their ranks.
        self.claim_detail(head, at, detail, &mut PartPatch::default());
        if prose_kind == ProseKind::Reasoning && !self.turns[turn].has_reasoning {
            self.turns[turn].has_reasoning = true;
            self.settle_thinking(turn);
        }
        at
    }

    /// Completes prose. From here on its content hash can match feeds without ids.
    fn finish_prose(
        &mut self,
        head: &Head,
        at: PartIndex,
        complete: Complete,
        mut patch: PartPatch,
    ) {
        let Complete { digest: content, words, text } = complete;
        let part = self.part(at);
        let ended = part.prose.take();
        part.words = words.unwrap_or(part.words);
        if let Some(text) = text.filter(|_| part.is_run()) {
            let replaced = patch.text.is_some();
            if replaced {
                // The whole text is shown again, until it is compared.
                (part.origin.hidden, part.origin.cut) = (None, Vec::new());
            }
            part.run = Some(Box::new(RunFold { text, compared_at: 0 }));
            self.note_run_end(at, replaced);
        }
        let part = self.part(at);
        part.source = Some(head.evidence.source);
        for track in &mut self.tracks {
            track.open.retain(|open| *open != at);
        }
        let part = self.part(at);
        part.origin.unfinished = false;
        patch.ended = part.origin.ranks.take(PartField::Ended, head.feed, head.at);
        if part.digest == 0 || ended.is_some_and(|prose| prose.open) {
            patch.open = Some(false);
        }
        let unchanged = part.digest == content;
        part.digest = content;
        let prose_kind =
            if self.part(at).kind == Kind::Text { ProseKind::Text } else { ProseKind::Reasoning };
        // Parts named by content need no occurrence count, and runs are compared word by word.
        if !unchanged && !self.part(at).is_named_by_content() && !self.part(at).is_run() {
            self.merge_by_content(head.feed, at, hash_for_prose_kind(prose_kind, content));
        }
        if !self.part(at).gone {
            self.emit_part_patch(at, patch);
        }
    }

    /// Hooks lack the ids that log and stream share. Texts with the same content hash and
    /// occurrence number in the turn are one part: the one from hooks is merged into the other.
    pub(super) fn merge_by_content(&mut self, feed: Feed, at: PartIndex, content: u64) {
        let name = self.turns[at.0].count_occurrence(feed, at.1, content);
        match self.turns[at.0].lookups.parts.get(&name).copied() {
            None => {
                self.turns[at.0].set_local(name, at.1);
            }
            Some(other) if other == at.1 => {}
            Some(other) => {
                let (live, kept) = if feed == Feed::Hooks { (at.1, other) } else { (other, at.1) };
                let parts = &self.turns[at.0].parts;
                // If any single feed has both, they are two parts.
                if !parts[live].origin.at.overlaps(parts[kept].origin.at) {
                    self.merge_parts(at.0, live, kept);
                }
                self.turns[at.0].set_local(name, kept);
            }
        }
    }

    pub(super) fn end_block(&mut self, head: &Head, name: &Name) {
        let turn = self.turn_for(head);
        for prose_kind in [ProseKind::Text, ProseKind::Reasoning] {
            self.take_whitespace(head, turn, prose_kind, Some(name));
        }
        if let Some(at) = self.find_part(turn, name) {
            self.close_at(head, at);
            self.tracks[head.feed.index()].open.retain(|open| *open != at);
        }
    }

    /// Closes prose owned by this feed, with the text received so far.
    fn close_at(&mut self, head: &Head, at: PartIndex) {
        if let Some(prose) = &self.part(at).prose
            && prose.owner == head.feed
        {
            let (complete, source) = (Complete::new(head.feed, &prose.text), prose.source);
            self.finish_prose(head, at, complete, PartPatch::default());
            // The closing event may come from another source than the text.
            self.part(at).source = Some(source);
        }
    }

    pub(super) fn close_nameless(&mut self, head: &Head) {
        if let Some(at) = self.tracks[head.feed.index()].nameless.take() {
            self.close_at(head, at);
        }
    }

    /// Closes all open prose of the feed, at a step boundary. In the order of the feed, since
    /// closing numbers equal texts, and a stored turn does not record which block opened first.
    pub(super) fn close_prose(&mut self, head: &Head) {
        self.close_nameless(head);
        let mut open = std::mem::take(&mut self.tracks[head.feed.index()].open);
        open.sort_by_key(|(turn, part)| {
            let turn = &self.turns[*turn];
            (turn.origin.at.of(head.feed), turn.parts[*part].origin.at.of(head.feed))
        });
        for at in open {
            self.close_at(head, at);
        }
    }
}

/// The content hash of prose, for feeds without ids.
pub fn prose_content_hash(prose_kind: ProseKind, text: &str) -> u64 {
    hash_for_prose_kind(prose_kind, digest(text.as_bytes()))
}

/// Rotates the hash for reasoning, so that text and reasoning with equal content do not match.
fn hash_for_prose_kind(prose_kind: ProseKind, content: u64) -> u64 {
    match prose_kind {
        ProseKind::Text => content,
        ProseKind::Reasoning => content.rotate_left(17),
    }
}

fn kind_of(prose_kind: ProseKind) -> Kind {
    match prose_kind {
        ProseKind::Text => Kind::Text,
        ProseKind::Reasoning => Kind::Reasoning,
    }
}
