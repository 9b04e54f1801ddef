//! Turns: finding the turn of an event, opening and numbering turns, and reopening a turn that
//! continues after its end.

use crate::change::{Change, TurnPatch};
use crate::event::EndReason;
use crate::id::TurnId;
use crate::part::Body;
use crate::provenance::{Feed, Name};
use crate::rank::TurnField;
use crate::session::{Trigger, TurnEnd, TurnState};

use super::feed_order::{FeedOrder, Rearranged};
use super::fold::{TurnFold, id_of};
use super::{Assembler, Head};

impl Assembler {
    /// The turn of an event: the one it names, otherwise the feed's current one, otherwise the
    /// preamble before the first prompt.
    pub(super) fn turn_for(&mut self, head: &Head) -> usize {
        let current = self.current_turn(head.feed, head.evidence.source, head.at);
        let turn = match &head.turn {
            Some(Name::Session) => return self.session_turn(),
            Some(name) => match self.index.turns.get(name) {
                Some(turn) => turn,
                None => self.open_turn(vec![name.clone()]),
            },
            None => match current {
                Some(turn) => turn,
                None => match self.index.turns.get(&Name::Preamble) {
                    Some(turn) => turn,
                    None => self.open_turn(vec![Name::Preamble]),
                },
            },
        };
        // A turn that the feed reaches for the first time becomes its source's current one. An
        // event of an older turn does not move the source back.
        self.place_turn(turn, head);
        turn
    }

    /// The preamble, for an event about the session as a whole. The source stays where it is.
    fn session_turn(&mut self) -> usize {
        if let Some(turn) = self.index.turns.get(&Name::Preamble) {
            return turn;
        }
        let turn = self.open_turn(vec![Name::Preamble]);
        self.emit_turn_origin(turn);
        self.settle(turn);
        turn
    }

    /// Records that this feed has reached the turn. Returns whether that is new.
    pub(super) fn place_turn(&mut self, turn: usize, head: &Head) -> bool {
        self.note_source_start(head);
        let at = head.feed.index();
        let known = self.turns[turn].origin.at.0[at].is_some();
        if known && !self.is_from_earlier_file(head, turn) {
            return false;
        }
        let track = &mut self.tracks[at];
        self.turns[turn].origin.at.0[at] = Some(track.turns);
        track.turns += 1;
        self.advance_source(head, turn);
        self.emit_turn_origin(turn);
        self.number_turns(turn);
        if self.turns[turn].is_preamble() {
            // Until now it may have been there for the session as a whole.
            self.settle(turn);
        }
        true
    }

    fn open_turn(&mut self, names: Vec<Name>) -> usize {
        let strongest = names.iter().min().cloned().unwrap_or(Name::Preamble);
        let id = self.turn_id(&strongest);
        let at = self.turns.len();
        let mut turn = TurnFold::new(id);
        for name in &names {
            self.take_turn_name(name);
            self.index.turns.insert(name, at);
        }
        turn.origin.names = names;
        self.turns.push(turn);
        self.turn_index.insert(id, at);
        self.emit(Change::TurnOpened { turn: id });
        at
    }

    /// Takes a name from the turn that has it: a name leads to one turn, also after a restart.
    fn take_turn_name(&mut self, name: &Name) {
        if let Some(turn) = self.index.turns.get(name) {
            self.turns[turn].origin.names.retain(|held| held != name);
            self.emit_turn_origin(turn);
        }
    }

    fn turn_id(&self, name: &Name) -> TurnId {
        // The local names of a turn are local to the session.
        TurnId(id_of(self.session, TurnId(self.session.0), name))
    }

    pub(super) fn start_turn(
        &mut self,
        head: &Head,
        mut names: Vec<Name>,
        trigger: Trigger,
        user: Vec<Body>,
    ) {
        if names.is_empty() {
            names.push(Name::Nth(head.feed, self.tracks[head.feed.index()].turns));
        }
        let found = names
            .iter()
            .filter_map(|name| self.index.turns.get(name))
            .find(|turn| self.may_be(*turn, &names));
        self.close_prose(head);
        self.note_turn_begin(head);
        let previous = self.previous_turn(head);
        // A replayed start does not end the previous turn.
        let replay = found.is_some_and(|turn| self.turns[turn].origin.at.of(head.feed).is_some());
        if let Some(previous) = previous.filter(|_| !replay) {
            self.supersede(head.feed, previous);
        }
        let turn = match found {
            Some(turn) => self.join_named_turns(turn, names, head.feed),
            None => self.open_turn(names),
        };
        self.note_source_start(head);
        let reported = replay && self.replays(head) && !self.is_from_earlier_file(head, turn);
        let late = replay && self.is_from_later_file(head, turn);
        if !self.place_turn(turn, head) {
            self.return_to(head, turn);
        }
        let ranks = &mut self.turns[turn].origin.ranks;
        // A file that repeats a turn does not know when it began.
        let knows_start =
            !(reported || late) || ranks.holder(TurnField::Started) != Some(head.feed);
        // A replayed user message must not drop parts that were added to it later.
        let reported = reported && ranks.holder(TurnField::User) == Some(head.feed);
        let (replay, user) = if reported { (user, Vec::new()) } else { (Vec::new(), user) };
        let patch = TurnPatch {
            trigger: ranks.take(TurnField::Trigger, head.feed, Some(trigger)),
            // Ignore an empty message: streams begin turns without the user's text.
            user: (!user.is_empty())
                .then_some(user)
                .and_then(|user| ranks.take(TurnField::User, head.feed, Some(user))),
            user_replayed: (!replay.is_empty()).then_some(replay),
            started: ranks.take(TurnField::Started, head.feed, head.at.filter(|_| knows_start)),
            ..TurnPatch::default()
        };
        if let Some(trigger) = patch.trigger {
            self.turns[turn].is_command = trigger == Trigger::Command;
        }
        self.emit_turn_patch(turn, patch);
        self.emit_turn_origin(turn);
    }

