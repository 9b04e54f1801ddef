//! One session while it is recorded: the assembler, the transcript built from its changes, and the
//! set of dirty rows. It does no I/O: the recorder loads the turns and parts that it needs and
//! writes its dirty rows with `Packer`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rustc_hash::FxHashMap;
use unspool_core::assemble::{Assembler, Cursor};
use unspool_core::change::Change;
use unspool_core::event::Event;
use unspool_core::id::{PartId, SessionId, TurnId};
use unspool_core::part::Part;
use unspool_core::session::{Session, Turn};
use unspool_core::summary::Completeness;
use unspool_core::telling::{Name, Telling};
use unspool_core::transcript::Mirror;

use crate::contract::{NextRows, SessionOutline, StoredTurn};
use crate::rows::{Row, Snapshot, SourceRow};

/// Allocates row numbers. The recorder is the only writer, so counters suffice.
pub struct Numbers {
    session: AtomicI64,
    turn: AtomicI64,
    part: AtomicI64,
    chunk: AtomicI64,
    file: AtomicI64,
}

fn next(count: &AtomicI64) -> Row {
    count.fetch_add(1, Ordering::Relaxed)
}

impl Numbers {
    pub fn new(rows: NextRows) -> Numbers {
        Numbers {
            session: rows.session.into(),
            turn: rows.turn.into(),
            part: rows.part.into(),
            chunk: rows.chunk.into(),
            file: rows.file.into(),
        }
    }

    pub fn part(&self) -> Row {
        next(&self.part)
    }

    pub fn chunk(&self) -> Row {
        next(&self.chunk)
    }

    pub fn file(&self) -> Row {
        next(&self.file)
    }
}

pub(crate) struct HeldTurn {
    pub row: Row,
    /// It has a row already.
    pub stored: bool,
    pub dirty: bool,
    /// The rows of the user's message.
    pub user: Vec<Row>,
    pub user_dirty: bool,
    /// Some of its parts are only in the store, not in memory.
    pub partial: bool,
    /// It is marked as unsettled in the store.
    pub unsettled: bool,
}

pub(crate) struct HeldPart {
    pub row: Row,
    /// The row of its turn.
    pub turn: Row,
    pub dirty: bool,
    /// It has a row already.
    pub stored: bool,
    /// Its payload is in the journal.
    pub open: bool,
    /// It is only in the store, not in memory.
    pub away: bool,
}

/// A session that is being recorded.
pub struct SessionFold {
    pub row: Row,
    pub id: SessionId,
    pub(crate) assembler: Assembler,
    pub(crate) mirror: Mirror,
    pub(crate) turns: FxHashMap<TurnId, HeldTurn>,
    pub(crate) parts: FxHashMap<PartId, HeldPart>,
    pub(crate) dirty_turns: Vec<TurnId>,
    pub(crate) dirty_parts: Vec<PartId>,
    /// Merged turns: the row that goes, and the row it was merged into.
    pub(crate) merged: Vec<(Row, Row)>,
    pub(crate) gone_parts: Vec<Row>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) head_dirty: bool,
    pub(crate) stored: bool,
    pub(crate) seq: u64,
    pub(crate) oddities: BTreeMap<String, u64>,
    pub sources: Vec<SourceRow>,
    numbers: Arc<Numbers>,
    /// Changes to publish after the commit; empty while there are no subscribers.
    pub(crate) changes: Vec<Change>,
    pub(crate) listened: bool,
    /// The last published seq.
    pub(crate) published: u64,
    /// The last seq that was written or is in the current batch.
    pub(crate) written: u64,
    /// Turns and visible parts added since `take_count_delta`.
    new: New,
}

/// Change in the number of turns and visible parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct New {
    pub turns: i64,
    pub parts: i64,
}

/// A turn or part that must be loaded from the store before a change can be applied.
pub enum Missing {
    Turn(TurnId),
    Part { id: PartId, row: Row },
}

impl SessionFold {
    /// A session that is not stored yet.
    pub fn new(agent: &str, agent_session_id: &str, numbers: &Arc<Numbers>) -> SessionFold {
        let id = SessionId::of(agent, agent_session_id);
        let mirror = Mirror::new(agent, agent_session_id);
        let row = next(&numbers.session);
        let fold = SessionFold::with(row, id, Assembler::new(id), mirror, numbers);
        SessionFold { head_dirty: true, ..fold }
    }

