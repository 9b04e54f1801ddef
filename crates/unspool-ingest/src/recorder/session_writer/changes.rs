//! Applies the assembler's changes to a session: to its transcript, to the rows that it tracks, and
//! to the counts of turns and parts.

use unspool_model::change::{Change, PartPatch, SkipReason, TurnMergeField, TurnPatch};
use unspool_model::event::Event;
use unspool_model::id::{PartId, StepId, TurnId};
use unspool_model::note::NoteTarget;
use unspool_model::part::Place;
use unspool_model::provenance::Name;
use unspool_store::rows::{RowId, Snapshot};

use super::{SessionWriter, TrackedPart, TrackedTurn};

/// Change in the number of turns and visible parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CountDelta {
    pub turns: i64,
    pub parts: i64,
}

/// A turn or part that must be loaded from the store before a change can be applied.
pub enum Missing {
    Turn(TurnId),
    Part { id: PartId, row: RowId },
}

impl SessionWriter {
    /// Applies an event to the assembler. The caller passes the changes to `take`.
    pub fn apply(&mut self, event: Event) -> Vec<Change> {
        self.seq += 1;
        self.assembler.apply(event)
    }

    /// Orders the turns of several files of one feed. The caller passes the changes to `take`.
    pub fn order_sources(&mut self) -> Vec<Change> {
        let changes = self.assembler.order_sources();
        self.seq += u64::from(!changes.is_empty());
        changes
    }

    /// What must be loaded before `take` can apply this change.
    pub fn missing(&self, change: &Change) -> Vec<Missing> {
        let turn = |id: &TurnId| match self.turns.contains_key(id) {
            true => None,
            false => Some(Missing::Turn(*id)),
        };
        let part = |id: &PartId| {
            let tracked = self.parts.get(id).filter(|tracked| tracked.evicted)?;
            Some(Missing::Part { id: *id, row: tracked.row })
        };
        match change {
            Change::TurnUpdated { turn: id, .. }
            | Change::TurnRenamed { turn: id, .. }
            | Change::StepUpdated { turn: id, .. }
            | Change::PartOpened { turn: id, .. } => turn(id).into_iter().collect(),
            Change::StepRemoved { turn: id, parts, .. } => {
                turn(id).into_iter().chain(parts.iter().filter_map(part)).collect()
            }
            Change::PartMoved { part: id, to } => {
                [part(id), turn(to)].into_iter().flatten().collect()
            }
            Change::TurnMerged { turn: from, into, .. } => {
                // Its row is deleted, and with it the names of its evicted parts.
                let partial = self.turns.get(from).filter(|turn| turn.partial);
                let evicted = partial.into_iter().flat_map(|turn| {
                    let evicted = |part: &TrackedPart| part.evicted && part.turn == turn.row;
                    self.parts.iter().filter(move |(_, part)| evicted(part))
                });
                let evicted = evicted.map(|(id, part)| Missing::Part { id: *id, row: part.row });
                [turn(from), turn(into)].into_iter().flatten().chain(evicted).collect()
            }
            Change::PartDelta { part: id, .. }
            | Change::PartUpdated { part: id, .. }
            | Change::PartRenamed { part: id, .. }
            | Change::PartRemoved { part: id } => part(id).into_iter().collect(),
            Change::PartMerged { part: from, into, .. } => {
                [part(from), part(into)].into_iter().flatten().collect()
            }
            Change::SessionUpdated { .. }
            | Change::TurnOpened { .. }
            | Change::PromptRecorded(_)
            | Change::SnapshotTaken { .. }
            | Change::EventSkipped { .. } => Vec::new(),
        }
    }

    /// Applies a change to the transcript and marks the affected rows as dirty.
    pub fn take(&mut self, change: Change) {
        self.count(&change);
        self.mark_dirty(&change);
        if self.has_subscribers {
            self.delta.push(change.clone(), &self.transcript);
        }
        self.transcript.apply(change);
    }

