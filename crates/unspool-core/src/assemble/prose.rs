//! The text rule. Where a source names its blocks, the name decides: deltas go to the block they
//! name, and only that block's end, or the end of its step, closes it. For nameless deltas the
//! same kind grows the open part, and another kind, a tool call or a tool result closes it. Two
//! blocks are never merged, and empty parts are never made.

use crate::change::{Change, Growing, Oddity, PartPatch};
use crate::event::{SaidDetail, Voice};
use crate::id::digest;
use crate::part::{Body, Kind, Reasoning, Text};
use crate::telling::{Field, Name, Telling};

use super::fold::Prose;
use super::part::At;
use super::{Assembler, Head};

impl Assembler {
    pub(super) fn grow_prose(
        &mut self,
        head: &Head,
        voice: Voice,
        block: Option<Name>,
        text: String,
    ) {
        if text.is_empty() {
            return;
        }
        let turn = self.turn_for(head);
        let found = match &block {
            Some(name) => {
                self.close_nameless(head);
                self.find_part(turn, name)
            }
            None => self.nameless_of(head, voice),
        };
        let placed = found.is_some_and(|at| self.part(at).origin.at.of(head.telling).is_some());
        if let Some(at) = found.filter(|_| placed) {
            return self.grow_at(head, at, text);
        }
        // White space may turn out to be all there is, and then there is no part.
        let blank = &mut self.tracks[head.telling.index()].blank;
        if text.trim().is_empty() {
            blank.entry(block).or_default().push_str(&text);
            return;
        }
        let text = match blank.remove(&block) {
            Some(start) => start + &text,
            None => text,
        };
        if let Some(found) = found {
            let at = self.arrive(head, turn, found);
            return self.grow_at(head, at, text);
        }
        let named = block.is_some();
        let at = self.open_prose(head, turn, voice, block, text.clone(), SaidDetail::default());
        self.part(at).prose = Some(Box::new(Prose {
            owner: head.telling,
            text,
            seen: [head.key].into_iter().collect(),
            open: true,
        }));
        let track = &mut self.tracks[head.telling.index()];
        if named {
            track.open.push(at);
        } else {
            track.nameless = Some(at);
        }
    }

    /// The open nameless part, if prose of this kind may grow it. Closes it otherwise.
    fn nameless_of(&mut self, head: &Head, voice: Voice) -> Option<At> {
        let at = self.tracks[head.telling.index()].nameless?;
        if self.part(at).kind == kind_of(voice) {
            return Some(at);
        }
        self.close_nameless(head);
        None
    }

    fn grow_at(&mut self, head: &Head, at: At, text: String) {
        let part = self.part(at);
        let (id, holder) = (part.id, part.origin.ranks.holder(Field::Body));
        let Some(prose) = &mut part.prose else {
            // Ended. A weaker telling repeats what is known; the same one contradicts itself.
            if holder == Some(head.telling) {
                self.count(Oddity::Duplicate);
            }
            return;
        };
        if prose.owner == head.telling {
            if prose.seen.insert(head.key) {
                prose.text.push_str(&text);
                self.out.push(Change::PartGrew { part: id, field: Growing::Text, text });
            } else {
                self.count(Oddity::Duplicate);
            }
        } else if holder < Some(head.telling) {
            prose.owner = head.telling;
            prose.text.clone_from(&text);
            part.origin.ranks.claim(Field::Body, head.telling);
            self.tell(at, PartPatch { text: Some(text), ..PartPatch::default() });
        }
    }

    pub(super) fn say_prose(
        &mut self,
        head: &Head,
        voice: Voice,
        block: Option<Name>,
        text: String,
        detail: SaidDetail,
    ) {
        let turn = self.turn_for(head);
        let found = match &block {
            Some(name) => {
                self.close_nameless(head);
                self.find_part(turn, name)
            }
            // Whole prose without a name completes what grew before it (R-X-05).
            None => self.nameless_of(head, voice),
        };
        self.tracks[head.telling.index()].blank.remove(&block);
        let at = match found {
            Some(found) => self.arrive(head, turn, found),
            None if text.trim().is_empty() && !detail.redacted => return,
            None => {
                let content = digest(text.as_bytes());
                let at = self.open_prose(head, turn, voice, block, text, detail);
                self.finish_prose(head, at, content, PartPatch::default());
                return;
            }
        };
        if self.part(at).kind != kind_of(voice) {
            return self.count(Oddity::Contradiction);
        }
        let mut patch = self.seen_by(head, at);
        self.tell_detail(head, at, detail, &mut patch);
        let part = self.part(at);
        if !part.origin.ranks.claim(Field::Body, head.telling) {
            return self.tell(at, patch);
        }
        let content = digest(text.as_bytes());
        let held = part.prose.as_ref().map(|prose| prose.text.as_str());
        if held != Some(text.as_str()) && part.digest != content && !text.trim().is_empty() {
            patch.text = Some(text);
        }
        self.finish_prose(head, at, content, patch);
    }

