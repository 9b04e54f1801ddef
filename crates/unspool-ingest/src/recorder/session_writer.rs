//! One session while it is recorded: the assembler, the transcript built from its changes, and the
//! set of dirty rows. It does no I/O: the recorder loads the turns and parts that it needs and
//! packs its dirty rows with `Packer`.

mod changes;
mod restore;
mod row_ids;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use unspool_model::agent::AgentTraits;
use unspool_model::assemble::{Assembler, Cursor};
use unspool_model::change::Delta;
use unspool_model::event::{EndReason, Event, EventKey, EventKind};
use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_model::note::NoteTarget;
use unspool_model::prompt::PromptRecord;
use unspool_model::provenance::{Evidence, Feed, Name};
use unspool_model::session::{Turn, TurnState};
use unspool_model::source::RecordCounts;
use unspool_model::summary::Completeness;
use unspool_model::transcript::TranscriptBuilder;
use unspool_store::rows::{RowId, Snapshot, SourceRow};
use unspool_store::store::SessionOutline;

pub use self::changes::{CountDelta, Missing};
pub use self::row_ids::RowIds;
use super::pending_write::PendingWrite;

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
    /// Its steps before this index are stored and unchanged.
    pub steps_from: usize,
    /// Digests of names whose parts and steps are in another turn now.
    pub forgotten_names: Vec<u64>,
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
    /// The turn that its stored row is in, if it is another one.
    pub moved_from: Option<RowId>,
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
    /// Turns that the next batch must visit even if nothing in them changes: they may have become
    /// settled.
    pub(crate) revisit: Vec<TurnId>,
    /// Merged turns: the row that goes, and the row it was merged into.
    pub(crate) merged: Vec<(RowId, RowId)>,
    pub(crate) deleted_parts: Vec<RowId>,
    /// Turns and parts that got another id or were merged into another, for their notes.
    pub(crate) moved_targets: Vec<(NoteTarget, NoteTarget)>,
    /// Parts that went to another turn, for their notes.
    pub(crate) moved_parts: Vec<PartId>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) prompts: Vec<PromptRecord>,
    pub(crate) head_dirty: bool,
    pub(crate) stored: bool,
    pub(crate) seq: u64,
    pub(crate) skip_counts: BTreeMap<String, u64>,
    sources: Vec<SourceRow>,
    /// Indices of sources that changed since the last batch.
    changed_sources: Vec<usize>,
    pub(crate) row_ids: Arc<RowIds>,
    /// Changes to publish after the commit; empty while there are no subscribers.
    pub(crate) delta: Delta,
    pub(crate) has_subscribers: bool,
    /// The last published seq.
    pub(crate) published: u64,
    /// The last seq that was written or is in the current batch.
    pub(crate) written: u64,
    /// The last write of its rows, which may be under way.
    pub(crate) pending_write: Option<PendingWrite>,
    /// Turns and visible parts added since `take_count_delta`.
    count_delta: CountDelta,
}

/// An event that no file has. Its source is the recorder, so the cursors of files stay as they are.
/// The same offset gives the same key: it is taken once.
pub fn recorder_event(
    feed: Feed,
    turn: Option<Name>,
    at: Option<Timestamp>,
    offset: u64,
    kind: EventKind,
) -> Event {
    let source = Evidence::RECORDER;
    Event {
        key: EventKey { record: offset, nth: u32::from(kind == EventKind::SessionEnded) },
        feed,
        at,
        evidence: Evidence { feed, source, offset, length: 0, digest: 0 },
        turn,
        generation: None,
        kind,
    }
}