    fn mark_dirty(&mut self, change: &Change) {
        match change {
            Change::SessionUpdated { .. } => self.head_dirty = true,
            Change::TurnOpened { turn } => self.open_turn(*turn),
            Change::TurnUpdated { turn, patch } => self.update_turn(*turn, patch),
            Change::StepUpdated { turn, place, step } => self.update_step(*turn, *place, step.id),
            Change::TurnRenamed { turn, to } => {
                self.moved_targets.push((NoteTarget::Turn(*turn), NoteTarget::Turn(*to)));
                self.rename_turn(*turn, *to);
            }
            Change::TurnMerged { turn, into, take } => {
                self.moved_targets.push((NoteTarget::Turn(*turn), NoteTarget::Turn(*into)));
                self.merge_turns(*turn, *into, take);
            }
            Change::StepRemoved { turn, step, parts, .. } => self.remove_step(*turn, *step, parts),
            Change::PartMoved { part, to } => self.move_part(*part, *to),
            Change::PartOpened { turn, part } => self.open_part(*turn, part.id),
            Change::PartDelta { part, .. } => self.touch_part(*part),
            Change::PartUpdated { part, patch } => self.update_part(*part, patch),
            Change::PartRenamed { part, to } => {
                self.moved_targets.push((NoteTarget::Part(*part), NoteTarget::Part(*to)));
                self.rename_part(*part, *to);
            }
            Change::PartMerged { part, into, .. } => {
                self.moved_targets.push((NoteTarget::Part(*part), NoteTarget::Part(*into)));
                self.touch_part(*into);
                self.touch_turn_of(*part);
                self.forget_part(*part);
            }
            Change::PartRemoved { part } => {
                self.touch_turn_of(*part);
                self.forget_part(*part);
            }
            Change::PromptRecorded(record) => self.prompts.push((**record).clone()),
            Change::SnapshotTaken { kind, sha256, content } => {
                self.snapshots.push(Snapshot {
                    kind: kind.clone(),
                    sha256: sha256.clone(),
                    content: content.text().to_owned(),
                });
            }
            Change::EventSkipped { reason } => {
                // Duplicates come from re-reading a file and say nothing about the session.
                if *reason != SkipReason::Duplicate {
                    *self.skip_counts.entry(reason.name().to_owned()).or_default() += 1;
                }
            }
        }
    }

    fn open_turn(&mut self, id: TurnId) {
        let tracked = TrackedTurn {
            row: self.row_ids.turn(),
            stored: false,
            dirty: false,
            user: Vec::new(),
            user_dirty: false,
            partial: false,
            unsettled: false,
            steps_from: 0,
            forgotten_names: Vec::new(),
        };
        self.turns.insert(id, tracked);
        self.touch_turn(id);
    }

    fn update_step(&mut self, turn: TurnId, place: Place, step: StepId) {
        self.touch_turn(turn);
        let from = self.transcript.first_moved_step(turn, step, place).unwrap_or(0);
        if let Some(tracked) = self.turns.get_mut(&turn) {
            tracked.steps_from = tracked.steps_from.min(from);
        }
    }

    fn remove_step(&mut self, turn: TurnId, step: StepId, parts: &[PartId]) {
        self.touch_turn(turn);
        parts.iter().for_each(|part| self.touch_part(*part));
        let held = self.transcript.find_turn(turn).and_then(|turn| {
            let at = turn.steps.iter().position(|held| held.id == step)?;
            Some((at, turn.steps[at].name.digest()))
        });
        if let (Some((at, name)), Some(tracked)) = (held, self.turns.get_mut(&turn)) {
            tracked.steps_from = tracked.steps_from.min(at);
            tracked.forgotten_names.push(name);
        }
    }

    /// The part goes to another turn. Its row stays the same.
    fn move_part(&mut self, id: PartId, to: TurnId) {
        self.touch_part(id);
        self.touch_turn_of(id);
        self.touch_turn(to);
        let names = self.transcript.find_part(id).map(|part| &part.origin.names);
        let names = names.into_iter().flatten().filter(|name| !name.is_local());
        let names: Vec<u64> = names.map(Name::digest).collect();
        let from = self.transcript.turn_of(id).and_then(|from| self.turns.get_mut(&from));
        if let Some(from) = from {
            from.forgotten_names.extend(names);
        }
        let row = self.turns.get(&to).map(|turn| turn.row);
        if let (Some(tracked), Some(row)) = (self.parts.get_mut(&id), row) {
            if tracked.stored {
                tracked.moved_from.get_or_insert(tracked.turn);
            }
            tracked.turn = row;
        }
        self.moved_parts.push(id);
    }

    fn update_turn(&mut self, id: TurnId, patch: &TurnPatch) {
        let user =
            patch.user.is_some() || patch.user_replayed.is_some() || !patch.user_added.is_empty();
        self.touch_turn(id);
        if let Some(tracked) = self.turns.get_mut(&id) {
            tracked.user_dirty |= user;
        }
    }

    fn rename_turn(&mut self, id: TurnId, to: TurnId) {
        if let Some(mut tracked) = self.turns.remove(&id) {
            // The ids of the user parts are derived from the turn's id.
            tracked.user_dirty = true;
            self.turns.insert(to, tracked);
            self.dirty_turns.push(to);
            self.touch_turn(to);
        }
    }

