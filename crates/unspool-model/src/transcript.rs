//! Builds a transcript from changes alone. Live views, the store's rows and `show` all use this
//! fold, so a change has one meaning.
//!
//! The builder finds what a change is about and keeps the order; `patch` changes the fields.

mod patch;
mod turn_builder;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::change::{Change, PartPatch, SkipReason, TurnMergeField};
use crate::id::{PartId, SessionId, StepId, TurnId};
use crate::part::{Part, Place};
use crate::session::{Facts, Session, SessionState, Transcript, Turn};

pub use patch::patch_part;
use patch::{grow, merge_parts, merge_turn_fields, patch_turn};
use turn_builder::TurnBuilder;

/// Folds changes into a [`Transcript`].
#[derive(Clone, Debug)]
pub struct TranscriptBuilder {
    session: Session,
    /// In the order in which they were opened.
    turns: BTreeMap<TurnKey, TurnBuilder>,
    turn_keys: FxHashMap<TurnId, TurnKey>,
    next_turn: TurnKey,
    parts: FxHashMap<PartId, PartAddress>,
    skipped: FxHashMap<SkipReason, u64>,
}

/// Turns are numbered as they are opened. Unlike its id, this number of a turn never changes.
type TurnKey = u64;

/// Where a part is.
#[derive(Clone, Copy, Debug)]
struct PartAddress {
    turn: TurnKey,
    place: Place,
}

impl TranscriptBuilder {
    pub fn new(agent: &str, agent_session_id: &str) -> TranscriptBuilder {
        TranscriptBuilder {
            session: Session {
                id: SessionId::of(agent, agent_session_id),
                agent: agent.to_owned(),
                agent_session_id: agent_session_id.to_owned(),
                facts: Facts::default(),
                state: SessionState::default(),
                parent: None,
                forked_from: None,
            },
            turns: BTreeMap::new(),
            turn_keys: FxHashMap::default(),
            next_turn: 0,
            parts: FxHashMap::default(),
            skipped: FxHashMap::default(),
        }
    }

