//! Parts, independent of their kind: opening, naming, placing and patching them.

use crate::change::{Change, PartPatch, SkipReason};
use crate::id::{PartId, StepId, digest};
use crate::part::{Body, Notice, Part};
use crate::provenance::{Feed, Name, Origin};
use crate::rank::PartField;
use crate::session::ReservedPlace;
use crate::transcript::patch_part;

use super::feed_order::FeedOrder;
use super::fold::{PartFold, TurnFold, id_of};
use super::order::spine_place;
use super::runs::Words;
use super::{Assembler, Head};

/// The index of a part: its turn, and its position in the turn's list.
pub(super) type PartIndex = (usize, usize);

impl Assembler {
    /// Adds a part that one event describes completely: a notice, a file, a compaction. A repeat
    /// under the same name replaces the body in place.
    pub(super) fn upsert_part(&mut self, head: &Head, name: Option<Name>, body: Body) {
        if !body.kind().is_plain() {
            return self.count(SkipReason::Contradiction);
        }
        let turn = self.turn_for(head);
        self.close_nameless(head);
        let content = body_digest(&body);
        let explains = explains(&body);
        let mut name = name.filter(|name| self.names_part(name));
        let mut found = name.as_ref().and_then(|name| self.find_part(turn, name));
        // If the name belongs to prose, a call or its agents, keep both parts.
        if found.is_some_and(|at| {
            let part = self.part(at);
            part.is_prose() || part.tool.is_some() || part.agents.is_some()
        }) {
            self.count(SkipReason::Contradiction);
            (name, found) = (None, None);
        }
        let at = match found {
            Some(found) => self.arrive(head, turn, found),
            None => {
                let said = if let Body::Error(error) = &body {
                    Some(digest(error.text.as_bytes()))
                } else {
                    None
                };
                let words = said_words(head.feed, &body);
                let at = self.open_part(head, turn, name, body);
                let part = self.part(at);
                (part.digest, part.explains, part.words) = (content, explains, words);
                // Hooks send errors as text.
                if let Some(said) = said {
                    self.merge_by_content(head.feed, at, said);
                    self.emit_origin(at);
                }
                if explains {
                    self.settle(turn);
                }
                return;
            }
        };
        let mut patch = self.seen_by(head, at);
        let part = self.part(at);
        // A stronger feed may correct the kind.
        if part.origin.ranks.claim(PartField::Body, head.feed) && part.digest != content {
            part.digest = content;
            part.kind = body.kind();
            part.explains = explains;
            part.words = said_words(head.feed, &body);
            patch.body = Some(body);
        }
        self.emit_part_patch(at, patch);
    }

    /// True if the name can belong to a plain part. Names of turns, steps, calls and agents cannot.
    pub(super) fn names_part(&mut self, name: &Name) -> bool {
        let may = match name {
            Name::Block(..) | Name::Record(_) | Name::ByContent(..) | Name::ContentFragment(..) => {
                true
            }
            Name::Preamble
            | Name::Session
            | Name::Nth(..)
            | Name::Call(_)
            | Name::AgentsOf(_)
            | Name::Agent(_)
            | Name::Message(_)
            | Name::Prompt(_)
            | Name::Ending => false,
        };
        if !may {
            self.count(SkipReason::Contradiction);
        }
        may
    }

    /// The part with this name.
    pub(super) fn find_part(&self, turn: usize, name: &Name) -> Option<PartIndex> {
        if name.is_local() {
            return self.turns[turn].lookups.parts.get(name).map(|part| (turn, *part));
        }
        // A released turn has no parts in memory.
        self.index.parts.get(name).filter(|at| !self.turns[at.0].stored)
    }

    /// The event's feed, now in `turn`, reaches an existing part: the part gets its position in
    /// this feed. If it belongs to another turn, the two turns are merged, or the stronger feed
    /// decides which of them has it.
    pub(super) fn arrive(&mut self, head: &Head, turn: usize, found: PartIndex) -> PartIndex {
        let shift = self.turns[turn].parts.len();
        let joined = self.join_turns(turn, found.0, head.feed);
        let at = if joined == found.0 { found } else { (joined, shift + found.1) };
        let mut at = self.remaining(at);
        let from = at.0;
        if self.part(at).origin.at.of(head.feed).is_none() {
            if from != turn && self.peek(at).origin.at.strongest() > Some(head.feed) {
                self.leave_part(head, turn, at);
                return at;
            }
            if from != turn {
                at = self.move_part(at, turn);
            }
            let names = self.part(at).origin.names.clone();
            let position = self.next_position(at.0, head, &names);
            self.part(at).origin.at.set(head.feed, position);
            self.arrange_parts(at.0);
            let patch = self.first_seen_by(head, at);
            self.emit_part_patch(at, patch);
            self.settle_hidden(at);
            if from != at.0 {
                self.settle_move(from, at);
                at = self.remaining(at);
            }
        }
        at
    }

