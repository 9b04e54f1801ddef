//! Membership: which turn a part or a step is in if two feeds disagree. Feeds may divide a session
//! differently: one prompt of a live protocol can be three turns of the log, and hooks that were
//! installed in the middle of a turn know no prompt at all. The strongest feed that placed the part
//! or step decides. A weaker one refines it there and has no position for it, whichever came first.

use crate::change::{Change, PartPatch};
use crate::id::{PartId, StepId};
use crate::part::{Kind, ToolState};
use crate::provenance::{Feed, Positions};
use crate::rank::PartField;

use super::fold::{PartFold, StepFold, TurnFold};
use super::part::PartIndex;
use super::{Assembler, Head};

impl Assembler {
    /// A weaker feed has the part in `turn`, a stronger one elsewhere: it stays there. The feed uses
    /// up a position, as it does if it comes first.
    pub(super) fn leave_part(&mut self, head: &Head, turn: usize, at: PartIndex) {
        if self.peek(at).origin.elsewhere.contains(&head.feed) {
            return;
        }
        let names = self.peek(at).origin.names.clone();
        let position = self.next_position(turn, head, &names);
        self.turns[turn].skip_position(head.feed, position);
        self.emit_turn_origin(turn);
        self.part(at).origin.add_elsewhere(head.feed);
        self.emit_origin(at);
    }

    /// Moves a part that only weaker feeds have placed to the turn of a stronger one, and with it
    /// the part of its sub-agents. The caller gives it a position there and calls `settle_move`.
    pub(super) fn move_part(&mut self, at: PartIndex, turn: usize) -> PartIndex {
        self.recount();
        let agents = self.agents_of(at).filter(|agents| agents.0 == at.0);
        let moved = self.take_over(at, turn);
        if let Some(agents) = agents {
            self.take_over(agents, turn);
        }
        self.emit_turn_origin(at.0);
        moved
    }

    fn take_over(&mut self, at: PartIndex, turn: usize) -> PartIndex {
        let from = &mut self.turns[at.0];
        from.forget_local(at.1);
        from.forget_occurrences(at.1);
        let slot = self.part(at);
        let mut part = slot.clone();
        // Its names lead to the new index; nothing else of it is used again.
        (slot.gone, slot.prose, slot.run, slot.tool, slot.agents) = (true, None, None, None, None);
        let Positions(positions) = std::mem::take(&mut part.origin.at);
        for (feed, position) in Feed::ALL.into_iter().zip(positions) {
            if let Some(position) = position {
                self.turns[at.0].skip_position(feed, position);
                part.origin.add_elsewhere(feed);
            }
        }
        part.step = None;
        part.origin.ranks.drop(PartField::Step);
        (part.noted, part.beside) = (false, None);
        let to = (turn, self.turns[turn].parts.len());
        for name in part.origin.names.iter().filter(|name| !name.is_local()) {
            self.index.parts.insert(name, to);
        }
        let id = part.id;
        self.turns[turn].parts.push(part);
        for track in &mut self.tracks {
            for open in track.nameless.iter_mut().chain(&mut track.open) {
                if *open == at {
                    *open = to;
                }
            }
        }
        self.emit(Change::PartMoved { part: id, to: self.turns[turn].id });
        self.part(to);
        to
    }

    /// Recomputes what follows from the turn of a part, after it moved and got its position: in the
    /// turn that it left, in its new turn, and in the part itself.
    pub(super) fn settle_move(&mut self, from: usize, at: PartIndex) {
        self.place_agents(at);
        self.count_contents(at);
        let at = self.remaining(at);
        self.recount();
        self.turns[from].has_reasoning = self.turns[from].lookups.sets.has_reasoning();
        self.turns[at.0].has_reasoning |= self.peek(at).kind == Kind::Reasoning;
        for turn in [from, at.0] {
            self.settle_thinking(turn);
            self.arrange_if_shared(turn);
        }
        self.resume_part(at);
        for turn in [from, at.0] {
            self.end_deferred(turn);
            self.settle(turn);
        }
    }

    /// Counts the contents of a part in its new turn, where other feeds may have it without an id.
    fn count_contents(&mut self, at: PartIndex) {
        let part = self.part(at);
        let occurrences = std::mem::take(&mut part.origin.occurrences);
        let hashes = part.tool.as_mut().map(|tool| std::mem::take(&mut tool.content_hashes));
        match hashes {
            Some(hashes) => {
                for hash in hashes {
                    self.add_content_hash(at, hash);
                }
            }
            None => {
                for (by_hooks, content, _) in occurrences {
                    let feed = if by_hooks { Feed::Hooks } else { Feed::Log };
                    if !self.peek(at).gone {
                        self.merge_by_content(feed, at, content);
                    }
                }
            }
        }
        if !self.peek(at).gone {
            self.emit_origin(at);
        }
    }

