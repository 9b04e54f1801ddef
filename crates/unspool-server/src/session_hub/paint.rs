//! Paints the changes of a session into DOM operations. Loads the turns and parts that changed from
//! the archive; if too much changed, pages reload instead.

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use serde_json::json;
use unspool_export::html::dom;
use unspool_export::html::session_head::session_head;
use unspool_export::html::turn::turn;
use unspool_model::id::{PartId, TurnId, digest};
use unspool_model::part::Place;
use unspool_model::skeleton::Skeleton;
use unspool_query::subagents::subagents;
use unspool_query::window::fill;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, StoreError, StoredSession, SubagentRef, View};
use unspool_view::present::notes::NoteViews;
use unspool_view::present::tools::Tasks;
use unspool_view::present::{self, TurnView};

use super::SessionHub;
use super::dom_op::{DomOp, Message};
use super::painted_turn::PaintedTurn;
use super::state::{HubState, Pending};
use crate::pages::session::{head_figures, template};

/// Skeletons kept: the running turn and turns with late changes.
const MAX_PAINTED_TURNS: usize = 8;
/// If more changed parts than this are in unloaded turns, pages reload instead.
const MAX_PART_LOOKUPS: usize = 4;

/// A turn that pages do not have yet.
struct NewTurn {
    number: u32,
    /// The DOM id of the preceding turn.
    after: Option<String>,
}

