//! Turns and steps: finding the turn that an event belongs to, opening turns, bringing two
//! tellings of one turn together, numbering.

use std::collections::hash_map::Entry;

use crate::change::{Change, TurnPatch};
use crate::event::EndReason;
use crate::id::{StepId, TurnId};
use crate::part::Body;
use crate::session::{End, Trigger, TurnState};
use crate::telling::{Field, Name, Telling};

use super::fold::{PartFold, StepFold, TurnFold, id_of};
use super::order::{Item, arrange, spine_place};
use super::{Assembler, Head};

impl Assembler {
    /// The turn that an event belongs to: the one it names, else the telling's current one, else
    /// what comes before the first prompt.
    pub(super) fn turn_for(&mut self, head: &Head) -> usize {
        let current = self.tracks[head.telling.index()].turn;
        let turn = match &head.turn {
            Some(name) => match self.index.turns.get(name) {
                Some(turn) => *turn,
                None => self.open_turn(vec![name.clone()]),
            },
            None => match current {
                Some(turn) => turn,
                None => match self.index.turns.get(&Name::Preamble) {
                    Some(turn) => *turn,
                    None => self.open_turn(vec![Name::Preamble]),
                },
            },
        };
        // A turn that the telling comes to for the first time is its current one; news of an
        // older turn does not take it back there.
        if self.place_turn(turn, head.telling) {
            self.tracks[head.telling.index()].turn = Some(turn);
        }
        turn
    }

    /// Notes that this telling has come to this turn. Says whether that is new.
    fn place_turn(&mut self, turn: usize, telling: Telling) -> bool {
        if self.turns[turn].origin.at.of(telling).is_some() {
            return false;
        }
        let track = &mut self.tracks[telling.index()];
        self.turns[turn].origin.at.set(telling, track.turns);
        track.turns += 1;
        self.emit_turn_origin(turn);
        self.number_turns(turn);
        true
    }

    fn open_turn(&mut self, names: Vec<Name>) -> usize {
        let strongest = names.iter().min().cloned().unwrap_or(Name::Preamble);
        let id = self.turn_id(&strongest);
        let at = self.turns.len();
        let mut turn = TurnFold::new(id);
        for name in &names {
            self.index.turns.insert(name.clone(), at);
        }
        turn.origin.names = names;
        self.turns.push(turn);
        self.out.push(Change::TurnOpened { turn: id });
        at
    }

    fn turn_id(&self, name: &Name) -> TurnId {
        // A turn has no turn around it: its local names are local to the session.
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
            names.push(Name::Nth(head.telling, self.tracks[head.telling.index()].turns));
        }
        let found = names
            .iter()
            .filter_map(|name| self.index.turns.get(name).copied())
            .find(|turn| self.may_be(*turn, &names));
        self.close_prose(head);
        let previous = self.tracks[head.telling.index()].turn;
        // What is told again from the start ends nothing.
        let again = found.is_some_and(|turn| self.turns[turn].origin.at.of(head.telling).is_some());
        if let Some(previous) = previous.filter(|_| !again) {
            self.supersede(head, previous);
        }
        let turn = match found {
            Some(turn) => {
                self.add_turn_names(turn, names);
                turn
            }
            None => self.open_turn(names),
        };
        self.place_turn(turn, head.telling);
        // A telling does not go back: news of an older turn leaves the current one current.
        let position = |turn: usize| self.turns[turn].origin.at.of(head.telling);
        if previous.is_none_or(|previous| position(previous) <= position(turn)) {
            self.tracks[head.telling.index()].turn = Some(turn);
        }