    /// Takes back what only the end of the other turn did to a part.
    fn resume_part(&mut self, at: PartIndex) {
        if self.is_over(at.0) {
            return;
        }
        if self.peek(at).is_interrupted_by_end() {
            self.set_state(at, ToolState::Running, None);
        }
        if let Some(agents) = self.agents_of(at) {
            self.settle_agents(agents, None);
        }
        let part = self.part(at);
        if let Some(prose) = part.prose.as_mut().filter(|prose| !prose.open) {
            prose.open = true;
            part.origin.unfinished = false;
            self.emit_part_patch(at, PartPatch { open: Some(true), ..PartPatch::default() });
        }
    }

    /// Moves a step that only weaker feeds have placed to the turn of a stronger one. The caller
    /// gives it a position there. Takes time in proportion to the parts of the turn that it leaves.
    pub(super) fn move_step(&mut self, (from, step): (usize, usize), turn: usize) -> usize {
        let fold = &mut self.turns[from];
        let mut moved = fold.steps[step].clone();
        fold.steps[step].gone = true;
        let previous = fold.previous_step(step);
        fold.resume_steps(moved.id);
        if let Some(order) = &mut fold.step_order {
            order.set(step, None);
        }
        (moved.at, moved.place) = Default::default();
        let id = moved.id;
        let to = self.turns[turn].steps.len();
        self.index.steps.insert(&moved.name, (turn, to));
        self.turns[turn].steps.push(moved);
        let left = self.turns[from].parts.iter().enumerate();
        let left = left.filter(|(_, part)| part.step == Some(id) && !part.gone);
        let (left, parts): (Vec<usize>, Vec<PartId>) = left.map(|(at, part)| (at, part.id)).unzip();
        let change = Change::StepRemoved { turn: self.turns[from].id, step: id, parts, previous };
        self.emit(change);
        for at in left.into_iter().map(|part| (from, part)) {
            let part = self.part(at);
            part.step = previous;
            if previous.is_none() && part.origin.ranks.drop(PartField::Step) {
                self.emit_origin(at);
            }
        }
        self.arrange_if_shared(from);
        self.arrange_steps(from);
        to
    }

    /// Parts of a turn with a single feed have the places of their positions.
    fn arrange_if_shared(&mut self, turn: usize) {
        if self.turns[turn].only_feed().is_none() {
            self.arrange_parts(turn);
        }
    }
}

impl TurnFold {
    /// Notes that this feed used a position for a part of another turn.
    fn skip_position(&mut self, feed: Feed, position: u32) {
        let next = &mut self.origin.next_positions[feed.index()];
        *next = (*next).max(position.saturating_add(1));
    }

    /// Forgets how often the contents of a part occurred, if it was the last one. The numbers of
    /// others stay, since feeds may have referred to them.
    fn forget_occurrences(&mut self, part: usize) {
        for (class, content, nth) in self.parts[part].origin.occurrences.clone() {
            let Some(mut count) = self.lookups.occurrences.get(&(class, content)).copied() else {
                continue;
            };
            if nth + 1 != count {
                continue;
            }
            count = nth;
            let is_counted = |part: &PartFold, nth: u32| {
                !part.gone && part.origin.occurrences.contains(&(class, content, nth))
            };
            while count > 0 {
                let name = crate::provenance::Name::ByContent(content, count - 1);
                let held = self.lookups.parts.get(&name).map(|part| &self.parts[*part]);
                if held.is_some_and(|part| is_counted(part, count - 1)) {
                    break;
                }
                count -= 1;
            }
            self.lookups.occurrences.insert((class, content), count);
        }
    }

    /// The step before this one in the strongest feed that has it.
    fn previous_step(&self, step: usize) -> Option<StepId> {
        let feed = self.steps[step].at.strongest()?;
        let position = self.steps[step].at.of(feed);
        let before = |other: &&StepFold| !other.gone && other.at.of(feed) < position;
        let placed = self.steps.iter().filter(|other| other.at.of(feed).is_some());
        placed.filter(before).max_by_key(|other| other.at.of(feed)).map(|other| other.id)
    }

    /// Each feed continues after its last step, now that this one is gone: as after a restart.
    fn resume_steps(&mut self, gone: StepId) {
        for feed in Feed::ALL {
            let position = |step: &StepFold| step.at.of(feed).filter(|_| !step.gone);
            let last = self.steps.iter().filter(|step| position(step).is_some());
            let last = last.max_by_key(|step| position(step));
            let next = last.and_then(position).map_or(0, |position| position.saturating_add(1));
            let last = last.map(|step| step.id);
            let at = feed.index();
            self.stepped[at] = next;
            if self.step[at] == Some(gone) {
                self.step[at] = last;
            }
        }
    }
}
