//! Merging feeds: if two feeds placed the same step or part in two turns, the turns are one, and
//! parts of both that share a name are one part.

use std::collections::hash_map::Entry;

use crate::change::Change;
use crate::provenance::{Feed, Name, RankedField};

use super::Assembler;
use super::fold::{PartFold, TurnFold};

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

    pub(super) fn merge_turns(&mut self, from: usize, into: usize) -> usize {
        let empty = TurnFold { gone: true, ..TurnFold::new(self.turns[from].id) };
        let gone = std::mem::replace(&mut self.turns[from], empty);
        self.out.push(Change::TurnMerged { turn: gone.id, into: self.turns[into].id });

        let kept = &mut self.turns[into];
        let shift = kept.parts.len();
        let step_shift = kept.steps.len();
        for feed in Feed::ALL {
            let at = feed.index();
            if let Some(position) = gone.origin.at.of(feed) {
                kept.origin.at.set(feed, position);
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
        kept.origin.pending_whitespace.extend(gone.origin.pending_whitespace);
        kept.origin.reserved_places.extend(gone.origin.reserved_places);
        kept.origin.thinking = match (kept.origin.thinking, gone.origin.thinking) {
            (Some(a), Some(b)) => Some(a || b),
            (a, b) => a.or(b),
        };
        if gone.origin.ranks.holder(RankedField::Name) > kept.origin.ranks.holder(RankedField::Name)
        {
            kept.is_command = gone.is_command;
        }
        kept.origin.ranks.join(gone.origin.ranks);
        kept.has_reasoning |= gone.has_reasoning;
        kept.has_fragments |= gone.has_fragments;
        kept.abandoned |= gone.abandoned;
        kept.inherited |= gone.inherited;
        for (key, count) in gone.occurrences {
            *kept.occurrences.entry(key).or_default() += count;
        }
        // Parts of both turns with the same name are one part.
        let mut twins: Vec<(usize, usize, Name)> = Vec::new();
        for (name, part) in gone.local {
            match kept.local.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(part + shift);
                }
                Entry::Occupied(entry) => {
                    twins.push((part + shift, *entry.get(), entry.key().clone()));
                }
            }
        }
        kept.parts.extend(gone.parts);
        kept.steps.extend(gone.steps);

        for part in shift..self.turns[into].parts.len() {
            for name in self.turns[into].parts[part].origin.names.clone() {
                if !name.is_local() {
                    self.index.parts.insert(&name, (into, part));
                }
            }
        }
        for step in step_shift..self.turns[into].steps.len() {
            let name = self.turns[into].steps[step].name.clone();
            if !name.is_local() {
                self.index.steps.insert(&name, (into, step));
            }
        }
        for name in &gone.origin.names {
            self.index.turns.insert(name, into);
        }
        for track in &mut self.tracks {
            let replay = track.replay.as_mut().and_then(|replay| replay.turn.as_mut());
            for turn in track.turn.iter_mut().chain(replay).filter(|turn| **turn == from) {
                *turn = into;
            }
            for at in track.nameless.iter_mut().chain(&mut track.open) {
                if at.0 == from {
                    *at = (into, at.1 + shift);
                }
            }
        }
        twins.sort_unstable();
        twins.dedup();
        for (from, to, name) in twins {
            let parts = &self.turns[into].parts;
            let (from, to) = if parts[to].is_only_hooks() && !parts[from].is_only_hooks() {
                (to, from)
            } else {
                (from, to)
            };
            if are_one(&parts[from], &parts[to]) {
                self.merge_parts(into, from, to);
                self.turns[into].local.insert(name, to);
            }
        }
        self.add_turn_names(into, gone.origin.names);
        // Ids derived from local names depend on the turn.
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
