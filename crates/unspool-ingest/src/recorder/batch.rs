//! Builds a batch: turns the changes in `SessionWriter`s into rows, compressed chunks, contents and
//! an index segment. Most of the time of an import is spent here, so the reader threads do it, not
//! the one writer thread.

mod parts;
mod turns;

use std::sync::Arc;

use rustc_hash::FxHashSet;
use unspool_index::SegmentBuilder;
use unspool_store::pack::{Compressor, PackError};
use unspool_store::rows::{Batch, RowId, SessionWrite};

use crate::recorder::batch::parts::OpenChunk;
use crate::recorder::session_writer::{RowIds, SessionWriter};

/// Whether parts are packed and indexed with the batch or later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IngestMode {
    /// Importing history. Settled parts are packed and indexed at once.
    Bulk,
    /// Small batches. Payloads of open turns stay in the journal, and new parts wait until there
    /// are enough for an index segment; until then a search scans them one by one.
    Live,
}

/// Builds batches, one after another.
pub struct Packer {
    row_ids: Arc<RowIds>,
    mode: IngestMode,
    compressor: Compressor,
    /// The digests of contents that this batch has already.
    sent_contents: FxHashSet<u128>,
    batch: Batch,
    words: SegmentBuilder,
    /// The open chunk, and its session.
    chunk: OpenChunk,
    chunk_session: RowId,
    /// The open chunk of large payloads, shared by all sessions.
    shared: OpenChunk,
}

impl Packer {
    pub fn new(row_ids: &Arc<RowIds>, mode: IngestMode) -> Result<Packer, PackError> {
        Ok(Packer {
            row_ids: row_ids.clone(),
            mode,
            compressor: Compressor::new()?,
            sent_contents: FxHashSet::default(),
            batch: Batch::default(),
            words: SegmentBuilder::default(),
            chunk: OpenChunk::default(),
            chunk_session: 0,
            shared: OpenChunk::default(),
        })
    }

    /// The batch so far, to add rows that belong to no session.
    pub fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// The memory that the index of the batch takes, in bytes.
    pub fn words_memory(&self) -> usize {
        self.words.memory()
    }

    /// Forgets which contents were sent, because the last batch was not written.
    pub(crate) fn forget_contents(&mut self) {
        self.sent_contents.clear();
    }

    /// Closes the open chunks and returns the batch.
    pub fn finish(&mut self) -> Result<Batch, PackError> {
        self.close_chunk()?;
        self.close_shared()?;
        if self.words.documents() > 0 {
            self.batch.segment = Some(std::mem::take(&mut self.words).finish());
        }
        // A content stored by this batch may be deleted again before the next one.
        self.forget_contents();
        Ok(std::mem::take(&mut self.batch))
    }

    /// Adds everything that changed in a session since the last call. Evicts settled turns from
    /// memory.
    pub fn add(&mut self, writer: &mut SessionWriter) -> Result<(), PackError> {
        // Its file may have a block of row numbers.
        self.row_ids = writer.row_ids.clone();
        if self.chunk_session != writer.row {
            self.close_chunk()?;
            self.chunk_session = writer.row;
        }
        let mut write = SessionWrite {
            row: writer.row,
            id: writer.id,
            head: std::mem::take(&mut writer.head_dirty)
                .then(|| writer.transcript.session().clone()),
            seq: writer.seq,
            completeness: writer.completeness().name().to_owned(),
            sub_agent: writer.is_agent(),
            sources: writer.take_changed_sources(),
            cursors: writer.assembler.take_moved_cursors(),
            turns: Vec::new(),
            parts: Vec::new(),
            merged: std::mem::take(&mut writer.merged),
            deleted_parts: std::mem::take(&mut writer.deleted_parts),
            moved_targets: std::mem::take(&mut writer.moved_targets),
            moved_parts: writer.take_moved_parts(),
            snapshots: std::mem::take(&mut writer.snapshots),
            prompts: std::mem::take(&mut writer.prompts),
            skip_counts: writer.skip_counts.clone(),
        };
        let mut dirty = writer.take_dirty_parts();
        for id in writer.turns_to_write(&dirty) {
            let settled = writer.assembler.release(id);
            if settled {
                if let (Some(turn), Some(tracked)) =
                    (writer.transcript.take_turn(id), writer.turns.remove(&id))
                {
                    self.add_settled(writer, turn, tracked, &mut write)?;
                }
            } else {
                let dirty = dirty.remove(&id).unwrap_or_default();
                self.add_unsettled(writer, id, dirty, &mut write)?;
            }
        }
        writer.revisit.extend(writer.assembler.turns_in_use());
        writer.stored = true;
        writer.written = writer.seq;
        self.batch.sessions.push(write);
        Ok(())
    }
}