    /// True if the turn, which shares one of these names, can be the one they refer to. Prompts
    /// with different ids are different turns, even with equal text.
    pub(super) fn may_be(&self, turn: usize, names: &[Name]) -> bool {
        let prompt =
            |names: &[Name]| names.iter().find(|name| matches!(name, Name::Prompt(_))).cloned();
        match (prompt(&self.turns[turn].origin.names), prompt(names)) {
            (Some(held), Some(reported)) => held == reported,
            (Some(_), None) | (None, Some(_)) | (None, None) => true,
        }
    }

    /// Adds names to a turn and merges other turns that have one of them, unless some feed has
    /// both. A name that another turn keeps is not added: it leads to one turn only.
    fn join_named_turns(&mut self, turn: usize, names: Vec<Name>, feed: Feed) -> usize {
        let owner = |name: &Name| self.index.turns.get(name).filter(|other| *other != turn);
        let others: Vec<usize> = names.iter().filter_map(owner).collect();
        let names = names.into_iter().filter(|name| owner(name).is_none()).collect();
        self.add_turn_names(turn, names);
        for other in others {
            if !self.turns[other].gone {
                self.join_turns(turn, other, feed);
            }
        }
        turn
    }

    pub(super) fn add_turn_names(&mut self, turn: usize, names: Vec<Name>) {
        let mut added = false;
        for name in names {
            if !self.turns[turn].origin.names.contains(&name) {
                self.index.turns.insert_new(&name, turn);
                self.turns[turn].origin.names.push(name);
                added = true;
            }
        }
        if added {
            self.turns[turn].origin.names.sort();
            self.update_turn_order(turn);
            self.rename_turn(turn);
        }
    }

    /// The id follows the strongest name, so that arrival order leaves no trace in it.
    fn rename_turn(&mut self, turn: usize) {
        let Some(strongest) = self.turns[turn].origin.names.iter().min().cloned() else { return };
        let (from, to) = (self.turns[turn].id, self.turn_id(&strongest));
        if from == to {
            return;
        }
        self.turns[turn].id = to;
        self.forget_turn(from, turn);
        self.turn_index.insert(to, turn);
        self.emit(Change::TurnRenamed { turn: from, to });
        for part in 0..self.turns[turn].parts.len() {
            self.rename_part(turn, part);
        }
    }

    /// Removes a turn from the index of ids, unless the id has become another turn's.
    pub(super) fn forget_turn(&mut self, id: TurnId, turn: usize) {
        if self.turn_index.get(&id) == Some(&turn) {
            self.turn_index.remove(&id);
        }
    }

    pub(super) fn supersede(&mut self, feed: Feed, turn: usize) {
        let at = feed.index();
        let origin = &mut self.turns[turn].origin;
        // A deferred end belonged to this turn's stream, which is over (R-003-37).
        let waited = origin.deferred[at].take().is_some();
        // A log that is read from its start has no `Lost`: the result must be the same.
        if origin.ends[at].as_ref().is_none_or(|end| end.reason == EndReason::Lost) {
            origin.ends[at] = Some(TurnEnd { reason: EndReason::Superseded, at: None });
            self.emit_turn_origin(turn);
        } else if waited {
            self.emit_turn_origin(turn);
        }
        self.settle(turn);
    }

    pub(super) fn add_user(&mut self, head: &Head, body: Body) {
        let turn = self.turn_for(head);
        if self.repeats_turn(head) {
            return self.count(crate::change::SkipReason::Duplicate);
        }
        if self.turns[turn].origin.ranks.claim(TurnField::User, head.feed) {
            self.emit_turn_patch(
                turn,
                TurnPatch { user_added: vec![body], ..TurnPatch::default() },
            );
            self.emit_turn_origin(turn);
        }
    }

    pub(super) fn set_thinking(&mut self, head: &Head, thinking: bool) {
        let turn = self.turn_for(head);
        // One request with thinking makes a thinking turn, even if later steps go without.
        let reported = self.turns[turn].origin.thinking.unwrap_or(false) || thinking;
        self.turns[turn].origin.thinking = Some(reported);
        self.settle_thinking(turn);
        self.emit_turn_origin(turn);
    }