    /// The part itself, or the one that it was merged into: its names lead there.
    pub(super) fn remaining(&self, at: PartIndex) -> PartIndex {
        let part = self.peek(at);
        let name = part.origin.names.first().filter(|_| part.gone);
        name.and_then(|name| self.find_part(at.0, name)).unwrap_or(at)
    }

    /// The feed's next position, or the one reserved for one of these names.
    pub(super) fn next_position(&mut self, turn: usize, head: &Head, names: &[Name]) -> u32 {
        let kept = &mut self.turns[turn].origin.reserved_places;
        let mine = |kept: &ReservedPlace| kept.feed == head.feed && names.contains(&kept.block);
        if let Some(at) = kept.iter().position(mine) {
            let position = kept.remove(at).position;
            self.emit_turn_origin(turn);
            return position;
        }
        let placed = &mut self.turns[turn].placed[head.feed.index()];
        *placed += 1;
        *placed - 1
    }

    /// Reserves a place for a block that begins without content. Parts that follow come after it.
    pub(super) fn reserve_place(&mut self, head: &Head, block: Name) {
        let turn = self.turn_for(head);
        if !self.names_part(&block) {
            return;
        }
        let feed = head.feed;
        let placed = self.find_part(turn, &block).is_some_and(|at| {
            let origin = &self.peek(at).origin;
            origin.at.of(feed).is_some() || origin.elsewhere.contains(&feed)
        });
        let mine = |kept: &ReservedPlace| kept.feed == feed && kept.block == block;
        if placed || self.turns[turn].origin.reserved_places.iter().any(mine) {
            return;
        }
        let position = self.next_position(turn, head, &[]);
        self.turns[turn].origin.reserved_places.push(ReservedPlace { feed, block, position });
        self.emit_turn_origin(turn);
    }

    /// Opens a part at its reserved place, or at the end of the feed.
    pub(super) fn open_part(
        &mut self,
        head: &Head,
        turn: usize,
        name: Option<Name>,
        body: Body,
    ) -> PartIndex {
        let position = self.next_position(turn, head, name.as_slice());
        let name = name.unwrap_or(Name::Nth(head.feed, position));
        let mut origin = Origin { names: vec![name.clone()], ..Origin::default() };
        origin.at.set(head.feed, position);
        // Tools are ranked field by field.
        if let Body::Tool(tool) = &body {
            if !tool.name.is_empty() {
                origin.ranks.claim(PartField::Name, head.feed);
            }
        } else {
            origin.ranks.claim(PartField::Body, head.feed);
        }
        let step = self.step_of(head, turn);
        let at = self.insert_part(head, turn, name, origin, step, body);
        if self.turns[turn].only_feed().is_none() {
            self.arrange_parts(turn);
        }
        at
    }

    /// Inserts a part with the given origin.
    pub(super) fn insert_part(
        &mut self,
        head: &Head,
        turn: usize,
        name: Name,
        mut origin: Origin,
        step: Option<StepId>,
        body: Body,
    ) -> PartIndex {
        let step = origin.ranks.take(PartField::Step, head.feed, step);
        let started = origin.ranks.take(PartField::Started, head.feed, head.at);
        let position = origin.at.of(head.feed).unwrap_or_default();
        let mut id = PartId(id_of(self.session, self.turns[turn].id, &name));
        // Two parts with the same name in the source still get two ids.
        if self.find_part(turn, &name).is_some_and(|other| self.part(other).id == id) {
            let apart = Name::Nth(head.feed, position);
            id = PartId(id_of(self.session, self.turns[turn].id, &apart));
            origin.names = vec![apart];
        }
        let fold = PartFold {
            id,
            kind: body.kind(),
            place: spine_place(position),
            step,
            origin: origin.clone(),
            gone: false,
            noted: false,
            digest: 0,
            explains: false,
            source: None,
            words: Default::default(),
            run: None,
            beside: None,
            aliases: Vec::new(),
            prose: None,
            tool: None,
            agents: None,
        };
        let part = Part {
            id,
            place: fold.place,
            step,
            started,
            ended: None,
            evidence: vec![head.evidence],
            origin,
            body,
        };
        let at = (turn, self.turns[turn].parts.len());
        self.turns[turn].parts.push(fold);
        self.register(at, name);
        self.emit(Change::PartOpened { turn: self.turns[turn].id, part: Box::new(part) });
        self.end_empty(turn);
        at
    }

    pub(super) fn register(&mut self, at: PartIndex, name: Name) {
        // A new name may change what the part is a fragment of, or whose call it is.
        self.part(at);
        if name.is_local() {
            self.turns[at.0].set_local(name, at.1);
        } else {
            self.index.parts.insert(&name, at);
        }
    }