    /// The number of skipped events, by reason.
    pub fn skip_counts(&self) -> impl Iterator<Item = (SkipReason, u64)> + '_ {
        self.skipped.iter().map(|(reason, count)| (*reason, *count))
    }

    pub fn apply_all(&mut self, changes: impl IntoIterator<Item = Change>) {
        changes.into_iter().for_each(|change| self.apply(change));
    }

    pub fn apply(&mut self, change: Change) {
        match change {
            Change::SessionUpdated { facts, state } => {
                self.session.parent.clone_from(&facts.reported_parent);
                self.session.forked_from.clone_from(&facts.forked_from);
                self.session.facts = *facts;
                self.session.state = state;
            }
            Change::TurnOpened { turn } => self.push_turn(TurnBuilder::new(turn)),
            Change::TurnUpdated { turn, patch } => {
                if let Some(held) = self.turn(turn) {
                    patch_turn(&mut held.turn, *patch);
                }
            }
            Change::TurnRenamed { turn, to } => {
                if let Some(held) = self.turn(turn) {
                    held.turn.id = to;
                    let key = self.turn_keys.remove(&turn);
                    self.turn_keys.extend(key.map(|key| (to, key)));
                }
            }
            Change::TurnMerged { turn, into, take } => self.merge_turns(turn, into, &take),
            Change::StepUpdated { turn, place, step } => {
                if let Some(held) = self.turn(turn) {
                    held.upsert_step(place, *step);
                }
            }
            Change::StepRemoved { turn, step, parts, previous } => {
                if let Some(held) = self.turn(turn) {
                    held.remove_step(step);
                }
                for part in parts {
                    if let Some((turn, at)) = self.part(part) {
                        turn.turn.parts[at].step = previous;
                    }
                }
            }
            Change::PartOpened { turn, part } => {
                self.adopt_part(turn, *part);
            }
            Change::PartDelta { part, field, text } => {
                if let Some((turn, at)) = self.part(part) {
                    grow(&mut turn.turn.parts[at], field, &text);
                }
            }
            Change::PartUpdated { part, patch } => self.update_part(part, *patch),
            Change::PartRenamed { part: id, to } => {
                if let Some((turn, at)) = self.part(id) {
                    turn.turn.parts[at].id = to;
                    let address = self.parts.remove(&id);
                    self.parts.extend(address.map(|address| (to, address)));
                }
            }
            Change::PartMerged { part: id, into, take } => {
                if let Some(gone) = self.take_part(id)
                    && let Some((turn, at)) = self.part(into)
                {
                    merge_parts(&mut turn.turn.parts[at], gone, &take);
                }
            }
            Change::PartMoved { part: id, to } => {
                if self.turn_keys.contains_key(&to)
                    && let Some(part) = self.take_part(id)
                {
                    self.adopt_part(to, Part { step: None, ..part });
                }
            }
            Change::PartRemoved { part: id } => {
                self.take_part(id);
            }
            Change::PromptRecorded(_) | Change::SnapshotTaken { .. } => {}
            Change::EventSkipped { reason } => *self.skipped.entry(reason).or_default() += 1,
        }
    }

    /// The current transcript.
    pub fn transcript(&self) -> Transcript {
        self.clone().into_transcript()
    }

    pub fn into_transcript(self) -> Transcript {
        let mut turns: Vec<Turn> = self.turns.into_values().map(|turn| turn.turn).collect();
        turns.iter_mut().for_each(|turn| turn.parts.retain(|part| !part.origin.is_hidden()));
        turns.sort_by_key(|turn| turn.number);
        Transcript { session: self.session, turns }
    }

    /// The transcript including hidden parts, so that the assembler can resume from it. The form
    /// that the store keeps.
    pub fn rows(&self) -> Transcript {
        let turns = self.turns().cloned().collect();
        Transcript { session: self.session.clone(), turns }
    }

    pub fn turn_ids(&self) -> impl Iterator<Item = TurnId> + '_ {
        self.turns().map(|turn| turn.id)
    }

    /// The turns in the order in which they were opened.
    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.values().map(|turn| &turn.turn)
    }

    /// Sorts turns by the order in which they were opened. Drops repeated and unknown ones.
    pub fn sort_turns(&self, turns: &mut Vec<TurnId>) {
        let key = |turn: &TurnId| self.turn_keys.get(turn).copied();
        turns.retain(|turn| key(turn).is_some());
        turns.sort_unstable_by_key(key);
        turns.dedup();
    }

    /// The turn of a part.
    pub fn turn_of(&self, part: PartId) -> Option<TurnId> {
        Some(self.turns.get(&self.parts.get(&part)?.turn)?.turn.id)
    }

    /// One turn, by its id.
    pub fn find_turn(&self, id: TurnId) -> Option<&Turn> {
        Some(&self.turns.get(self.turn_keys.get(&id)?)?.turn)
    }

    /// The index from which on the steps of a turn differ if this one is put at this place.
    pub fn first_moved_step(&self, turn: TurnId, step: StepId, place: Place) -> Option<usize> {
        let held = self.turns.get(self.turn_keys.get(&turn)?)?;
        let before = held.places.get(&step).and_then(|place| held.find_step(step, *place));
        let after = held.step_places.partition_point(|other| *other < place);
        Some(before.map_or(after, |(at, _)| at.min(after)))
    }

    /// One part, by its id.
    pub fn find_part(&self, id: PartId) -> Option<&Part> {
        let address = self.parts.get(&id)?;
        let turn = self.turns.get(&address.turn)?;
        turn.turn.parts.get(turn.find_part(id, address.place)?)
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Removes a turn and returns it.
    pub fn take_turn(&mut self, id: TurnId) -> Option<Turn> {
        let turn = self.turns.remove(&self.turn_keys.remove(&id)?)?.turn;
        turn.parts.iter().for_each(|part| {
            self.parts.remove(&part.id);
        });
        Some(turn)
    }

    /// Adds a complete turn.
    pub fn adopt_turn(&mut self, turn: Turn) {
        let key = self.next_turn;
        let address = |part: &Part| (part.id, PartAddress { turn: key, place: part.place });
        self.parts.extend(turn.parts.iter().map(address));
        let step_places = turn.step_places();
        let places = turn.steps.iter().zip(&step_places);
        let places = places.map(|(step, place)| (step.id, *place)).collect();
        self.push_turn(TurnBuilder { turn, step_places, places });
    }

    fn push_turn(&mut self, turn: TurnBuilder) {
        self.turn_keys.insert(turn.turn.id, self.next_turn);
        self.turns.insert(self.next_turn, turn);
        self.next_turn += 1;
    }

    /// Removes a part and returns it.
    pub fn take_part(&mut self, id: PartId) -> Option<Part> {
        let address = self.parts.remove(&id)?;
        let turn = self.turns.get_mut(&address.turn)?;
        let at = turn.find_part(id, address.place)?;
        Some(turn.turn.parts.remove(at))
    }

    /// Removes parts of one turn, in one pass.
    pub fn drop_parts(&mut self, turn: TurnId, parts: &[PartId]) {
        for part in parts {
            self.parts.remove(part);
        }
        let TranscriptBuilder { turns, turn_keys, parts, .. } = self;
        if let Some(turn) = turn_keys.get(&turn).and_then(|key| turns.get_mut(key)) {
            turn.turn.parts.retain(|part| parts.contains_key(&part.id));
        }
    }

    /// Inserts a part at its place.
    pub fn adopt_part(&mut self, turn: TurnId, part: Part) {
        let Some(key) = self.turn_keys.get(&turn).copied() else { return };
        if let Some(turn) = self.turns.get_mut(&key) {
            self.parts.insert(part.id, PartAddress { turn: key, place: part.place });
            turn.insert(part);
        }
    }

    /// Resumes from the head of a stored session, without turns.
    pub fn resume(session: Session) -> TranscriptBuilder {
        let mut builder = TranscriptBuilder::new(&session.agent, &session.agent_session_id);
        builder.session = session;
        builder
    }

    fn turn(&mut self, id: TurnId) -> Option<&mut TurnBuilder> {
        self.turns.get_mut(self.turn_keys.get(&id)?)
    }

    /// The turn of a part, and the index of the part there.
    fn part(&mut self, id: PartId) -> Option<(&mut TurnBuilder, usize)> {
        let address = self.parts.get(&id)?;
        let turn = self.turns.get_mut(&address.turn)?;
        let at = turn.find_part(id, address.place)?;
        Some((turn, at))
    }

    fn update_part(&mut self, id: PartId, patch: PartPatch) {
        let Some((turn, at)) = self.part(id) else { return };
        let part = &mut turn.turn.parts[at];
        let moved = patch.place.filter(|place| *place != part.place);
        patch_part(part, patch);
        if let Some(place) = moved {
            turn.put_back(at);
            if let Some(address) = self.parts.get_mut(&id) {
                address.place = place;
            }
        }
    }

    fn merge_turns(&mut self, turn: TurnId, into: TurnId, take: &[TurnMergeField]) {
        let keys = &mut self.turn_keys;
        let (Some(&from), Some(&to)) = (keys.get(&turn), keys.get(&into)) else { return };
        if from == to {
            return;
        }
        keys.remove(&turn);
        let Some(gone) = self.turns.remove(&from) else { return };
        let Some(kept) = self.turns.get_mut(&to) else { return };
        for (place, step) in gone.step_places.iter().zip(&gone.turn.steps) {
            kept.upsert_step(*place, step.clone());
        }
        let (kept, mut gone) = (&mut kept.turn, gone.turn);
        merge_turn_fields(kept, &mut gone, take);
        let address = |part: &Part| (part.id, PartAddress { turn: to, place: part.place });
        self.parts.extend(gone.parts.iter().map(address));
        kept.parts.extend(gone.parts);
        kept.parts.sort_by_key(|part| part.place);
    }
}
