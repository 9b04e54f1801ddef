//! The recorder: the only writer of sessions. It applies the events that `sync` reads, writes the
//! resulting rows and the source cursors in one transaction, and then publishes the changes. One
//! process records at a time (`service` holds the lock); all others read the archive and subscribe.

pub mod batch;
pub(crate) mod pending_write;
pub mod session_writer;

use std::ops::Range;
use std::sync::Arc;

use tokio::sync::broadcast;
use unspool_model::change::{Change, ChangeSet};
use unspool_model::event::Event;
use unspool_model::id::SessionId;
use unspool_store::blocking::block_on;
use unspool_store::rows::RowId;
use unspool_store::store::{Store, StoreError, StoredSession};

use crate::recorder::batch::{IngestMode, Packer};
use crate::recorder::pending_write::{PendingCommit, PendingWrite};
use crate::recorder::session_writer::{Missing, RowIds, SessionWriter};

/// How many change sets a slow subscriber may lag before it must reload the session.
const BACKLOG: usize = 1024;

/// Records sessions into a store.
pub struct Recorder<S: Store> {
    store: S,
    row_ids: Arc<RowIds>,
    published: broadcast::Sender<ChangeSet>,
    deleted: Deleted,
}

/// How to treat sessions that the user deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Deleted {
    #[default]
    Skip,
    Restore,
}

impl<S: Store> Clone for Recorder<S> {
    fn clone(&self) -> Recorder<S> {
        Recorder {
            store: self.store.clone(),
            row_ids: self.row_ids.clone(),
            published: self.published.clone(),
            deleted: self.deleted,
        }
    }
}

impl<S: Store> Recorder<S> {
    /// Starts recording. The caller must hold the recorder lock.
    pub fn new(store: S) -> Result<Recorder<S>, StoreError> {
        let row_ids = Arc::new(RowIds::new(block_on(store.next_rows())?));
        let published = broadcast::channel(BACKLOG).0;
        Ok(Recorder { store, row_ids, published, deleted: Deleted::Skip })
    }

    /// The same recorder with another policy for deleted sessions.
    pub fn with_deleted(self, deleted: Deleted) -> Recorder<S> {
        Recorder { deleted, ..self }
    }

    /// The same recorder, whose new parts get row numbers of this block.
    pub fn with_part_block(&self, block: Range<RowId>) -> Recorder<S> {
        Recorder { row_ids: Arc::new(self.row_ids.with_part_block(block)), ..self.clone() }
    }

    pub fn store(&self) -> &S {
        &self.store
    }

    pub fn row_ids(&self) -> &Arc<RowIds> {
        &self.row_ids
    }

    pub fn packer(&self, mode: IngestMode) -> Result<Packer, StoreError> {
        Ok(Packer::new(&self.row_ids, mode)?)
    }

    /// Subscribes to all later commits. To follow a session without a gap: subscribe, load the
    /// session, then skip change sets up to its seq.
    pub fn subscribe(&self) -> broadcast::Receiver<ChangeSet> {
        self.published.subscribe()
    }

    /// Starts a session that is not stored.
    pub fn begin(&self, agent: &str, agent_session_id: &str) -> SessionWriter {
        SessionWriter::new(agent, agent_session_id, &self.row_ids)
    }

    /// Resumes a stored session or starts a new one. None if the user deleted it.
    pub fn open(
        &self,
        agent: &str,
        agent_session_id: &str,
    ) -> Result<Option<SessionWriter>, StoreError> {
        let id = SessionId::of(agent, agent_session_id);
        if !self.may_record(id)? {
            return Ok(None);
        }
        let mut writer = match block_on(self.store.outline(id))? {
            None => SessionWriter::new(agent, agent_session_id, &self.row_ids),
            Some(outline) => {
                let unsettled = outline.unsettled.clone();
                let mut writer = SessionWriter::resume(outline, &self.row_ids);
                for turn in unsettled {
                    if let Some(stored) = block_on(self.store.turn(writer.row, turn))? {
                        writer.take_unsettled(stored);
                    }
                }
                writer
            }
        };
        writer.has_subscribers = self.published.receiver_count() > 0;
        writer.published = writer.seq;
        writer.written = writer.seq;
        Ok(Some(writer))
    }

    /// True if a session may be recorded: the user did not delete it, or restores it.
    pub fn may_record(&self, id: SessionId) -> Result<bool, StoreError> {
        match self.deleted {
            Deleted::Skip => Ok(!block_on(self.store.is_deleted(id))?),
            Deleted::Restore => block_on(self.store.undelete(id)).map(|_| true),
        }
    }

