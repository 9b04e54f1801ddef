//! The state of a session hub: painted turns, sub-agents, and the changes since the last paint.

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_core::change::{Change, TurnPatch};
use unspool_core::id::{PartId, SessionId, TurnId};
use unspool_engine::reader::{Urgency, urgency};
use unspool_store::recorder::ChangeSet;
use unspool_store::store::SubagentRef;

use super::painted_turn::PaintedTurn;

#[derive(Default)]
pub struct State {
    pub seq: u64,
    pub head: u64,
    /// In order of last use, most recent last.
    pub painted: Vec<PaintedTurn>,
    /// The sub-agents and the part that shows each: their activity is painted there.
    pub subagents: FxHashMap<SessionId, SubagentRef>,
    pub pending: Pending,
}

/// The changes since the last paint.
#[derive(Default)]
pub struct Pending {
    pub opened: FxHashSet<TurnId>,
    /// Turns whose list of parts changed.
    pub turns: FxHashSet<TurnId>,
    /// Turns of which anything else changed.
    pub heads: FxHashSet<TurnId>,
    pub parts: FxHashSet<PartId>,
    /// Parts that are new in a turn whose skeleton must be reloaded.
    pub new_parts: FxHashSet<PartId>,
    pub removed: Vec<PartId>,
    pub agents: FxHashSet<SessionId>,
    /// The changes are not known: reload everything.
    pub all: bool,
}

/// How soon a change must be painted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepaintUrgency {
    None,
    Text,
    State,
}

impl State {
    /// Records a published batch and returns how soon it must be painted.
    pub fn take(&mut self, id: SessionId, published: &ChangeSet) -> RepaintUrgency {
        if published.session != id {
            if !self.subagents.contains_key(&published.session) {
                return RepaintUrgency::None;
            }
            self.pending.agents.insert(published.session);
            return RepaintUrgency::Text;
        }
        if published.seq <= self.seq {
            return RepaintUrgency::None;
        }
        let follows = published.from_seq == self.seq;
        self.seq = published.seq;
        let Some(changes) = published.changes.as_ref().filter(|_| follows) else {
            self.pending.all = true;
            return RepaintUrgency::State;
        };
        changes.iter().for_each(|change| self.note(change));
        match urgency(published) {
            Urgency::Text => RepaintUrgency::Text,
            Urgency::State => RepaintUrgency::State,
        }
    }

    pub fn turn_of(&self, part: PartId) -> Option<TurnId> {
        let painted = self.painted.iter().find(|painted| painted.position(part).is_some());
        painted.map(PaintedTurn::id)
    }

    fn note(&mut self, change: &Change) {
        let pending = &mut self.pending;
        match change {
            Change::SessionUpdated { .. }
            | Change::SnapshotTaken { .. }
            | Change::EventSkipped { .. } => {}
            Change::TurnOpened { turn } => {
                pending.opened.insert(*turn);
            }
            Change::TurnUpdated { turn, patch } => {
                // Positions in the feeds are not shown.
                let shown = TurnPatch { origin: None, ..(**patch).clone() };
                if patch.number.is_some() && !pending.opened.contains(turn) {
                    pending.all = true;
                } else if !shown.is_empty() {
                    pending.heads.insert(*turn);
                }
            }
            Change::StepUpdated { turn, .. } => {
                pending.heads.insert(*turn);
            }
            Change::TurnRenamed { .. } | Change::TurnMerged { .. } => pending.all = true,
            Change::PartOpened { turn, part } => {
                let painted = self.painted.iter_mut().find(|painted| painted.id() == *turn);
                let appended = painted.is_some_and(|painted| painted.append(part));
                if !appended {
                    self.pending.turns.insert(*turn);
                    self.pending.new_parts.insert(part.id);
                }
                self.pending.parts.insert(part.id);
            }
            Change::PartDelta { part, .. } => {
                pending.parts.insert(*part);
            }
            Change::PartUpdated { part, patch } => {
                pending.parts.insert(*part);
                let moves = patch.place.is_some() || patch.origin.is_some() || patch.step.is_some();
                if moves || patch.body.is_some() {
                    self.structure(*part);
                } else if let Some(state) = patch.tool.as_ref().and_then(|tool| tool.state) {
                    self.painted.iter_mut().for_each(|painted| painted.set_state(*part, state));
                }
            }
            Change::PartRenamed { part, .. }
            | Change::PartMerged { part, .. }
            | Change::PartRemoved { part } => {
                pending.removed.push(*part);
                self.structure(*part);
            }
        }
    }

    /// Marks the turn of a part as having another list of parts.
    fn structure(&mut self, part: PartId) {
        match self.turn_of(part) {
            Some(turn) => {
                self.pending.turns.insert(turn);
            }
            None => self.pending.all = true,
        }
    }
}