    /// Adds a name to a part.
    pub(super) fn name_part(&mut self, at: PartIndex, name: Name) {
        self.register(at, name.clone());
        let names = &mut self.part(at).origin.names;
        if !names.contains(&name) {
            names.push(name);
            names.sort();
            // A part with a global name drops its local names.
            if !names[0].is_local() {
                names.retain(|name| !name.is_local());
            }
            self.rename_part(at.0, at.1);
        }
    }

    pub(super) fn rename_part(&mut self, turn: usize, part: usize) {
        let fold = &self.turns[turn].parts[part];
        let Some(strongest) = fold.origin.names.iter().min() else { return };
        let (from, to) = (fold.id, PartId(id_of(self.session, self.turns[turn].id, strongest)));
        if from != to && !fold.gone {
            self.turns[turn].parts[part].id = to;
            self.emit(Change::PartRenamed { part: from, to });
        }
    }

    /// Reorders the parts of a turn by their positions in all feeds.
    pub(super) fn arrange_parts(&mut self, turn: usize) {
        self.recount();
        let TurnFold { parts, order, .. } = &mut self.turns[turn];
        // Not kept for a turn with a single feed, which needs no order.
        let order = order.get_or_insert_with(|| {
            let mut order = Box::<FeedOrder<StepId>>::default();
            (0..).zip(parts.iter()).for_each(|(at, part)| order.set(at, part.item()));
            order
        });
        for (part, place) in order.arrange() {
            let at = (turn, part);
            if self.peek(at).place != place {
                self.part(at).place = place;
                self.emit_part_patch(at, PartPatch { place: Some(place), ..PartPatch::default() });
                self.place_agents(at);
            }
        }
    }

    /// A patch for a part that this feed reaches for the first time: sets its step and start,
    /// which later events of the feed do not change.
    fn first_seen_by(&mut self, head: &Head, at: PartIndex) -> PartPatch {
        let step = self.step_of(head, at.0);
        let part = self.part(at);
        let step = part.origin.ranks.take(PartField::Step, head.feed, step);
        let step = step.filter(|step| part.step != Some(*step));
        part.step = step.or(part.step);
        PartPatch { step, ..self.seen_by(head, at) }
    }

    /// A patch that adds this record as evidence. The start time is that of the strongest feed's
    /// first record.
    pub(super) fn seen_by(&mut self, head: &Head, at: PartIndex) -> PartPatch {
        let ranks = &mut self.part(at).origin.ranks;
        let first = ranks.holder(PartField::Started) < Some(head.feed);
        let started = ranks.take(PartField::Started, head.feed, head.at.filter(|_| first));
        PartPatch { evidence: vec![head.evidence], started, ..PartPatch::default() }
    }

    pub(super) fn emit_part_patch(&mut self, at: PartIndex, mut patch: PartPatch) {
        let fold = &self.turns[at.0].parts[at.1];
        if fold.gone || patch.is_empty() {
            return;
        }
        let part = fold.id;
        // One event makes at most one change per part.
        match self.emitted.get(&part).and_then(|at| self.out.get_mut(*at)) {
            Some(Change::PartOpened { part: opened, .. }) => {
                opened.origin.clone_from(&fold.origin);
                return patch_part(opened, patch);
            }
            Some(Change::PartUpdated { patch: held, .. }) => {
                held.origin = Some(fold.origin.clone());
                return held.merge(patch);
            }
            Some(_) | None => {}
        }
        patch.origin = Some(fold.origin.clone());
        self.emit(Change::PartUpdated { part, patch: Box::new(patch) });
    }

    /// Emits the origin of a part. Repeats the place, since an empty patch would be dropped.
    pub(super) fn emit_origin(&mut self, at: PartIndex) {
        let place = Some(self.part(at).place);
        self.emit_part_patch(at, PartPatch { place, ..PartPatch::default() });
    }

    pub(super) fn remove_part(&mut self, at: PartIndex) {
        let part = self.part(at);
        part.gone = true;
        let id = part.id;
        self.emit(Change::PartRemoved { part: id });
    }
}

/// The words of an error of the log. A stream may report it as text of the model.
fn said_words(feed: Feed, body: &Body) -> Words {
    let error = if let Body::Error(error) = body { Some(error) } else { None };
    error.filter(|_| feed == Feed::Log).map_or_else(Words::default, |error| Words::of(&error.text))
}

pub(super) fn body_digest(body: &Body) -> u64 {
    digest(&serde_json::to_vec(body).unwrap_or_default())
}

/// True if the part itself explains why its turn ended.
pub(super) fn explains(body: &Body) -> bool {
    let stopped = |notice: &Notice| notice.code == "interrupted";
    matches!(body, Body::Error(_)) || matches!(body, Body::Notice(notice) if stopped(notice))
}
