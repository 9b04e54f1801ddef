//! What a room knows of its session, and what happened in it since it was painted last.

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_core::change::{Change, TurnPatch};
use unspool_core::id::{PartId, SessionId, TurnId};
use unspool_engine::reader::{Growth, growth};
use unspool_store::contract::Relative;
use unspool_store::recorder::Published;

use super::known::Known;

#[derive(Default)]
pub struct State {
    pub seq: u64,
    pub head: u64,
    /// The last one was spoken of last.
    pub known: Vec<Known>,
    /// Its sub-agents, and where they are shown: what they do is shown here too.
    pub relatives: FxHashMap<SessionId, Relative>,
    pub pending: Pending,
}

/// What happened since the last painting.
#[derive(Default)]
pub struct Pending {
    pub opened: FxHashSet<TurnId>,
    /// Turns whose list of parts is not what it was.
    pub turns: FxHashSet<TurnId>,
    /// Turns of which something else is not what it was.
    pub heads: FxHashSet<TurnId>,
    pub parts: FxHashSet<PartId>,
    /// Parts whose turn is told anew.
    pub born: FxHashSet<PartId>,
    pub removed: Vec<PartId>,
    pub agents: FxHashSet<SessionId>,
    /// It cannot be said what happened.
    pub all: bool,
}

/// How soon something must be painted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    None,
    Text,
    State,
}

impl State {
    /// Takes what was published, and says how soon it must be seen.
    pub fn take(&mut self, id: SessionId, published: &Published) -> Urgency {
        if published.session != id {
            if !self.relatives.contains_key(&published.session) {
                return Urgency::None;
            }
            self.pending.agents.insert(published.session);
            return Urgency::Text;
        }
        if published.seq <= self.seq {
            return Urgency::None;
        }
        let follows = published.from_seq == self.seq;
        self.seq = published.seq;
        let Some(changes) = published.changes.as_ref().filter(|_| follows) else {
            self.pending.all = true;
            return Urgency::State;
        };
        changes.iter().for_each(|change| self.note(change));
        match growth(published) {
            Growth::Text => Urgency::Text,
            Growth::State => Urgency::State,
        }
    }

    pub fn turn_of(&self, part: PartId) -> Option<TurnId> {
        let known = self.known.iter().find(|known| known.position(part).is_some());
        known.map(Known::id)
    }

    fn note(&mut self, change: &Change) {
        let pending = &mut self.pending;
        match change {
            Change::SessionTold { .. } | Change::SnapshotTaken { .. } | Change::Counted { .. } => {}
            Change::TurnOpened { turn } => {
                pending.opened.insert(*turn);
            }
            Change::TurnTold { turn, patch } => {
                // Where it stands in each telling is not shown.
                let shown = TurnPatch { origin: None, ..(**patch).clone() };
                if patch.number.is_some() && !pending.opened.contains(turn) {
                    pending.all = true;
                } else if !shown.is_empty() {
                    pending.heads.insert(*turn);
                }
            }
            Change::StepTold { turn, .. } => {
                pending.heads.insert(*turn);
            }
            Change::TurnRenamed { .. } | Change::TurnMerged { .. } => pending.all = true,
            Change::PartOpened { turn, part } => {
                let known = self.known.iter_mut().find(|known| known.id() == *turn);
                let appended = known.is_some_and(|known| known.append(part));
                if !appended {
                    self.pending.turns.insert(*turn);
                    self.pending.born.insert(part.id);
                }
                self.pending.parts.insert(part.id);
            }
            Change::PartGrew { part, .. } => {
                pending.parts.insert(*part);
            }
            Change::PartTold { part, patch } => {
                pending.parts.insert(*part);
                let moves = patch.place.is_some() || patch.origin.is_some() || patch.step.is_some();
                if moves || patch.body.is_some() {
                    self.structure(*part);
                } else if let Some(state) = patch.tool.as_ref().and_then(|tool| tool.state) {
                    self.known.iter_mut().for_each(|known| known.tell_state(*part, state));
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

    /// The list of parts of the turn that this one stands in is not what it was.
    fn structure(&mut self, part: PartId) {
        match self.turn_of(part) {
            Some(turn) => {
                self.pending.turns.insert(turn);
            }
            None => self.pending.all = true,
        }
    }
}