    /// Applies one event to a session, loading turns and parts from the store as needed.
    pub fn take(&self, writer: &mut SessionWriter, event: Event) -> Result<(), StoreError> {
        for turn in writer.needs(&event) {
            writer.wait_for_write();
            if let Some(stored) = block_on(self.store.turn(writer.row, turn))? {
                writer.take_turn(stored);
            }
        }
        let changes = writer.apply(event);
        self.take_changes(writer, changes)
    }

    /// Puts turns in order that were read from several files of one feed. Called when a file ends.
    pub fn order_sources(&self, writer: &mut SessionWriter) -> Result<(), StoreError> {
        let changes = writer.order_sources();
        self.take_changes(writer, changes)
    }

    fn take_changes(
        &self,
        writer: &mut SessionWriter,
        changes: Vec<Change>,
    ) -> Result<(), StoreError> {
        for change in changes {
            for missing in writer.missing(&change) {
                writer.wait_for_write();
                match missing {
                    Missing::Turn(turn) => {
                        if let Some(stored) = block_on(self.store.turn(writer.row, turn))? {
                            writer.take_rows(stored);
                        }
                    }
                    Missing::Part { row, .. } => {
                        if let Some(part) = block_on(self.store.part(row))? {
                            writer.take_part(part);
                        }
                    }
                }
            }
            writer.take(change);
        }
        Ok(())
    }

    /// Writes the packer's batch, then publishes the changes.
    pub fn commit<'f>(
        &self,
        packer: &mut Packer,
        writers: impl IntoIterator<Item = &'f mut SessionWriter>,
    ) -> Result<(), StoreError> {
        match self.begin_commit(packer, writers)? {
            Some(pending) => self.finish_commit(pending),
            None => Ok(()),
        }
    }

    /// Begins to write the packer's batch. None if it is empty. The caller finishes the commit before
    /// it begins another one, and before others may open these sessions.
    pub(crate) fn begin_commit<'f>(
        &self,
        packer: &mut Packer,
        writers: impl IntoIterator<Item = &'f mut SessionWriter>,
    ) -> Result<Option<PendingCommit>, StoreError> {
        let batch = packer.finish()?;
        if batch.is_empty() {
            return Ok(None);
        }
        let (sessions, chunks) = (batch.sessions.len(), batch.chunks.len());
        let span = tracing::debug_span!("write", sessions, chunks, files = batch.files.len());
        let _entered = span.entered();
        let store = self.store.clone();
        let write = PendingWrite::begin(async move { store.write(batch).await });
        let mut changes = Vec::new();
        for writer in writers {
            changes.extend(self.take_change_set(writer));
            writer.pending_write = Some(write.clone());
        }
        Ok(Some(PendingCommit { write, changes }))
    }

    /// Waits until a batch is written, then publishes its changes.
    pub(crate) fn finish_commit(&self, pending: PendingCommit) -> Result<(), StoreError> {
        for changes in pending.finish()? {
            // An error means that no subscriber is left. Nothing is lost: the batch is written.
            let _ = self.published.send(changes);
        }
        Ok(())
    }

    /// Publishes the written changes of a session.
    pub fn publish(&self, writer: &mut SessionWriter) {
        if let Some(changes) = self.take_change_set(writer) {
            let _ = self.published.send(changes);
        }
    }

    /// What subscribers are told of a session that is in the batch.
    fn take_change_set(&self, writer: &mut SessionWriter) -> Option<ChangeSet> {
        // Publish only what is written. Skip events that changed nothing, whose seq would put
        // subscribers ahead of the archive, and sessions that are not in this batch.
        if writer.written < writer.seq {
            return None;
        }
        let delta = std::mem::take(&mut writer.delta);
        let from_seq = std::mem::replace(&mut writer.published, writer.seq);
        let has_subscribers = self.published.receiver_count() > 0;
        let had_subscribers = std::mem::replace(&mut writer.has_subscribers, has_subscribers);
        let session = writer.transcript.session();
        (has_subscribers && from_seq < writer.seq).then(|| ChangeSet {
            session: writer.id,
            agent: session.agent.clone(),
            agent_session_id: session.agent_session_id.clone(),
            from_seq,
            seq: writer.seq,
            delta: had_subscribers.then(|| Arc::new(delta)),
        })
    }

    /// Publishes that the user changed a session's name, tags or notes, or deleted it.
    pub fn publish_user_change(&self, stored: &StoredSession) {
        let session = &stored.summary.session;
        // Fails only when there is no subscriber.
        let _ = self.published.send(ChangeSet {
            session: session.id,
            agent: session.agent.clone(),
            agent_session_id: session.agent_session_id.clone(),
            from_seq: stored.seq,
            seq: stored.seq,
            delta: None,
        });
    }
}