    /// The thinking mode comes from the request if a source has it, otherwise from the presence of
    /// reasoning.
    pub(super) fn settle_thinking(&mut self, turn: usize) {
        let fold = &mut self.turns[turn];
        let thinking = fold.origin.thinking.unwrap_or(fold.has_reasoning);
        if fold.thinking_mode != thinking {
            fold.thinking_mode = thinking;
            self.emit_turn_patch(
                turn,
                TurnPatch { thinking_mode: Some(thinking), ..TurnPatch::default() },
            );
        }
    }

    pub(super) fn inherit(&mut self, head: &Head) {
        let turn = self.turn_for(head);
        if !self.turns[turn].inherited {
            self.turns[turn].inherited = true;
            self.emit_turn_patch(turn, TurnPatch { inherited: Some(true), ..TurnPatch::default() });
        }
    }

    pub(super) fn rewind(&mut self, turns: &[Name]) {
        for name in turns {
            let Some(turn) = self.index.turns.get(name) else {
                self.count(crate::change::SkipReason::Unknown);
                continue;
            };
            if !self.turns[turn].abandoned {
                self.turns[turn].abandoned = true;
                let patch = TurnPatch { abandoned: Some(true), ..TurnPatch::default() };
                self.emit_turn_patch(turn, patch);
            }
        }
    }

    pub(super) fn emit_turn_patch(&mut self, turn: usize, patch: TurnPatch) {
        if patch.is_empty() {
            return;
        }
        let turn = self.turns[turn].id;
        // One event makes at most one change per turn.
        if let Some(Change::TurnUpdated { turn: reported, patch: held }) = self.out.last_mut()
            && *reported == turn
        {
            return held.merge(patch);
        }
        self.emit(Change::TurnUpdated { turn, patch: Box::new(patch) });
    }

    pub(super) fn emit_turn_origin(&mut self, turn: usize) {
        let origin = Some(self.turns[turn].origin.clone());
        self.emit_turn_patch(turn, TurnPatch { origin, ..TurnPatch::default() });
    }

    /// Numbers the turns in order. Shortcut: a turn just opened by the only feed comes last.
    pub(super) fn number_turns(&mut self, newest: usize) {
        if self.turns[newest].is_preamble() {
            return;
        }
        self.update_turn_order(newest);
        let alone = self.tracks.iter().filter(|track| track.turns > 0).count() == 1;
        if alone && newest + 1 == self.turns.len() && self.turns[newest].number == 0 {
            return self.set_number(newest, self.last_number + 1);
        }
        self.number_all_turns();
    }

    /// Numbers the turns whose order may have changed.
    pub(super) fn number_all_turns(&mut self) {
        let Assembler { turns, turn_order, .. } = self;
        let order = turn_order.get_or_insert_with(|| {
            let mut order = Box::<FeedOrder<()>>::default();
            (0..).zip(turns.iter()).for_each(|(at, turn)| order.set(at, turn.item()));
            order
        });
        let Rearranged { anchor, items } = order.arrange_tail();
        let before = anchor.map_or(0, |anchor| self.turns[anchor].number);
        for (number, (turn, _)) in (before + 1..).zip(items) {
            self.set_number(turn, number);
        }
    }

    /// Notes that the positions of a turn may have changed.
    fn update_turn_order(&mut self, turn: usize) {
        if let Some(order) = &mut self.turn_order {
            order.set(turn, self.turns[turn].item());
        }
    }

    fn set_number(&mut self, turn: usize, number: u32) {
        if self.turns[turn].number != number {
            self.turns[turn].number = number;
            self.last_number = self.last_number.max(number);
            self.emit_turn_patch(turn, TurnPatch { number: Some(number), ..TurnPatch::default() });
        }
    }

    /// Reopens a turn that this feed had ended: more events arrived.
    pub(super) fn reopen(&mut self, head: &Head, turn: usize) {
        let at = head.feed.index();
        let growing = self.is_growing_before_end(head, turn);
        let origin = &mut self.turns[turn].origin;
        let waited = origin.deferred[at].take().is_some();
        let stays = |end: &TurnEnd| end.reason == EndReason::Superseded && !growing;
        let ended = origin.ends[at].take_if(|end| !stays(end)).is_some();
        if waited || ended {
            self.emit_turn_origin(turn);
            self.settle(turn);
        }
    }

    /// Takes back that the agent is gone: an event of its turn arrived, from whatever feed.
    pub(super) fn revive(&mut self, head: &Head) {
        let turn = match &head.turn {
            Some(name) => self.index.turns.get(name.of_turn()),
            None => self.current_turn(head.feed, head.evidence.source, head.at),
        };
        if let Some(turn) = turn
            && take_lost(&mut self.turns[turn].origin.ends)
        {
            self.emit_turn_origin(turn);
            self.settle(turn);
            self.resume_tools(turn);
        }
    }

    pub(super) fn is_over(&self, turn: usize) -> bool {
        self.turns[turn].state != TurnState::Running
    }
}

/// Removes ends that the recorder inferred. True if there were any.
fn take_lost(ends: &mut [Option<TurnEnd>; 3]) -> bool {
    let mut found = false;
    for end in ends {
        found |= end.take_if(|end| end.reason == EndReason::Lost).is_some();
    }
    found
}