impl<S: Store> SessionHub<S> {
    /// Sends the differences since the last paint.
    pub(super) fn paint(&self, state: &mut HubState) -> Result<(), StoreError> {
        let pending = std::mem::take(&mut state.pending);
        let mut ops = Vec::new();
        if pending.all {
            self.reset(state)?;
            ops.push(DomOp::Load);
        }
        let Some(stored) = self.stored()? else {
            let message = json!({ "type": "deleted", "session": self.id }).to_string();
            let _ = self.out.send(message.into());
            return Ok(());
        };
        let prices = &self.app.settings.prices;
        let figures = block_on(head_figures(&self.app.view(), &stored, prices))?;
        let head = session_head(&stored.summary, prices, &figures).into_string();
        let latest = digest(head.as_bytes());
        if std::mem::replace(&mut state.head, latest) != latest {
            ops.push(DomOp::Head { html: head });
        }
        if !pending.all {
            self.paint_turns(state, &stored, pending, &mut ops)?;
        }
        if !ops.is_empty() {
            let message = Message { r#type: "html", session: self.id, seq: state.seq, ops: &ops };
            let message = serde_json::to_string(&message).unwrap_or_default();
            // Fails only when there is no subscriber.
            let _ = self.out.send(message.into());
        }
        Ok(())
    }

    fn paint_turns(
        &self,
        state: &mut HubState,
        stored: &StoredSession,
        pending: Pending,
        ops: &mut Vec<DomOp>,
    ) -> Result<(), StoreError> {
        let Pending { opened, turns, heads, mut parts, new_parts, removed, agents, .. } = pending;
        ops.extend(removed.into_iter().map(|part| DomOp::Drop { id: dom::part(part) }));
        if !agents.is_empty() {
            self.load_subagents(state, stored)?;
            let shown = agents.iter().filter_map(|agent| state.subagents.get(agent));
            for relative in shown.copied().collect::<Vec<SubagentRef>>() {
                let painted = self.load_turn(state, stored, relative.turn)?;
                parts.extend(painted.and_then(|painted| painted.part_at(relative.place)));
            }
        }
        // Changed parts in turns that are not loaded.
        let is_unlocated =
            |part: &&PartId| !new_parts.contains(*part) && state.turn_of(**part).is_none();
        let unlocated: Vec<PartId> = parts.iter().filter(is_unlocated).copied().collect();
        if unlocated.len() > MAX_PART_LOOKUPS {
            return self.reset_clients(state, ops);
        }
        for part in unlocated {
            if let Some((number, _)) = block_on(self.app.view().locate(stored.row, None, part))? {
                self.load_turn(state, stored, number)?;
            }
        }
        let new_turns = self.refresh(state, stored, opened, turns, heads)?;
        if state.painted.iter().any(|painted| painted.plans(&parts)) {
            let tasks: Tasks = block_on(self.app.view().plans(stored.row))?.iter().collect();
            ops.push(DomOp::Tasks { html: template::tasks(&tasks).into_string() });
        }
        for NewTurn { number, after } in new_turns {
            let Some(painted) = state.painted.iter_mut().find(|painted| painted.number() == number)
            else {
                continue;
            };
            let Some(places) = painted.all_places() else { return self.reset_clients(state, ops) };
            let (skeleton, id) = (painted.skeleton.clone(), self.id.to_string());
            let view = self.view(stored, skeleton, &places)?;
            ops.push(DomOp::Turn { html: turn(&id, &view).into_string(), after });
            painted.paint(&view, &mut Vec::new());
            ops.push(DomOp::Outline { html: template::outline_entry(&view).into_string() });
        }
        let mut drops = Vec::new();
        for at in 0..state.painted.len() {
            let Some(painted) = state.painted.get_mut(at) else { continue };
            if !painted.stale && !parts.iter().any(|part| painted.position(*part).is_some()) {
                continue;
            }
            let Some(due) = painted.due(&parts) else { return self.reset_clients(state, ops) };
            let view = self.view(stored, painted.skeleton.clone(), &due.places)?;
            drops.extend(due.gone.into_iter().map(|id| DomOp::Drop { id }));
            painted.paint(&view, ops);
        }
        // A part that is in another turn now has the same element id there.
        ops.splice(..0, drops);
        Ok(())
    }

    /// Discards the operations and makes all pages reload.
    fn reset_clients(&self, state: &mut HubState, ops: &mut Vec<DomOp>) -> Result<(), StoreError> {
        ops.clear();
        ops.push(DomOp::Load);
        self.reset(state)?;
        Ok(())
    }

    /// The turn with this number, loaded if needed. Evicts the least recently used turn.
    fn load_turn<'s>(
        &self,
        state: &'s mut HubState,
        stored: &StoredSession,
        number: u32,
    ) -> Result<Option<&'s mut PaintedTurn>, StoreError> {
        match state.painted.iter().position(|painted| painted.number() == number) {
            Some(at) => {
                let painted = state.painted.remove(at);
                state.painted.push(painted);
            }
            None => {
                let Some(skeleton) = block_on(self.app.view().skeleton(stored.row, number))? else {
                    return Ok(None);
                };
                state.painted.push(PaintedTurn::new(skeleton));
                if state.painted.len() > MAX_PAINTED_TURNS {
                    state.painted.remove(0);
                }
            }
        }
        Ok(state.painted.last_mut())
    }

    /// Reloads the skeletons and heads of changed turns. Returns the turns that are new.
    fn refresh(
        &self,
        state: &mut HubState,
        stored: &StoredSession,
        opened: FxHashSet<TurnId>,
        turns: FxHashSet<TurnId>,
        heads: FxHashSet<TurnId>,
    ) -> Result<Vec<NewTurn>, StoreError> {
        let archive = &self.app.view();
        let mut unknown: FxHashSet<TurnId> = opened.clone();
        for id in turns.iter().chain(&heads) {
            let Some(painted) = state.painted.iter_mut().find(|painted| painted.id() == *id) else {
                unknown.insert(*id);
                continue;
            };
            let number = painted.number();
            if turns.contains(id) {
                if let Some(skeleton) = block_on(archive.skeleton(stored.row, number))? {
                    painted.replace(skeleton);
                }
            } else if let Some(turn) = block_on(archive.head(stored.row, number))? {
                painted.skeleton.turn = turn;
                painted.stale = true;
            }
        }
        let mut new_turns = Vec::new();
        let sizes =
            if unknown.is_empty() { Vec::new() } else { block_on(archive.sizes(stored.row))? };
        for (at, size) in sizes.iter().enumerate().filter(|(_, size)| unknown.contains(&size.id)) {
            if let Some(painted) = self.load_turn(state, stored, size.number)? {
                painted.stale = true;
            }
            if opened.contains(&size.id) {
                let before = at.checked_sub(1).and_then(|at| sizes.get(at));
                let after = before.map(|size| dom::turn(size.id));
                new_turns.push(NewTurn { number: size.number, after });
            }
        }
        Ok(new_turns)
    }

    /// Presents a turn with only these parts filled in.
    fn view(
        &self,
        stored: &StoredSession,
        mut skeleton: Skeleton,
        places: &[Place],
    ) -> Result<TurnView, StoreError> {
        let archive = &self.app.view();
        block_on(fill(archive, stored, &mut skeleton, places))?;
        stored.summary.settle(std::slice::from_mut(&mut skeleton.turn), Timestamp::now());
        let session = &stored.summary.session;
        let turns = std::slice::from_ref(&skeleton.turn);
        // Sub-agents that cannot be read now are joined with the next update.
        let subagents = block_on(subagents(archive, &session.agent, turns)).unwrap_or_default();
        let notes = NoteViews::of(&block_on(archive.notes(self.id))?);
        let folding = self.app.settings.folding;
        let base = present::PresentOptions::of(session);
        let options = present::PresentOptions { subagents, folding, notes, ..base };
        Ok(present::partial_turn(&skeleton.turn, &skeleton.parts, &options))
    }
}