    /// A stored session. The caller must load its unsettled turns before the first event.
    pub fn resume(outline: SessionOutline, numbers: &Arc<Numbers>) -> SessionFold {
        let SessionOutline { stored, turns, cursors, sources, .. } = outline;
        let session = &stored.summary.session;
        let mirror = Mirror::resume(session.clone());
        let outlines = turns.into_iter().map(|(_, outline)| outline);
        let mut assembler = Assembler::resume_outlined(session, outlines);
        cursors.into_iter().for_each(|cursor| assembler.set_cursor(cursor));
        let fold = SessionFold::with(stored.row, session.id, assembler, mirror, numbers);
        SessionFold { sources, seq: stored.seq, oddities: stored.oddities, stored: true, ..fold }
    }

    fn with(
        row: Row,
        id: SessionId,
        assembler: Assembler,
        mirror: Mirror,
        numbers: &Arc<Numbers>,
    ) -> SessionFold {
        SessionFold {
            row,
            id,
            assembler,
            mirror,
            turns: FxHashMap::default(),
            parts: FxHashMap::default(),
            dirty_turns: Vec::new(),
            dirty_parts: Vec::new(),
            merged: Vec::new(),
            gone_parts: Vec::new(),
            snapshots: Vec::new(),
            head_dirty: false,
            stored: false,
            seq: 0,
            oddities: BTreeMap::new(),
            sources: Vec::new(),
            numbers: numbers.clone(),
            changes: Vec::new(),
            listened: false,
            published: 0,
            written: 0,
            new: New::default(),
        }
    }

