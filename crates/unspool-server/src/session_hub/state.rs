//! The state of a session hub: painted turns, sub-agents, and the changes since the last paint.

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::change::ChangeSet;
use unspool_model::change::{Touched, Urgency};
use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_model::part::Kind;
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
    /// Sessions that were no sub-agents when they were last looked up.
    pub strangers: FxHashSet<SessionId>,
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
            // A session that is new may be one of a sub-agent.
            let is_known = self.subagents.contains_key(&published.session);
            if !is_known && !self.strangers.insert(published.session) {
                return None;
            }
            self.pending.agents.insert(published.session);
            return Some(Urgency::Text);
        }
        if published.is_user_change() {
            // Names, tags and notes are not in the changes: pages fetch what they show again.
            self.pending.all = true;
            return Some(Urgency::State);
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
        let HubState { painted, pending, strangers, .. } = self;
        pending.opened.extend(&touched.opened);
        let renumbered = |turn: &TurnId| !pending.opened.contains(turn);
        pending.all |= touched.renumbered.iter().any(renumbered) || !touched.renamed.is_empty();
        pending.heads.extend(&touched.heads);
        pending.parts.extend(&touched.parts);
        if touched.opened_parts.iter().any(|(_, part)| part.kind == Kind::Agent) {
            // Its session may have been recorded before.
            pending.agents.extend(strangers.drain());
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use unspool_model::change::Delta;
    use unspool_model::id::Id;
    use unspool_model::part::Place;
    use unspool_model::skeleton::PartSkeleton;

    use super::*;

    fn written(session: SessionId, seq: u64, opened: Vec<(TurnId, PartSkeleton)>) -> ChangeSet {
        let touched = Touched { opened_parts: opened, ..Touched::default() };
        ChangeSet {
            session,
            agent: "claude-code".to_owned(),
            agent_session_id: String::new(),
            from_seq: seq - 1,
            seq,
            delta: Some(Arc::new(Delta { changes: Vec::new(), touched })),
        }
    }

    /// The log of a sub-agent may come after the part that starts it, or before.
    #[test]
    fn a_new_session_may_be_one_of_a_sub_agent() {
        let (own, other) = (SessionId::of("claude-code", "a"), SessionId::of("claude-code", "b"));
        let mut state = HubState::default();
        assert_eq!(state.take(own, &written(other, 1, Vec::new())), Some(Urgency::Text));
        assert!(std::mem::take(&mut state.pending).agents.contains(&other));
        assert_eq!(state.take(own, &written(other, 2, Vec::new())), None);
        let part = PartSkeleton {
            id: PartId(Id::derive([b"agent".as_slice()])),
            place: Place(1),
            kind: Kind::Agent,
            step: None,
            tool: None,
            state: None,
            started_ms: None,
            ended_ms: None,
        };
        let turn = TurnId(Id::derive([b"turn".as_slice()]));
        assert!(state.take(own, &written(own, 1, vec![(turn, part)])).is_some());
        assert!(state.pending.agents.contains(&other));
    }
}
