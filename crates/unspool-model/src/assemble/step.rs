//! Steps: the model calls of a turn, each with its place, model and usage.

use std::sync::Arc;

use crate::change::Change;
use crate::id::StepId;
use crate::provenance::Name;
use crate::session::{Provenance, Usage};

use super::feed_order::FeedOrder;
use super::fold::{StepFold, TurnFold, id_of};
use super::order::spine_place;
use super::{Assembler, Head};

impl Assembler {
    pub(super) fn start_step(&mut self, head: &Head, name: Name, model: Option<String>) {
        let turn = self.turn_for(head);
        let id = StepId(id_of(self.session, self.turns[turn].id, &name));
        if self.step_of(head, turn) != Some(id) && !head.is_about_session() {
            self.close_prose(head);
        }
        // A step that this feed already has does not reopen the turn: a truncated log is replayed
        // from its start, without its end.
        let seen_before = self
            .find_step(turn, &name)
            .is_some_and(|(turn, step)| self.turns[turn].steps[step].at.of(head.feed).is_some());
        if !seen_before && !head.is_about_session() {
            self.reopen(head, turn);
        }
        self.update_step(head, name, |fold| {
            // The model of a stronger feed stays: a stream may only know the session's.
            let is_weaker = fold.model.is_some() && fold.at.strongest() > Some(head.feed);
            let is_other = model.is_some() && fold.model.as_deref() != model.as_deref();
            let changed = is_other && !is_weaker;
            if changed {
                fold.model = model.map(Into::into);
            }
            changed
        });
    }

    /// The end of a step closes its open prose.
    pub(super) fn end_step(&mut self, head: &Head, name: Name, stop_reason: Option<String>) {
        let turn = self.turn_for(head);
        let id = StepId(id_of(self.session, self.turns[turn].id, &name));
        if self.step_of(head, turn) == Some(id) {
            self.close_prose(head);
        }
        self.update_step(head, name, |fold| {
            let changed =
                stop_reason.is_some() && fold.stop_reason.as_deref() != stop_reason.as_deref();
            if changed {
                fold.stop_reason = stop_reason.map(Into::into);
            }
            changed
        });
    }

    pub(super) fn join_usage(&mut self, head: &Head, name: Name, usage: Usage) {
        self.update_step(head, name, |fold| {
            let before = fold.usage;
            fold.usage.join(usage);
            fold.usage != before
        });
    }

    pub(super) fn set_provenance(&mut self, head: &Head, name: Name, provenance: Provenance) {
        self.update_step(head, name, |fold| {
            let changed = fold.provenance.as_ref() != Some(&provenance);
            fold.provenance = Some(provenance);
            changed
        });
    }

    /// A request that failed may be sent again under another name: the last one was answered.
    pub(super) fn name_request(&mut self, head: &Head, name: Name, request: Arc<str>) {
        self.update_step(head, name, |fold| {
            let changed = fold.request.as_ref() != Some(&request);
            fold.request = Some(request);
            changed
        });
    }

    /// The current step of the event's feed.
    pub(super) fn step_of(&self, head: &Head, turn: usize) -> Option<StepId> {
        self.turns[turn].step[head.feed.index()]
    }

    /// A step by its name. Local names are looked up in their turn only.
    pub(super) fn find_step(&self, turn: usize, name: &Name) -> Option<(usize, usize)> {
        if name.is_local() {
            return self.turns[turn].lookups.steps.get(name).map(|step| (turn, *step));
        }
        self.index.steps.get(name).filter(|step| !self.turns[step.0].stored)
    }

    fn has_placed(&self, head: &Head, (turn, step): (usize, usize)) -> bool {
        self.turns[turn].steps[step].at.of(head.feed).is_some()
    }

    /// Updates a step, opening it if necessary.
    fn update_step(&mut self, head: &Head, name: Name, update: impl FnOnce(&mut StepFold) -> bool) {
        let current = self.turn_for(head);
        let (turn, step) = match self.find_step(current, &name) {
            Some((other, step)) => {
                let before = self.turns[current].steps.len();
                let joined = self.join_turns(current, other, head.feed);
                if joined != other {
                    (joined, before + step)
                } else if other == current || self.has_placed(head, (other, step)) {
                    (other, step)
                } else if self.turns[other].steps[step].at.strongest() > Some(head.feed) {
                    // The step stays in the turn of the stronger feed, without a position here.
                    if update(&mut self.turns[other].steps[step]) {
                        self.emit_step(other, step);
                    }
                    return;
                } else {
                    (current, self.move_step((other, step), current))
                }
            }
            None => {
                let id = StepId(id_of(self.session, self.turns[current].id, &name));
                let fold = StepFold {
                    id,
                    gone: false,
                    name: name.clone(),
                    at: Default::default(),
                    place: Default::default(),
                    model: None,
                    usage: Default::default(),
                    stop_reason: None,
                    request: None,
                    provenance: None,
                };
                self.turns[current].steps.push(fold);
                let step = self.turns[current].steps.len() - 1;
                self.turns[current].register_step(step);
                if !name.is_local() {
                    self.index.steps.insert(&name, (current, step));
                }
                (current, step)
            }
        };
        let mut changed = update(&mut self.turns[turn].steps[step]);
        let fold = &mut self.turns[turn];
        if fold.steps[step].at.of(head.feed).is_none() {
            let position = fold.stepped[head.feed.index()];
            fold.stepped[head.feed.index()] += 1;
            fold.steps[step].at.set(head.feed, position);
            if !head.is_about_session() {
                fold.step[head.feed.index()] = Some(fold.steps[step].id);
            }
            if let Some(order) = &mut fold.step_order {
                order.set(step, fold.steps[step].item());
            }
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

    pub(super) fn arrange_steps(&mut self, turn: usize) {
        let TurnFold { steps, step_order, .. } = &mut self.turns[turn];
        let order = step_order.get_or_insert_with(|| {
            let mut order = Box::<FeedOrder<()>>::default();
            (0..).zip(steps.iter()).for_each(|(at, step)| order.set(at, step.item()));
            order
        });
        for (step, place) in order.arrange() {
            if self.turns[turn].steps[step].place != place {
                self.turns[turn].steps[step].place = place;
                self.emit_step(turn, step);
            }
        }
    }

    pub(super) fn emit_step(&mut self, turn: usize, step: usize) {
        let fold = &self.turns[turn].steps[step];
        let (place, step) = (fold.place, Box::new(fold.step()));
        self.emit(Change::StepUpdated { turn: self.turns[turn].id, place, step });
    }
}