        let ranks = &mut self.turns[turn].origin.ranks;
        let patch = TurnPatch {
            trigger: ranks.take(Field::Name, head.telling, Some(trigger)),
            // An empty message says nothing: streams begin turns without the user's words.
            user: (!user.is_empty())
                .then_some(user)
                .and_then(|user| ranks.take(Field::Body, head.telling, Some(user))),
            started: ranks.take(Field::Started, head.telling, head.at),
            ..TurnPatch::default()
        };
        if let Some(trigger) = patch.trigger {
            self.turns[turn].is_command = trigger == Trigger::Command;
        }
        self.tell_turn(turn, patch);
        self.emit_turn_origin(turn);
    }

    /// Whether a turn that goes by one of these names can be the one they mean: prompts with
    /// different ids are different, however alike their words are.
    fn may_be(&self, turn: usize, names: &[Name]) -> bool {
        let prompt =
            |names: &[Name]| names.iter().find(|name| matches!(name, Name::Prompt(_))).cloned();
        match (prompt(&self.turns[turn].origin.names), prompt(names)) {
            (Some(held), Some(told)) => held == told,
            (Some(_), None) | (None, Some(_)) | (None, None) => true,
        }
    }

    fn add_turn_names(&mut self, turn: usize, names: Vec<Name>) {
        let mut added = false;
        for name in names {
            if !self.turns[turn].origin.names.contains(&name) {
                self.index.turns.entry(name.clone()).or_insert(turn);
                self.turns[turn].origin.names.push(name);
                added = true;
            }
        }
        if added {
            self.turns[turn].origin.names.sort();
            self.rename_turn(turn);
        }
    }

    /// The id follows the strongest name, so that the order of tellings leaves no trace in it.
    fn rename_turn(&mut self, turn: usize) {
        let Some(strongest) = self.turns[turn].origin.names.iter().min().cloned() else { return };
        let (from, to) = (self.turns[turn].id, self.turn_id(&strongest));
        if from == to {
            return;
        }
        self.turns[turn].id = to;
        self.out.push(Change::TurnRenamed { turn: from, to });
        for part in 0..self.turns[turn].parts.len() {
            self.rename_part(turn, part);
        }
    }

    fn supersede(&mut self, head: &Head, turn: usize) {
        let at = head.telling.index();
        let origin = &mut self.turns[turn].origin;
        // An end that still waited belonged to this turn's stream, which is over (R-003-37).
        let waited = origin.deferred[at].take().is_some();
        if origin.ends[at].is_none() {
            origin.ends[at] = Some(End { reason: EndReason::Superseded, at: None });
            self.emit_turn_origin(turn);
        } else if waited {
            self.emit_turn_origin(turn);
        }
        self.settle(turn);
    }

    pub(super) fn add_user(&mut self, head: &Head, body: Body) {
        let turn = self.turn_for(head);
        if self.turns[turn].origin.ranks.claim(Field::Body, head.telling) {
            self.tell_turn(turn, TurnPatch { user_added: vec![body], ..TurnPatch::default() });
            self.emit_turn_origin(turn);
        }
    }

    pub(super) fn tell_thinking(&mut self, head: &Head, thinking: bool) {
        let turn = self.turn_for(head);
        // One request with thinking makes a thinking turn: later steps may go without.
        let told = self.turns[turn].origin.thinking.unwrap_or(false) || thinking;
        self.turns[turn].origin.thinking = Some(told);
        self.settle_thinking(turn);
        self.emit_turn_origin(turn);
    }

    /// Thinking comes from the request where a source says it, else from whether there is any
    /// reasoning.
    pub(super) fn settle_thinking(&mut self, turn: usize) {
        let fold = &mut self.turns[turn];
        let thinking = fold.origin.thinking.unwrap_or(fold.has_reasoning);
        if fold.thinking_mode != thinking {
            fold.thinking_mode = thinking;
            self.tell_turn(
                turn,
                TurnPatch { thinking_mode: Some(thinking), ..TurnPatch::default() },
            );
        }
    }

    pub(super) fn rewind(&mut self, turns: &[Name]) {
        for name in turns {
            let Some(turn) = self.index.turns.get(name).copied() else {
                self.count(crate::change::Oddity::Unknown);
                continue;
            };
            if !self.turns[turn].abandoned {
                self.turns[turn].abandoned = true;
                let patch = TurnPatch { abandoned: Some(true), ..TurnPatch::default() };
                self.tell_turn(turn, patch);
            }
        }
    }

    pub(super) fn tell_turn(&mut self, turn: usize, patch: TurnPatch) {
        if patch.is_empty() {
            return;
        }
        let turn = self.turns[turn].id;
        // What one event says of a turn is one change.
        if let Some(Change::TurnTold { turn: told, patch: held }) = self.out.last_mut()
            && *told == turn
        {
            return held.merge(patch);
        }
        self.out.push(Change::TurnTold { turn, patch: Box::new(patch) });
    }

    pub(super) fn emit_turn_origin(&mut self, turn: usize) {
        let origin = Some(self.turns[turn].origin.clone());
        self.tell_turn(turn, TurnPatch { origin, ..TurnPatch::default() });
    }

    // ── Bringing tellings together ──────────────────────────────────────────────────────────

    /// A telling placed something in `turn` that another telling placed in `other`: they are
    /// one turn. Says which one is left.
    pub(super) fn join_turns(&mut self, turn: usize, other: usize, telling: Telling) -> usize {
        // Two turns that any one telling holds apart are two.
        let is_in = |turn: usize, telling: Telling| {
            let fold = &self.turns[turn];
            fold.origin.at.of(telling).is_some() || fold.placed[telling.index()] > 0
        };
        let held_apart = Telling::ALL.into_iter().any(|t| is_in(turn, t) && is_in(other, t));
        let apart = turn == other
            || held_apart
            || is_in(other, telling)
            || !self.may_be(other, &self.turns[turn].origin.names)
            || self.turns[other].is_preamble() != self.turns[turn].is_preamble();
        if apart { other } else { self.merge_turns(other, turn) }
    }

    fn merge_turns(&mut self, from: usize, into: usize) -> usize {
        let empty = TurnFold { gone: true, ..TurnFold::new(self.turns[from].id) };
        let gone = std::mem::replace(&mut self.turns[from], empty);
        self.out.push(Change::TurnMerged { turn: gone.id, into: self.turns[into].id });

        let kept = &mut self.turns[into];
        let shift = kept.parts.len();
        let step_shift = kept.steps.len();
        for telling in Telling::ALL {
            let at = telling.index();
            if let Some(position) = gone.origin.at.of(telling) {
                kept.origin.at.set(telling, position);
            }
            if kept.origin.ends[at].is_none() {
                kept.origin.ends[at].clone_from(&gone.origin.ends[at]);
            }
            if kept.origin.deferred[at].is_none() {
                kept.origin.deferred[at].clone_from(&gone.origin.deferred[at]);
            }
            kept.step[at] = kept.step[at].or(gone.step[at]);
            kept.placed[at] += gone.placed[at];
            kept.stepped[at] += gone.stepped[at];
        }
        kept.origin.held.extend(gone.origin.held);
        kept.origin.thinking = match (kept.origin.thinking, gone.origin.thinking) {
            (Some(a), Some(b)) => Some(a || b),
            (a, b) => a.or(b),
        };
        if gone.origin.ranks.holder(Field::Name) > kept.origin.ranks.holder(Field::Name) {
            kept.is_command = gone.is_command;
        }
        kept.origin.ranks.join(gone.origin.ranks);
        kept.has_reasoning |= gone.has_reasoning;
        kept.abandoned |= gone.abandoned;
        for (key, count) in gone.alike {
            *kept.alike.entry(key).or_default() += count;
        }
        // What both turns call by the same name is one thing.
        let mut twins: Vec<(usize, usize)> = Vec::new();
        for (name, part) in gone.local {
            match kept.local.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(part + shift);
                }
                Entry::Occupied(entry) => twins.push((part + shift, *entry.get())),
            }
        }
        kept.parts.extend(gone.parts);
        kept.steps.extend(gone.steps);

        for part in shift..self.turns[into].parts.len() {
            for name in self.turns[into].parts[part].origin.names.clone() {
                if !name.is_local() {
                    self.index.parts.insert(name, (into, part));
                }
            }
        }
        for step in step_shift..self.turns[into].steps.len() {
            let name = self.turns[into].steps[step].name.clone();
            if !name.is_local() {
                self.index.steps.insert(name, (into, step));
            }
        }
        for name in &gone.origin.names {
            self.index.turns.insert(name.clone(), into);
        }
        for track in &mut self.tracks {
            if track.turn == Some(from) {
                track.turn = Some(into);
            }
            for at in track.nameless.iter_mut().chain(&mut track.open) {
                if at.0 == from {
                    *at = (into, at.1 + shift);
                }
            }
        }
        twins.sort_unstable();
        twins.dedup();
        for (from, to) in twins {
            let parts = &self.turns[into].parts;
            let (from, to) = if parts[to].is_only_hooks() && !parts[from].is_only_hooks() {
                (to, from)
            } else {
                (from, to)
            };
            if are_one(&parts[from], &parts[to]) {
                self.merge_parts(into, from, to);
            }
        }
        self.add_turn_names(into, gone.origin.names);
        // Ids that are local to a turn follow it.
        for part in 0..self.turns[into].parts.len() {
            self.rename_part(into, part);
        }
        self.emit_turn_origin(into);
        self.arrange_steps(into);
        self.arrange_parts(into);
        self.number_turns(into);
        self.settle_thinking(into);
        self.settle(into);
        into
    }

    /// Numbers the turns in their order. A turn that the only telling just opened comes last.
    fn number_turns(&mut self, newest: usize) {
        if self.turns[newest].is_preamble() {
            return;
        }
        let alone = self.tracks.iter().filter(|track| track.turns > 0).count() == 1;
        if alone && newest + 1 == self.turns.len() && self.turns[newest].number == 0 {
            let before = self.turns[..newest].iter().rev().find(|turn| !turn.gone);
            let number = before.map_or(0, |turn| turn.number) + 1;
            return self.set_number(newest, number);
        }
        let turns: Vec<usize> = (0..self.turns.len())
            .filter(|turn| !self.turns[*turn].gone && !self.turns[*turn].is_preamble())
            .collect();
        let items: Vec<Item<()>> = turns
            .iter()
            .map(|turn| Item { at: self.turns[*turn].origin.at, group: None })
            .collect();
        for (number, (item, _)) in (1..).zip(arrange(&items)) {
            self.set_number(turns[item], number);
        }
    }

    fn set_number(&mut self, turn: usize, number: u32) {
        if self.turns[turn].number != number {
            self.turns[turn].number = number;
            self.tell_turn(turn, TurnPatch { number: Some(number), ..TurnPatch::default() });
        }
    }

    // ── Steps ───────────────────────────────────────────────────────────────────────────────

    pub(super) fn start_step(&mut self, head: &Head, name: Name, model: Option<String>) {
        let turn = self.turn_for(head);
        let id = StepId(id_of(self.session, self.turns[turn].id, &name));
        if self.step_of(head, turn) != Some(id) {
            self.close_prose(head);
        }
        self.reopen(head, turn);
        self.tell_step(head, name, |fold| {
            let changed = model.is_some() && fold.model != model;
            fold.model = model.or_else(|| fold.model.take());
            changed
        });
    }

    /// The end of a step closes what it left open.
    pub(super) fn end_step(&mut self, head: &Head, name: &Name) {
        let turn = self.turn_for(head);
        let id = StepId(id_of(self.session, self.turns[turn].id, name));
        if self.step_of(head, turn) == Some(id) {
            self.close_prose(head);
        }
    }

    /// The step that a telling is in.
    pub(super) fn step_of(&self, head: &Head, turn: usize) -> Option<StepId> {
        self.turns[turn].step[head.telling.index()]
    }

    /// A step by its name. Names that only count mean something only in their turn.
    fn find_step(&self, turn: usize, name: &Name) -> Option<(usize, usize)> {
        if name.is_local() {
            let step = self.turns[turn].steps.iter().position(|step| step.name == *name)?;
            return Some((turn, step));
        }
        self.index.steps.get(name).copied().filter(|step| !self.turns[step.0].stored)
    }

    /// Changes a step, opening it if need be.
    pub(super) fn tell_step(&mut self, head: &Head, name: Name, tell: impl FnOnce(&mut StepFold) -> bool) {
        let current = self.turn_for(head);
        let (turn, step) = match self.find_step(current, &name) {
            Some((other, step)) => {
                let before = self.turns[current].steps.len();
                let turn = self.join_turns(current, other, head.telling);
                if turn == other { (turn, step) } else { (turn, before + step) }
            }
            None => {
                let id = StepId(id_of(self.session, self.turns[current].id, &name));
                let fold = StepFold {
                    id,
                    name: name.clone(),
                    at: Default::default(),
                    place: Default::default(),
                    model: None,
                    usage: Default::default(),
                    stop_reason: None,
                    provenance: None,
                };
                self.turns[current].steps.push(fold);
                let step = self.turns[current].steps.len() - 1;
                if !name.is_local() {
                    self.index.steps.insert(name, (current, step));
                }
                (current, step)
            }
        };
        let mut changed = tell(&mut self.turns[turn].steps[step]);
        let fold = &mut self.turns[turn];
        if fold.steps[step].at.of(head.telling).is_none() {
            let position = fold.stepped[head.telling.index()];
            fold.stepped[head.telling.index()] += 1;
            fold.steps[step].at.set(head.telling, position);
            fold.step[head.telling.index()] = Some(fold.steps[step].id);
            changed = true;
            if fold.stepped.iter().filter(|count| **count > 0).count() > 1 {
                self.arrange_steps(turn);
            } else {
                fold.steps[step].place = spine_place(position);
            }
        }
        if changed {
            self.emit_step(turn, step);
        }
    }

    fn arrange_steps(&mut self, turn: usize) {
        let items: Vec<Item<()>> =
            self.turns[turn].steps.iter().map(|step| Item { at: step.at, group: None }).collect();
        for (step, place) in arrange(&items) {
            if self.turns[turn].steps[step].place != place {
                self.turns[turn].steps[step].place = place;
                self.emit_step(turn, step);
            }
        }
    }

    fn emit_step(&mut self, turn: usize, step: usize) {
        let fold = &self.turns[turn].steps[step];
        let (place, step) = (fold.place, Box::new(fold.step()));
        self.out.push(Change::StepTold { turn: self.turns[turn].id, place, step });
    }

    /// More happens in a turn that this telling had called ended: it goes on.
    pub(super) fn reopen(&mut self, head: &Head, turn: usize) {
        let at = head.telling.index();
        let origin = &mut self.turns[turn].origin;
        let waited = origin.deferred[at].take().is_some();
        let ended = origin.ends[at].take_if(|end| end.reason != EndReason::Superseded).is_some();
        if waited || ended {
            self.emit_turn_origin(turn);
            self.settle(turn);
        }
    }

    pub(super) fn is_over(&self, turn: usize) -> bool {
        self.turns[turn].state != TurnState::Running
    }
}

/// Whether two parts that are called alike are one. Content alone does not make two things one
/// that their tellings name apart.
fn are_one(from: &PartFold, to: &PartFold) -> bool {
    if from.gone || to.gone {
        return false;
    }
    let nameless = |part: &PartFold| part.origin.names.iter().all(Name::is_local);
    match (&from.tool, &to.tool) {
        (Some(a), Some(b)) => a.call_id.is_empty() || b.call_id.is_empty(),
        (Some(_), None) | (None, Some(_)) => false,
        (None, None) if from.is_prose() || to.is_prose() => {
            from.is_only_hooks() != to.is_only_hooks()
        }
        (None, None) => nameless(from) || nameless(to),
    }
}