    fn open_part(&mut self, turn: TurnId, id: PartId) {
        let tracked = TrackedPart {
            row: self.row_ids.part(),
            turn: self.turns.get(&turn).map_or(0, |turn| turn.row),
            dirty: false,
            stored: false,
            open: false,
            evicted: false,
            moved_from: None,
        };
        self.parts.insert(id, tracked);
        self.touch_part(id);
        self.touch_turn(turn);
    }

    fn update_part(&mut self, id: PartId, patch: &PartPatch) {
        self.touch_part(id);
        // The turn's row holds the digests of all its parts' names.
        let tracked = self.transcript.find_part(id).map(|part| &part.origin.names);
        if patch.origin.as_ref().is_some_and(|found| Some(&found.names) != tracked) {
            self.touch_turn_of(id);
        }
    }

    fn rename_part(&mut self, id: PartId, to: PartId) {
        if let Some(tracked) = self.parts.remove(&id) {
            self.parts.insert(to, tracked);
            self.dirty_parts.push(to);
            self.touch_part(to);
        }
    }

    fn touch_turn(&mut self, id: TurnId) {
        if let Some(tracked) = self.turns.get_mut(&id).filter(|tracked| !tracked.dirty) {
            tracked.dirty = true;
            self.dirty_turns.push(id);
        }
    }

    fn touch_part(&mut self, id: PartId) {
        if let Some(tracked) = self.parts.get_mut(&id).filter(|tracked| !tracked.dirty) {
            tracked.dirty = true;
            self.dirty_parts.push(id);
        }
    }

    /// Marks the turn of a part as dirty, because its sums and names will change.
    fn touch_turn_of(&mut self, id: PartId) {
        if let Some(turn) = self.transcript.turn_of(id) {
            self.touch_turn(turn);
        }
    }

    fn forget_part(&mut self, id: PartId) {
        if let Some(tracked) = self.parts.remove(&id).filter(|tracked| tracked.stored) {
            self.deleted_parts.push(tracked.row);
        }
    }

    fn merge_turns(&mut self, from: TurnId, into: TurnId, take: &[TurnMergeField]) {
        let Some(merged_away) = self.turns.remove(&from) else { return };
        self.deleted_parts.extend(&merged_away.user);
        self.touch_turn(into);
        let Some(tracked) = self.turns.get_mut(&into) else { return };
        tracked.user_dirty |= take.contains(&TurnMergeField::User);
        tracked.steps_from = 0;
        // Move its parts to the other turn, evicted ones included.
        if merged_away.partial {
            for part in self.parts.values_mut().filter(|part| part.turn == merged_away.row) {
                part.turn = tracked.row;
            }
        } else if let Some(turn) = self.transcript.find_turn(from) {
            for part in &turn.parts {
                if let Some(part) = self.parts.get_mut(&part.id) {
                    part.turn = tracked.row;
                }
            }
        }
        self.merged.push((merged_away.row, tracked.row));
    }

    /// Returns and resets the counts since the last call.
    pub fn take_count_delta(&mut self) -> CountDelta {
        std::mem::take(&mut self.count_delta)
    }

    /// Updates the counts of turns and visible parts. Merges and removals count negative.
    fn count(&mut self, change: &Change) {
        let shown = |writer: &SessionWriter, id: &PartId| {
            i64::from(writer.transcript.find_part(*id).is_some_and(|part| !part.origin.is_hidden()))
        };
        match change {
            Change::TurnOpened { .. } => self.count_delta.turns += 1,
            Change::TurnMerged { .. } => self.count_delta.turns -= 1,
            Change::PartOpened { part, .. } => {
                self.count_delta.parts += i64::from(!part.origin.is_hidden())
            }
            Change::PartMerged { part, .. } | Change::PartRemoved { part } => {
                self.count_delta.parts -= shown(self, part);
            }
            Change::PartUpdated { part, patch } => {
                if let Some(origin) = &patch.origin {
                    self.count_delta.parts += i64::from(!origin.is_hidden()) - shown(self, part);
                }
            }
            Change::SessionUpdated { .. }
            | Change::TurnUpdated { .. }
            | Change::TurnRenamed { .. }
            | Change::StepUpdated { .. }
            | Change::StepRemoved { .. }
            | Change::PartMoved { .. }
            | Change::PartDelta { .. }
            | Change::PartRenamed { .. }
            | Change::PromptRecorded(_)
            | Change::SnapshotTaken { .. }
            | Change::EventSkipped { .. } => {}
        }
    }
}
