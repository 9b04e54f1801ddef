//! The state of a session hub: painted turns, sub-agents, and the changes since the last paint.

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::change::ChangeSet;
use unspool_model::change::{Touched, Urgency};
use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_store::store::SubagentRef;

use super::painted_turn::PaintedTurn;

#[derive(Default)]
pub struct HubState {
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

impl HubState {
    /// Records a published batch and returns how soon it must be painted. None if it need not be.
    pub fn take(&mut self, id: SessionId, published: &ChangeSet) -> Option<Urgency> {
        if published.session != id {
            if !self.subagents.contains_key(&published.session) {
                return None;
            }
            self.pending.agents.insert(published.session);
            return Some(Urgency::Text);
        }
        if published.seq <= self.seq {
            return None;
        }
        let follows = published.from_seq == self.seq;
        self.seq = published.seq;
        let Some(delta) = published.delta.as_ref().filter(|_| follows) else {
            self.pending.all = true;
            return Some(Urgency::State);
        };
        self.note(&delta.touched);
        Some(published.urgency())
    }

    pub fn turn_of(&self, part: PartId) -> Option<TurnId> {
        let painted = self.painted.iter().find(|painted| painted.position(part).is_some());
        painted.map(PaintedTurn::id)
    }

    fn note(&mut self, touched: &Touched) {
        let HubState { painted, pending, .. } = self;
        pending.opened.extend(&touched.opened);
        let renumbered = |turn: &TurnId| !pending.opened.contains(turn);
        pending.all |= touched.renumbered.iter().any(renumbered) || !touched.renamed.is_empty();
        pending.heads.extend(&touched.heads);
        pending.parts.extend(&touched.parts);
        for (turn, part) in &touched.opened_parts {
            let painted = painted.iter_mut().find(|painted| painted.id() == *turn);
            if !painted.is_some_and(|painted| painted.append(part)) {
                pending.turns.insert(*turn);
                pending.new_parts.insert(part.id);
            }
        }
        for (part, update) in &touched.tool_updates {
            painted.iter_mut().for_each(|painted| painted.update_tool(*part, *update));
        }
        for turn in &touched.restructured {
            // Without the old layout it is not known which elements pages must remove.
            pending.all |= !painted.iter().any(|painted| painted.id() == *turn);
            pending.turns.insert(*turn);
        }
        pending.removed.extend(&touched.removed);
    }
}