    /// The turns that must be loaded before this event.
    pub fn needs(&mut self, event: &Event) -> Vec<TurnId> {
        let mut needed = self.assembler.needs(event);
        // Some are in memory already, though not in the assembler.
        needed.retain(|turn| match self.mirror.find_turn(*turn) {
            Some(held) => {
                self.assembler.restore(held);
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
            let held =
                HeldPart { row, turn: turn_row, dirty: false, stored: true, open, away: false };
            self.parts.insert(part.id, held);
        }
        let row = turn_row;
        let held = HeldTurn {
            row,
            stored: true,
            dirty: false,
            user,
            user_dirty: false,
            partial: false,
            unsettled: false,
        };
        self.turns.insert(turn.id, held);
        self.mirror.adopt_turn(turn);
    }

    /// Restores a turn that is marked as unsettled in the store.
    pub(crate) fn take_unsettled(&mut self, stored: StoredTurn) {
        let id = stored.turn.id;
        self.take_turn(stored);
        if let Some(held) = self.turns.get_mut(&id) {
            held.unsettled = true;
        }
    }

    /// Imports a whole turn from an export, without events.
    pub fn adopt(&mut self, turn: Turn) {
        let row = next(&self.numbers.turn);
        for part in &turn.parts {
            let held = HeldPart {
                row: self.numbers.part(),
                turn: row,
                dirty: true,
                stored: false,
                open: false,
                away: false,
            };
            self.parts.insert(part.id, held);
            self.dirty_parts.push(part.id);
        }
        let held = HeldTurn {
            row,
            stored: false,
            dirty: true,
            user: Vec::new(),
            user_dirty: true,
            partial: false,
            unsettled: false,
        };
        self.dirty_turns.push(turn.id);
        self.turns.insert(turn.id, held);
        self.assembler.restore(&turn);
        self.mirror.adopt_turn(turn);
    }

    /// Imports the head of a session from an export.
    pub fn set_head(&mut self, session: Session, seq: u64, oddities: BTreeMap<String, u64>) {
        self.assembler = Assembler::resume_outlined(&session, []);
        self.mirror = Mirror::resume(session);
        self.head_dirty = true;
        self.seq = seq;
        self.oddities = oddities;
    }

    pub fn set_cursor(&mut self, cursor: Cursor) {
        self.assembler.set_cursor(cursor);
    }

    /// Sets the current turn of a source that is resumed.
    pub fn stand_at(&mut self, telling: Telling, source: u16, turn: &Name) {
        self.assembler.stand_at(telling, source, turn);
    }

    pub fn add_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots.push(snapshot);
    }

    /// Restores an evicted part from the store.
    pub fn take_part(&mut self, part: Part) {
        let Some(held) = self.parts.get_mut(&part.id) else { return };
        held.away = false;
        let turn = self.turns.iter().find(|(_, turn)| turn.row == held.turn);
        if let Some((turn, _)) = turn {
            self.mirror.adopt_part(*turn, part);
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
            let held = self.parts.get(id).filter(|held| held.away)?;
            Some(Missing::Part { id: *id, row: held.row })
        };
        match change {
            Change::TurnTold { turn: id, .. }
            | Change::TurnRenamed { turn: id, .. }
            | Change::StepTold { turn: id, .. }
            | Change::PartOpened { turn: id, .. } => turn(id).into_iter().collect(),
            Change::TurnMerged { turn: from, into } => {
                // Its row is deleted, and with it the names of its evicted parts.
                let row = self.turns.get(from).map(|turn| turn.row);
                let away =
                    self.parts.iter().filter(|(_, held)| held.away && Some(held.turn) == row);
                let away = away.map(|(id, held)| Missing::Part { id: *id, row: held.row });
                [turn(from), turn(into)].into_iter().flatten().chain(away).collect()
            }
            Change::PartGrew { part: id, .. }
            | Change::PartTold { part: id, .. }
            | Change::PartRenamed { part: id, .. }
            | Change::PartRemoved { part: id } => part(id).into_iter().collect(),
            Change::PartMerged { part: from, into } => {
                [part(from), part(into)].into_iter().flatten().collect()
            }
            Change::SessionTold { .. }
            | Change::TurnOpened { .. }
            | Change::SnapshotTaken { .. }
            | Change::Counted { .. } => Vec::new(),
        }
    }

    /// Applies a change to the transcript and marks the affected rows as dirty.
    pub fn take(&mut self, change: Change) {
        self.count(&change);
        match &change {
            Change::SessionTold { .. } => self.head_dirty = true,
            Change::TurnOpened { turn } => {
                let row = next(&self.numbers.turn);
                let held = HeldTurn {
                    row,
                    stored: false,
                    dirty: false,
                    user: Vec::new(),
                    user_dirty: false,
                    partial: false,
                    unsettled: false,
                };
                self.turns.insert(*turn, held);
                self.touch_turn(*turn);
            }
            Change::TurnTold { turn, patch } => {
                let user = patch.user.is_some()
                    || patch.user_again.is_some()
                    || !patch.user_added.is_empty();
                self.touch_turn(*turn);
                if let Some(held) = self.turns.get_mut(turn) {
                    held.user_dirty |= user;
                }
            }
            Change::StepTold { turn, .. } => self.touch_turn(*turn),
            Change::TurnRenamed { turn, to } => {
                if let Some(mut held) = self.turns.remove(turn) {
                    // The ids of the user parts are derived from the turn's id.
                    held.user_dirty = true;
                    self.turns.insert(*to, held);
                    self.dirty_turns.push(*to);
                    self.touch_turn(*to);
                }
            }
            Change::TurnMerged { turn, into } => self.merge_turns(*turn, *into),
            Change::PartOpened { turn, part } => {
                let row = self.numbers.part();
                let turn_row = self.turns.get(turn).map_or(0, |turn| turn.row);
                let held = HeldPart {
                    row,
                    turn: turn_row,
                    dirty: false,
                    stored: false,
                    open: false,
                    away: false,
                };
                self.parts.insert(part.id, held);
                self.touch_part(part.id);
                self.touch_turn(*turn);
            }
            Change::PartGrew { part, .. } => self.touch_part(*part),
            Change::PartTold { part, patch } => {
                self.touch_part(*part);
                // The turn's row holds the digests of all its parts' names.
                let held = self.mirror.find_part(*part).map(|part| &part.origin.names);
                if patch.origin.as_ref().is_some_and(|told| Some(&told.names) != held) {
                    self.touch_turn_of(*part);
                }
            }
            Change::PartRenamed { part, to } => {
                if let Some(held) = self.parts.remove(part) {
                    self.parts.insert(*to, held);
                    self.dirty_parts.push(*to);
                    self.touch_part(*to);
                }
            }
            Change::PartMerged { part, into } => {
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
            Change::Counted { what } => {
                // Duplicates come from re-reading a file and say nothing about the session.
                if *what != unspool_core::change::Oddity::Duplicate {
                    *self.oddities.entry(what.name().to_owned()).or_default() += 1;
                }
            }
        }
        if self.listened {
            self.changes.push(change.clone());
        }
        self.mirror.apply(change);
    }

    fn touch_turn(&mut self, id: TurnId) {
        if let Some(held) = self.turns.get_mut(&id).filter(|held| !held.dirty) {
            held.dirty = true;
            self.dirty_turns.push(id);
        }
    }

    fn touch_part(&mut self, id: PartId) {
        if let Some(held) = self.parts.get_mut(&id).filter(|held| !held.dirty) {
            held.dirty = true;
            self.dirty_parts.push(id);
        }
    }

    /// Marks the turn of a part as dirty, because its sums and names will change.
    fn touch_turn_of(&mut self, id: PartId) {
        let row = self.parts.get(&id).map(|held| held.turn);
        let turn = self.turns.iter().find(|(_, turn)| Some(turn.row) == row).map(|(id, _)| *id);
        if let Some(turn) = turn {
            self.touch_turn(turn);
        }
    }

    fn forget_part(&mut self, id: PartId) {
        if let Some(held) = self.parts.remove(&id).filter(|held| held.stored) {
            self.gone_parts.push(held.row);
        }
    }

    fn merge_turns(&mut self, from: TurnId, into: TurnId) {
        let Some(gone) = self.turns.remove(&from) else { return };
        self.gone_parts.extend(&gone.user);
        self.touch_turn(into);
        let Some(held) = self.turns.get_mut(&into) else { return };
        held.user_dirty = true;
        // Move its parts to the other turn, evicted ones included.
        for part in self.parts.values_mut().filter(|part| part.turn == gone.row) {
            part.turn = held.row;
        }
        self.merged.push((gone.row, held.row));
    }

    /// Returns and resets the counts since the last call.
    pub fn take_new(&mut self) -> New {
        std::mem::take(&mut self.new)
    }

    /// Updates the counts of turns and visible parts. Merges and removals count negative.
    fn count(&mut self, change: &Change) {
        let shown = |fold: &SessionFold, id: &PartId| {
            i64::from(fold.mirror.find_part(*id).is_some_and(|part| !part.origin.foreign))
        };
        match change {
            Change::TurnOpened { .. } => self.new.turns += 1,
            Change::TurnMerged { .. } => self.new.turns -= 1,
            Change::PartOpened { part, .. } => self.new.parts += i64::from(!part.origin.foreign),
            Change::PartMerged { part, .. } | Change::PartRemoved { part } => {
                self.new.parts -= shown(self, part);
            }
            Change::PartTold { part, patch } => {
                if let Some(origin) = &patch.origin {
                    self.new.parts += i64::from(!origin.foreign) - shown(self, part);
                }
            }
            Change::SessionTold { .. }
            | Change::TurnTold { .. }
            | Change::TurnRenamed { .. }
            | Change::StepTold { .. }
            | Change::PartGrew { .. }
            | Change::PartRenamed { .. }
            | Change::SnapshotTaken { .. }
            | Change::Counted { .. } => {}
        }
    }

    /// True if anything changed since the last write.
    pub fn is_dirty(&self) -> bool {
        self.head_dirty
            || !self.dirty_turns.is_empty()
            || !self.dirty_parts.is_empty()
            || !self.gone_parts.is_empty()
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
        let spine = self.assembler.cursors().map(|cursor| cursor.telling).max();
        let unreadable = self.sources.iter().any(|source| source.records.unreadable > 0);
        if self.assembler.has_no_turns() && unreadable {
            Completeness::Failed
        } else if spine < Some(Telling::Stream) || unreadable {
            Completeness::Partial
        } else if self.mirror.session().facts.outcomes_only {
            Completeness::FinalOnly
        } else {
            Completeness::Full
        }
    }
}