    fn tell_detail(&mut self, head: &Head, at: At, detail: SaidDetail, patch: &mut PartPatch) {
        let ranks = &mut self.part(at).origin.ranks;
        patch.signature = ranks.take(Field::Signature, head.telling, detail.signature);
        patch.duration_ms = ranks.take(Field::Duration, head.telling, detail.duration_ms);
        let citations = (!detail.citations.is_empty()).then_some(detail.citations);
        patch.citations = ranks.take(Field::Citations, head.telling, citations);
        patch.redacted = detail.redacted.then_some(true);
    }

    fn open_prose(
        &mut self,
        head: &Head,
        turn: usize,
        voice: Voice,
        block: Option<Name>,
        text: String,
        detail: SaidDetail,
    ) -> At {
        let body = match voice {
            Voice::Text => {
                Body::Text(Text { text, open: true, citations: detail.citations.clone() })
            }
            Voice::Reasoning => Body::Reasoning(Reasoning {
                text,
                open: true,
                redacted: detail.redacted,
                signature: detail.signature.clone(),
                duration_ms: detail.duration_ms,
            }),
        };
        let at = self.open_part(head, turn, block, body);
        // The body carries the details already; this only notes who told them.
        self.tell_detail(head, at, detail, &mut PartPatch::default());
        if voice == Voice::Reasoning && !self.turns[turn].has_reasoning {
            self.turns[turn].has_reasoning = true;
            self.settle_thinking(turn);
        }
        at
    }

    /// Ends prose: it is whole, and its content can be recognised in tellings without ids.
    fn finish_prose(&mut self, head: &Head, at: At, content: u64, mut patch: PartPatch) {
        let part = self.part(at);
        let ended = part.prose.take();
        part.origin.unfinished = false;
        patch.ended = part.origin.ranks.take(Field::Ended, head.telling, head.at);
        if part.digest == 0 || ended.is_some_and(|prose| prose.open) {
            patch.open = Some(false);
        }
        let known = part.digest == content;
        part.digest = content;
        self.tell(at, patch);
        if !known && self.part(at).kind == Kind::Text {
            self.recognise(head.telling, at, content);
        }
    }

    /// Hooks tell text without the ids that log and stream share. Text with the same content at
    /// the same count in the turn is one: the nameless one is dissolved into the other.
    pub(super) fn recognise(&mut self, telling: Telling, at: At, content: u64) {
        let nth = self.turns[at.0].count_alike(telling, content);
        let name = Name::Alike(content, nth);
        match self.turns[at.0].local.get(&name).copied() {
            None => {
                self.turns[at.0].local.insert(name, at.1);
            }
            Some(other) if other == at.1 => {}
            Some(other) => {
                let (live, kept) =
                    if telling == Telling::Hooks { (at.1, other) } else { (other, at.1) };
                self.merge_parts(at.0, live, kept);
                self.turns[at.0].local.insert(name, kept);
            }
        }
    }

    pub(super) fn end_block(&mut self, head: &Head, name: &Name) {
        let turn = self.turn_for(head);
        self.tracks[head.telling.index()].blank.remove(&Some(name.clone()));
        if let Some(at) = self.find_part(turn, name) {
            self.close_at(head, at);
            self.tracks[head.telling.index()].open.retain(|open| *open != at);
        }
    }

    /// Closes prose of this telling with what it has.
    fn close_at(&mut self, head: &Head, at: At) {
        if let Some(prose) = &self.part(at).prose
            && prose.owner == head.telling
        {
            let content = digest(prose.text.as_bytes());
            self.finish_prose(head, at, content, PartPatch::default());
        }
    }

    pub(super) fn close_nameless(&mut self, head: &Head) {
        let track = &mut self.tracks[head.telling.index()];
        track.blank.remove(&None);
        if let Some(at) = track.nameless.take() {
            self.close_at(head, at);
        }
    }

    /// A step boundary always closes.
    pub(super) fn close_prose(&mut self, head: &Head) {
        self.close_nameless(head);
        for at in std::mem::take(&mut self.tracks[head.telling.index()].open) {
            self.close_at(head, at);
        }
    }
}

fn kind_of(voice: Voice) -> Kind {
    match voice {
        Voice::Text => Kind::Text,
        Voice::Reasoning => Kind::Reasoning,
    }
}
