//! One session while it is recorded: the assembler, the transcript built from its changes, and the
//! set of dirty rows. It does no I/O: the recorder loads the turns and parts that it needs and
//! writes its dirty rows with `Packer`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rustc_hash::FxHashMap;
use unspool_core::assemble::{Assembler, Cursor};
use unspool_core::change::{Change, Delta, TurnMergeField};
use unspool_core::event::Event;
use unspool_core::id::{PartId, SessionId, TurnId};
use unspool_core::part::Part;
use unspool_core::provenance::{Feed, Name};
use unspool_core::session::{Session, Turn};
use unspool_core::summary::Completeness;
use unspool_core::transcript::TranscriptBuilder;

use crate::rows::{RowId, Snapshot, SourceRow};
use crate::store::{NextRows, SessionOutline, StoredTurn};

/// Allocates row numbers. The recorder is the only writer, so counters suffice.
pub struct RowIds {
    session: AtomicI64,
    turn: AtomicI64,
    part: AtomicI64,
    chunk: AtomicI64,
    file: AtomicI64,
}

fn next(count: &AtomicI64) -> RowId {
    count.fetch_add(1, Ordering::Relaxed)
}

impl RowIds {
    pub fn new(rows: NextRows) -> RowIds {
        RowIds {
            session: rows.session.into(),
            turn: rows.turn.into(),
            part: rows.part.into(),
            chunk: rows.chunk.into(),
            file: rows.file.into(),
        }
    }

    pub fn part(&self) -> RowId {
        next(&self.part)
    }

    pub fn chunk(&self) -> RowId {
        next(&self.chunk)
    }

    pub fn file(&self) -> RowId {
        next(&self.file)
    }
}

pub(crate) struct TrackedTurn {
    pub row: RowId,
    /// It has a row already.
    pub stored: bool,
    pub dirty: bool,
    /// The rows of the user's message.
    pub user: Vec<RowId>,
    pub user_dirty: bool,
    /// Some of its parts are only in the store, not in memory.
    pub partial: bool,
    /// It is marked as unsettled in the store.
    pub unsettled: bool,
}

pub(crate) struct TrackedPart {
    pub row: RowId,
    /// The row of its turn.
    pub turn: RowId,
    pub dirty: bool,
    /// It has a row already.
    pub stored: bool,
    /// Its payload is in the journal.
    pub open: bool,
    /// It is only in the store, not in memory.
    pub evicted: bool,
}

