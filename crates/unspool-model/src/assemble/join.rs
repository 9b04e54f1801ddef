//! Merging feeds: if two feeds placed the same step or part in two turns, the turns are one, and
//! parts of both that share a name are one part.

use crate::provenance::{Feed, Name};

use super::Assembler;
use super::fold::PartFold;
use super::merge::Twins;

impl Assembler {
    /// `feed` placed a step or part in `turn` that another feed placed in `other`: merges the two
    /// turns and returns the remaining one.
    pub(super) fn join_turns(&mut self, turn: usize, other: usize, feed: Feed) -> usize {
        // If any single feed has both, they are two turns.
        let is_in = |turn: usize, feed: Feed| {
            let fold = &self.turns[turn];
            fold.origin.at.of(feed).is_some() || fold.placed[feed.index()] > 0
        };
        let held_apart = Feed::ALL.into_iter().any(|t| is_in(turn, t) && is_in(other, t));
        let apart = turn == other
            || held_apart
            || is_in(other, feed)
            || !self.may_be(other, &self.turns[turn].origin.names)
            || self.turns[other].is_preamble() != self.turns[turn].is_preamble();
        if apart { other } else { self.merge_turns(other, turn) }
    }

    /// Merges a turn into another and returns the index of the remaining one.
    fn merge_turns(&mut self, from: usize, into: usize) -> usize {
        let shift = self.turns[into].parts.len();
        let step_shift = self.turns[into].steps.len();
        let (names, twins) = self.absorb_turn(from, into);
        self.redirect(from, into, shift);
        self.index_from(into, shift, step_shift);
        self.noted.retain(|at| at.0 != from);
        self.recount_turn(into);
        for name in &names {
            self.index.turns.insert(name, into);
        }
        self.merge_twins(into, twins);
        self.turns[into].name_by_content();
        self.add_turn_names(into, names);
        // Ids derived from local names depend on the turn.
        for part in 0..self.turns[into].parts.len() {
            self.rename_part(into, part);
        }
        // Their occurrences have new numbers.
        for part in shift..self.turns[into].parts.len() {
            if !self.peek((into, part)).origin.occurrences.is_empty() {
                self.emit_origin((into, part));
            }
        }
        self.emit_turn_origin(into);
        self.arrange_steps(into);
        self.arrange_parts(into);
        self.number_turns(into);
        self.settle_thinking(into);
        self.settle(into);
        into
    }

    /// Feeds that were in the turn that is gone continue in the other one.
    fn redirect(&mut self, from: usize, into: usize, shift: usize) {
        for track in &mut self.tracks {
            let others = track.others.values_mut().filter_map(|other| other.turn.as_mut());
            for turn in track.turn.iter_mut().chain(others).filter(|turn| **turn == from) {
                *turn = into;
            }
            for at in track.nameless.iter_mut().chain(&mut track.open) {
                if at.0 == from {
                    *at = (into, at.1 + shift);
                }
            }
        }
    }

    /// Indexes the global names of parts and steps that a turn has just got.
    fn index_from(&mut self, turn: usize, first_part: usize, first_step: usize) {
        let Assembler { turns, index, .. } = self;
        let fold = &turns[turn];
        for (part, at) in fold.parts.iter().zip(0..).skip(first_part) {
            for name in part.origin.names.iter().filter(|name| !name.is_local()) {
                index.parts.insert(name, (turn, at));
            }
        }
        for (step, at) in fold.steps.iter().zip(0..).skip(first_step) {
            if !step.name.is_local() && !step.gone {
                index.steps.insert(&step.name, (turn, at));
            }
        }
    }

    /// Merges parts of both turns that share a name and are one part.
    fn merge_twins(&mut self, turn: usize, twins: Vec<Twins>) {
        for (from, to, name) in twins {
            let parts = &self.turns[turn].parts;
            let (from, to) = if parts[to].is_only_hooks() && !parts[from].is_only_hooks() {
                (to, from)
            } else {
                (from, to)
            };
            if are_one(&parts[from], &parts[to]) {
                self.merge_parts(turn, from, to);
                self.turns[turn].set_local(name, to);
            }
        }
    }
}

/// True if two parts with the same name are one part. Equal content does not merge parts that their
/// feeds name differently.
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
                || from.is_named_by_content() != to.is_named_by_content()
        }
        (None, None) => nameless(from) || nameless(to),
    }
}