impl SessionWriter {
    /// A session that is not stored yet.
    pub fn new(agent: &str, agent_session_id: &str, row_ids: &Arc<RowIds>) -> SessionWriter {
        let id = SessionId::of(agent, agent_session_id);
        let transcript = TranscriptBuilder::new(agent, agent_session_id);
        let row = row_ids.session();
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
        // They are stored.
        assembler.take_moved_cursors();
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
            revisit: Vec::new(),
            merged: Vec::new(),
            deleted_parts: Vec::new(),
            moved_targets: Vec::new(),
            moved_parts: Vec::new(),
            snapshots: Vec::new(),
            prompts: Vec::new(),
            head_dirty: false,
            stored: false,
            seq: 0,
            skip_counts: BTreeMap::new(),
            sources: Vec::new(),
            changed_sources: Vec::new(),
            row_ids: row_ids.clone(),
            delta: Delta::default(),
            has_subscribers: false,
            published: 0,
            written: 0,
            pending_write: None,
            count_delta: CountDelta::default(),
        }
    }

    /// Waits until its rows can be read from the archive.
    pub(crate) fn wait_for_write(&mut self) {
        if let Some(write) = self.pending_write.take() {
            write.wait();
        }
    }

    pub fn set_cursor(&mut self, cursor: Cursor) {
        self.assembler.set_cursor(cursor);
    }

    /// Sets the current turn of a source that is resumed.
    pub fn resume_at(&mut self, feed: Feed, source: u16, turn: &Name) {
        self.assembler.resume_at(feed, source, turn);
    }

    /// The event that ends a running turn which a rewritten log no longer has. The last turn of the
    /// log has this name, if it has a turn, and its last record this time: a log that was only cut does
    /// not go on after the turn began.
    pub fn withdrawal(&self, feed: Feed, last: Option<&Name>, latest: Timestamp) -> Option<Event> {
        let (id, turn) = match last {
            Some(last) => self.assembler.withdrawn_turn(feed, last)?,
            None => self.running_turn(feed)?,
        };
        self.transcript.find_turn(id)?.started.filter(|started| *started < latest)?;
        let offset = u64::try_from(latest.as_millisecond()).ok()?;
        let end = EventKind::TurnEnded(EndReason::Interrupted);
        Some(recorder_event(feed, Some(turn), Some(latest), offset, end))
    }

    /// The turn of this feed that runs, and a name of it.
    fn running_turn(&self, feed: Feed) -> Option<(TurnId, Name)> {
        let runs =
            |turn: &&Turn| turn.state == TurnState::Running && turn.origin.at.of(feed).is_some();
        let turn = self.transcript.turns().filter(runs).max_by_key(|turn| turn.number)?;
        Some((turn.id, turn.origin.names.iter().min()?.clone()))
    }

    /// New rows get these numbers from now on.
    pub fn set_row_ids(&mut self, row_ids: &Arc<RowIds>) {
        self.row_ids = row_ids.clone();
    }

    pub fn sources(&self) -> &[SourceRow] {
        &self.sources
    }

    /// Adds a source and returns its index.
    pub fn add_source(&mut self, source: SourceRow) -> usize {
        self.sources.push(source);
        self.changed_sources.push(self.sources.len() - 1);
        self.sources.len() - 1
    }

    /// Sets the record counts of a source. False if they are the same.
    pub fn set_records(&mut self, source: usize, records: &RecordCounts) -> bool {
        let Some(row) = self.sources.get_mut(source).filter(|row| row.records != *records) else {
            return false;
        };
        row.records.clone_from(records);
        self.changed_sources.push(source);
        true
    }

    /// The sources that changed since the last call.
    pub(crate) fn take_changed_sources(&mut self) -> Vec<SourceRow> {
        let mut changed = std::mem::take(&mut self.changed_sources);
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(|at| self.sources[at].clone()).collect()
    }

    pub fn add_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots.push(snapshot);
    }

    pub fn add_prompts(&mut self, prompts: impl IntoIterator<Item = PromptRecord>) {
        self.prompts.extend(prompts);
    }

    /// True if anything changed since the last write.
    pub fn is_dirty(&self) -> bool {
        self.head_dirty
            || !self.dirty_turns.is_empty()
            || !self.dirty_parts.is_empty()
            || !self.deleted_parts.is_empty()
            || !self.merged.is_empty()
            || !self.snapshots.is_empty()
            || !self.prompts.is_empty()
    }

    /// Parts that may have changed since the last call, by turn.
    pub(crate) fn take_dirty_parts(&mut self) -> FxHashMap<TurnId, Vec<PartId>> {
        let mut dirty: FxHashMap<TurnId, Vec<PartId>> = FxHashMap::default();
        for part in std::mem::take(&mut self.dirty_parts) {
            if let Some(turn) = self.transcript.turn_of(part) {
                dirty.entry(turn).or_default().push(part);
            }
        }
        dirty
    }

    /// Parts that went to another turn since the last call, and that turn.
    pub(crate) fn take_moved_parts(&mut self) -> Vec<(PartId, TurnId)> {
        let moved = std::mem::take(&mut self.moved_parts).into_iter();
        moved.filter_map(|part| Some((part, self.transcript.turn_of(part)?))).collect()
    }

    /// The turns that the next batch must look at, in the order in which they were opened. All
    /// others are open and unchanged.
    pub(crate) fn turns_to_write(&mut self, dirty: &FxHashMap<TurnId, Vec<PartId>>) -> Vec<TurnId> {
        let mut turns = std::mem::take(&mut self.dirty_turns);
        turns.append(&mut self.revisit);
        turns.extend(dirty.keys());
        self.transcript.sort_turns(&mut turns);
        turns
    }

    /// True if it has a row already.
    pub fn is_stored(&self) -> bool {
        self.stored
    }

    /// True if it is a sub-agent without turns. Lists leave those out.
    pub fn is_empty_agent(&self) -> bool {
        self.assembler.has_no_turns() && self.is_agent()
    }

    /// True if one of its files is a sub-agent's.
    pub fn is_agent(&self) -> bool {
        self.sources.iter().any(|source| source.sub_agent)
    }

    /// How much of the session its sources cover.
    pub(crate) fn completeness(&self) -> Completeness {
        let spine = self.assembler.cursors().map(|cursor| cursor.feed).max();
        let unreadable = self.sources.iter().any(|source| source.records.unreadable > 0);
        let loss = AgentTraits::of(&self.transcript.session().agent).log_detail.loss();
        if self.assembler.has_no_turns() && unreadable {
            Completeness::Failed
        } else if spine < Some(Feed::Stream) || unreadable || loss.is_some() {
            Completeness::Partial
        } else if self.transcript.session().facts.outcomes_only {
            Completeness::FinalOnly
        } else {
            Completeness::Full
        }
    }
}