/// A session that is being recorded.
pub struct SessionWriter {
    pub row: RowId,
    pub id: SessionId,
    pub(crate) assembler: Assembler,
    pub(crate) transcript: TranscriptBuilder,
    pub(crate) turns: FxHashMap<TurnId, TrackedTurn>,
    pub(crate) parts: FxHashMap<PartId, TrackedPart>,
    pub(crate) dirty_turns: Vec<TurnId>,
    pub(crate) dirty_parts: Vec<PartId>,
    /// Merged turns: the row that goes, and the row it was merged into.
    pub(crate) merged: Vec<(RowId, RowId)>,
    pub(crate) deleted_parts: Vec<RowId>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) head_dirty: bool,
    pub(crate) stored: bool,
    pub(crate) seq: u64,
    pub(crate) skip_counts: BTreeMap<String, u64>,
    pub sources: Vec<SourceRow>,
    row_ids: Arc<RowIds>,
    /// Changes to publish after the commit; empty while there are no subscribers.
    pub(crate) delta: Delta,
    pub(crate) has_subscribers: bool,
    /// The last published seq.
    pub(crate) published: u64,
    /// The last seq that was written or is in the current batch.
    pub(crate) written: u64,
    /// Turns and visible parts added since `take_count_delta`.
    count_delta: CountDelta,
}

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
    /// A session that is not stored yet.
    pub fn new(agent: &str, agent_session_id: &str, row_ids: &Arc<RowIds>) -> SessionWriter {
        let id = SessionId::of(agent, agent_session_id);
        let transcript = TranscriptBuilder::new(agent, agent_session_id);
        let row = next(&row_ids.session);
        let writer = SessionWriter::with(row, id, Assembler::new(id), transcript, row_ids);
        SessionWriter { head_dirty: true, ..writer }
    }

    /// A stored session. The caller must load its unsettled turns before the first event.
    pub fn resume(outline: SessionOutline, row_ids: &Arc<RowIds>) -> SessionWriter {
        let SessionOutline { stored, turns, cursors, sources, .. } = outline;
        let session = &stored.summary.session;
        let transcript = TranscriptBuilder::resume(session.clone());
        let outlines = turns.into_iter().map(|(_, outline)| outline);
        let mut assembler = Assembler::resume_from_stubs(session, outlines);
        cursors.into_iter().for_each(|cursor| assembler.set_cursor(cursor));
        let writer = SessionWriter::with(stored.row, session.id, assembler, transcript, row_ids);
        SessionWriter {
            sources,
            seq: stored.seq,
            skip_counts: stored.skip_counts,
            stored: true,
            ..writer
        }
    }

    fn with(
        row: RowId,
        id: SessionId,
        assembler: Assembler,
        transcript: TranscriptBuilder,
        row_ids: &Arc<RowIds>,
    ) -> SessionWriter {
        SessionWriter {
            row,
            id,
            assembler,
            transcript,
            turns: FxHashMap::default(),
            parts: FxHashMap::default(),
            dirty_turns: Vec::new(),
            dirty_parts: Vec::new(),
            merged: Vec::new(),
            deleted_parts: Vec::new(),
            snapshots: Vec::new(),
            head_dirty: false,
            stored: false,
            seq: 0,
            skip_counts: BTreeMap::new(),
            sources: Vec::new(),
            row_ids: row_ids.clone(),
            delta: Delta::default(),
            has_subscribers: false,
            published: 0,
            written: 0,
            count_delta: CountDelta::default(),
        }
    }

    /// The turns that must be loaded before this event.
    pub fn needs(&mut self, event: &Event) -> Vec<TurnId> {
        let mut needed = self.assembler.needs(event);
        // Some are in memory already, though not in the assembler.
        needed.retain(|turn| match self.transcript.find_turn(*turn) {
            Some(tracked) => {
                self.assembler.restore(tracked);
                false
            }
            None => true,
        });
        needed
    }

    /// Restores a turn from the store, before an event that needs it.
    pub fn take_turn(&mut self, stored: StoredTurn) {
        self.assembler.restore(&stored.turn);
        self.take_rows(stored);
    }

    /// Loads the rows of a turn for a change that is about to modify them. The assembler has newer
    /// state already and must not be restored from them.
    pub(crate) fn take_rows(&mut self, stored: StoredTurn) {
        let StoredTurn { row: turn_row, turn, parts, user, open } = stored;
        for (part, row) in turn.parts.iter().zip(parts) {
            let open = open.contains(&row);
            let tracked = TrackedPart {
                row,
                turn: turn_row,
                dirty: false,
                stored: true,
                open,
                evicted: false,
            };
            self.parts.insert(part.id, tracked);
        }
        let row = turn_row;
        let tracked = TrackedTurn {
            row,
            stored: true,
            dirty: false,
            user,
            user_dirty: false,
            partial: false,
            unsettled: false,
        };
        self.turns.insert(turn.id, tracked);
        self.transcript.adopt_turn(turn);
    }

    /// Restores a turn that is marked as unsettled in the store.
    pub(crate) fn take_unsettled(&mut self, stored: StoredTurn) {
        let id = stored.turn.id;
        self.take_turn(stored);
        if let Some(tracked) = self.turns.get_mut(&id) {
            tracked.unsettled = true;
        }
    }

    /// Imports a whole turn from an export, without events.
    pub fn adopt(&mut self, turn: Turn) {
        let row = next(&self.row_ids.turn);
        for part in &turn.parts {
            let tracked = TrackedPart {
                row: self.row_ids.part(),
                turn: row,
                dirty: true,
                stored: false,
                open: false,
                evicted: false,
            };
            self.parts.insert(part.id, tracked);
            self.dirty_parts.push(part.id);
        }
        let tracked = TrackedTurn {
            row,
            stored: false,
            dirty: true,
            user: Vec::new(),
            user_dirty: true,
            partial: false,
            unsettled: false,
        };
        self.dirty_turns.push(turn.id);
        self.turns.insert(turn.id, tracked);
        self.assembler.restore(&turn);
        self.transcript.adopt_turn(turn);
    }

    /// Imports the head of a session from an export.
    pub fn set_head(&mut self, session: Session, seq: u64, skip_counts: BTreeMap<String, u64>) {
        self.assembler = Assembler::resume_from_stubs(&session, []);
        self.transcript = TranscriptBuilder::resume(session);
        self.head_dirty = true;
        self.seq = seq;
        self.skip_counts = skip_counts;
    }

    pub fn set_cursor(&mut self, cursor: Cursor) {
        self.assembler.set_cursor(cursor);
    }

    /// Sets the current turn of a source that is resumed.
    pub fn resume_at(&mut self, feed: Feed, source: u16, turn: &Name) {
        self.assembler.resume_at(feed, source, turn);
    }

    pub fn add_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots.push(snapshot);
    }

    /// Restores an evicted part from the store.
    pub fn take_part(&mut self, part: Part) {
        let Some(tracked) = self.parts.get_mut(&part.id) else { return };
        tracked.evicted = false;
        let turn = self.turns.iter().find(|(_, turn)| turn.row == tracked.turn);
        if let Some((turn, _)) = turn {
            self.transcript.adopt_part(*turn, part);
        }
    }

    /// Applies an event to the assembler. The caller passes the changes to `take`.
    pub fn apply(&mut self, event: Event) -> Vec<Change> {
        self.seq += 1;
        self.assembler.apply(event)
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
            Change::TurnMerged { turn: from, into, .. } => {
                // Its row is deleted, and with it the names of its evicted parts.
                let row = self.turns.get(from).map(|turn| turn.row);
                let evicted = self
                    .parts
                    .iter()
                    .filter(|(_, tracked)| tracked.evicted && Some(tracked.turn) == row);
                let evicted =
                    evicted.map(|(id, tracked)| Missing::Part { id: *id, row: tracked.row });
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
            | Change::SnapshotTaken { .. }
            | Change::EventSkipped { .. } => Vec::new(),
        }
    }

    /// Applies a change to the transcript and marks the affected rows as dirty.
    pub fn take(&mut self, change: Change) {
        self.count(&change);
        match &change {
            Change::SessionUpdated { .. } => self.head_dirty = true,
            Change::TurnOpened { turn } => {
                let row = next(&self.row_ids.turn);
                let tracked = TrackedTurn {
                    row,
                    stored: false,
                    dirty: false,
                    user: Vec::new(),
                    user_dirty: false,
                    partial: false,
                    unsettled: false,
                };
                self.turns.insert(*turn, tracked);
                self.touch_turn(*turn);
            }
            Change::TurnUpdated { turn, patch } => {
                let user = patch.user.is_some()
                    || patch.user_replayed.is_some()
                    || !patch.user_added.is_empty();
                self.touch_turn(*turn);
                if let Some(tracked) = self.turns.get_mut(turn) {
                    tracked.user_dirty |= user;
                }
            }
            Change::StepUpdated { turn, .. } => self.touch_turn(*turn),
            Change::TurnRenamed { turn, to } => {
                if let Some(mut tracked) = self.turns.remove(turn) {
                    // The ids of the user parts are derived from the turn's id.
                    tracked.user_dirty = true;
                    self.turns.insert(*to, tracked);
                    self.dirty_turns.push(*to);
                    self.touch_turn(*to);
                }
            }
            Change::TurnMerged { turn, into, take } => self.merge_turns(*turn, *into, take),
            Change::PartOpened { turn, part } => {
                let row = self.row_ids.part();
                let turn_row = self.turns.get(turn).map_or(0, |turn| turn.row);
                let tracked = TrackedPart {
                    row,
                    turn: turn_row,
                    dirty: false,
                    stored: false,
                    open: false,
                    evicted: false,
                };
                self.parts.insert(part.id, tracked);
                self.touch_part(part.id);
                self.touch_turn(*turn);
            }
            Change::PartDelta { part, .. } => self.touch_part(*part),
            Change::PartUpdated { part, patch } => {
                self.touch_part(*part);
                // The turn's row holds the digests of all its parts' names.
                let tracked = self.transcript.find_part(*part).map(|part| &part.origin.names);
                if patch.origin.as_ref().is_some_and(|found| Some(&found.names) != tracked) {
                    self.touch_turn_of(*part);
                }
            }
            Change::PartRenamed { part, to } => {
                if let Some(tracked) = self.parts.remove(part) {
                    self.parts.insert(*to, tracked);
                    self.dirty_parts.push(*to);
                    self.touch_part(*to);
                }
            }
            Change::PartMerged { part, into, .. } => {
                self.touch_part(*into);
                self.touch_turn_of(*part);
                self.forget_part(*part);
            }
            Change::PartRemoved { part } => {
                self.touch_turn_of(*part);
                self.forget_part(*part);
            }
            Change::SnapshotTaken { kind, sha256, content } => {
                self.snapshots.push(Snapshot {
                    kind: kind.clone(),
                    sha256: sha256.clone(),
                    content: content.text().to_owned(),
                });
            }
            Change::EventSkipped { reason } => {
                // Duplicates come from re-reading a file and say nothing about the session.
                if *reason != unspool_core::change::SkipReason::Duplicate {
                    *self.skip_counts.entry(reason.name().to_owned()).or_default() += 1;
                }
            }
        }
        if self.has_subscribers {
            self.delta.push(change.clone(), &self.transcript);
        }
        self.transcript.apply(change);
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
        let row = self.parts.get(&id).map(|tracked| tracked.turn);
        let turn = self.turns.iter().find(|(_, turn)| Some(turn.row) == row).map(|(id, _)| *id);
        if let Some(turn) = turn {
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
        // Move its parts to the other turn, evicted ones included.
        for part in self.parts.values_mut().filter(|part| part.turn == merged_away.row) {
            part.turn = tracked.row;
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
            i64::from(writer.transcript.find_part(*id).is_some_and(|part| !part.origin.hidden))
        };
        match change {
            Change::TurnOpened { .. } => self.count_delta.turns += 1,
            Change::TurnMerged { .. } => self.count_delta.turns -= 1,
            Change::PartOpened { part, .. } => {
                self.count_delta.parts += i64::from(!part.origin.hidden)
            }
            Change::PartMerged { part, .. } | Change::PartRemoved { part } => {
                self.count_delta.parts -= shown(self, part);
            }
            Change::PartUpdated { part, patch } => {
                if let Some(origin) = &patch.origin {
                    self.count_delta.parts += i64::from(!origin.hidden) - shown(self, part);
                }
            }
            Change::SessionUpdated { .. }
            | Change::TurnUpdated { .. }
            | Change::TurnRenamed { .. }
            | Change::StepUpdated { .. }
            | Change::PartDelta { .. }
            | Change::PartRenamed { .. }
            | Change::SnapshotTaken { .. }
            | Change::EventSkipped { .. } => {}
        }
    }

    /// True if anything changed since the last write.
    pub fn is_dirty(&self) -> bool {
        self.head_dirty
            || !self.dirty_turns.is_empty()
            || !self.dirty_parts.is_empty()
            || !self.deleted_parts.is_empty()
            || !self.merged.is_empty()
            || !self.snapshots.is_empty()
    }

    /// True if it has a row already.
    pub fn is_stored(&self) -> bool {
        self.stored
    }

    /// True if it is a sub-agent without turns. Lists leave those out.
    pub fn is_empty_agent(&self) -> bool {
        self.assembler.has_no_turns() && self.sources.iter().any(|source| source.sub_agent)
    }

    /// How much of the session its sources cover.
    pub(crate) fn completeness(&self) -> Completeness {
        let spine = self.assembler.cursors().map(|cursor| cursor.feed).max();
        let unreadable = self.sources.iter().any(|source| source.records.unreadable > 0);
        if self.assembler.has_no_turns() && unreadable {
            Completeness::Failed
        } else if spine < Some(Feed::Stream) || unreadable {
            Completeness::Partial
        } else if self.transcript.session().facts.outcomes_only {
            Completeness::FinalOnly
        } else {
            Completeness::Full
        }
    }
}
