//! A worker thread of a sync: ingests files one after another into batches. It holds the sessions
//! of one file and one batch in memory, however long the files are.

mod decode;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;
use unspool_model::id::SessionId;
use unspool_sources::file_decoder::{SessionIdent, UNFINISHED_LINE_WARNING, Verdict};
use unspool_sources::fingerprint::fingerprint;
use unspool_sources::read::lines::ReadPosition;
use unspool_sources::read::regular_file::open_regular;
use unspool_store::archive_lines::is_export;
use unspool_store::rows::{Batch, FileRow, RowId};
use unspool_store::store::{Store, StoreError};

use crate::recorder::Recorder;
use crate::recorder::batch::{IngestMode, Packer};
use crate::recorder::pending_write::PendingCommit;
use crate::recorder::session_writer::SessionWriter;
use crate::report::{Progress, Tally};
use crate::stdin_capture::display_name;
use crate::sync::SyncError;
use crate::sync::claim::Claims;
use crate::sync::file_state::{file_row, warning};
use crate::sync::live_files::{FilesInUse, LiveFiles, Pace};
use crate::sync::open_file::{OpenFeed, OpenFile};

/// A batch is committed after this much input. Bounds memory while keeping transactions large.
const BATCH_BYTES: u64 = 16 * 1024 * 1024;
/// A batch is also committed after this many records: a short record takes up to 2 KB of memory
/// until it is written, however short it is.
const BATCH_RECORDS: u64 = 16 * 1024;
/// A batch is also committed when its index words take this much memory.
const MAX_WORDS_BYTES: usize = 16 * 1024 * 1024;

/// What the workers of one sync share.
pub(crate) struct SyncContext<'a, S: Store> {
    pub recorder: &'a Recorder<S>,
    pub claims: &'a Claims,
    pub stored: &'a FxHashMap<String, FileRow>,
    /// File rows written by this sync.
    pub written: &'a Mutex<FxHashMap<String, FileRow>>,
    pub in_use: &'a FilesInUse,
    /// Files to read in between. None if nobody waits for them.
    pub live: Option<&'a dyn LiveFiles>,
    pub tally: &'a Tally,
    pub progress: &'a Progress,
    pub mode: IngestMode,
    /// The user named these files: read them completely, without waiting for more data.
    pub named: bool,
}

impl<S: Store> SyncContext<'_, S> {
    /// The state of a file after its last read.
    pub fn file(&self, name: &str) -> Option<FileRow> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.get(name).or_else(|| self.stored.get(name)).cloned()
    }
}

/// A file that waits to be read.
pub(crate) struct QueuedFile {
    pub path: PathBuf,
    /// Row numbers for its parts.
    pub part_block: Option<Range<RowId>>,
}

/// What a sync does with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileRoute {
    /// It is a log: a worker decodes it.
    Decode,
    /// It is one of our own exports: it is imported after all logs.
    Import,
    /// Another worker has claimed one of its sessions: decode it after the parallel phase.
    Defer,
}

/// Why a worker stopped reading a file.
pub(crate) enum Stop {
    /// Another worker has claimed one of the file's sessions.
    Claimed,
    Failed(SyncError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        Stop::Failed(SyncError::Store(error))
    }
}

pub(crate) struct Worker<'a, S: Store> {
    pub(crate) shared: &'a SyncContext<'a, S>,
    /// Opens the sessions of the current file.
    recorder: Recorder<S>,
    packer: Packer,
    /// Bytes and records read since the last commit.
    read: u64,
    records: u64,
    /// The batch that the writer thread is writing while this worker reads on in a long file.
    pending: Option<PendingCommit>,
    /// Finished sessions that are not committed yet. The next file of one goes on with it, so that
    /// a session of many files is not loaded again with each.
    done: FxHashMap<SessionId, SessionWriter>,
    /// The files whose rows are not committed yet.
    files_in_batch: Vec<PathBuf>,
    pub(crate) current: Option<OpenFile>,
    pub(crate) stop: Option<Stop>,
    /// Why a session of the current file is left out.
    pub(crate) refused: Option<String>,
    pub(super) pace: Pace,
    /// It may wait for a session that another worker holds.
    may_wait: bool,
}

impl<'a, S: Store> Worker<'a, S> {
    pub fn new(shared: &'a SyncContext<'a, S>) -> Result<Worker<'a, S>, StoreError> {
        let packer = shared.recorder.packer(shared.mode)?;
        Ok(Worker {
            shared,
            recorder: shared.recorder.clone(),
            packer,
            read: 0,
            records: 0,
            pending: None,
            done: FxHashMap::default(),
            files_in_batch: Vec::new(),
            current: None,
            stop: None,
            refused: None,
            pace: Pace::new(shared.live.is_some()),
            may_wait: true,
        })
    }

    /// The same worker, which leaves a file alone if another worker holds its session. Its thread
    /// may hold sessions of its own, and two that wait for each other would deadlock.
    pub fn without_waiting(mut self) -> Self {
        self.may_wait = false;
        self
    }

    /// Reads a queued file.
    pub fn ingest_queued(&mut self, file: &QueuedFile) -> Result<FileRoute, SyncError> {
        self.recorder = match &file.part_block {
            Some(block) => self.shared.recorder.with_part_block(block.clone()),
            None => self.shared.recorder.clone(),
        };
        self.shared.in_use.begin(&file.path);
        let route = self.ingest_file(&file.path);
        match route {
            // Until its batch is committed: a live read would write a newer row of the file first.
            Ok(FileRoute::Decode) => self.files_in_batch.push(file.path.clone()),
            Ok(FileRoute::Import | FileRoute::Defer) | Err(_) => {
                self.shared.in_use.end(&file.path);
            }
        }
        route
    }

    /// Reads a file from where the last read stopped, unless it takes another route.
    pub fn ingest_file(&mut self, path: &Path) -> Result<FileRoute, SyncError> {
        if open_regular(path).is_ok_and(is_export) {
            return Ok(FileRoute::Import);
        }
        match self.decode_file(path) {
            Ok(()) => Ok(FileRoute::Decode),
            Err(Stop::Claimed) => Ok(FileRoute::Defer),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// Claims and opens a session. None if the user deleted it.
    pub(crate) fn open(&mut self, ident: &SessionIdent<'_>) -> Result<Option<OpenFeed>, Stop> {
        self.finish_commit()?;
        let id = SessionId::of(ident.agent, ident.session);
        if let Some(mut writer) = self.done.remove(&id) {
            // The file may need turns that left memory with the batch.
            if let Err(stop) = self.commit() {
                self.shared.claims.free([id]);
                return Err(stop);
            }
            self.shared.recorder.publish(&mut writer);
            writer.set_row_ids(self.recorder.row_ids());
            return Ok(Some(OpenFeed::new(writer)));
        }
        let claims = self.shared.claims;
        if !claims.try_claim(id) {
            // An earlier file of this worker may hold the claim until its batch is committed.
            self.commit()?;
            let holds_none = self.current.as_ref().is_none_or(|current| current.ident.is_empty());
            if holds_none && self.may_wait {
                claims.claim(id);
            } else if !claims.try_claim(id) {
                return Err(Stop::Claimed);
            }
        }
        match self.open_allowed(ident) {
            Ok(Some(writer)) => Ok(Some(OpenFeed::new(writer))),
            Ok(None) => {
                claims.free([id]);
                Ok(None)
            }
            Err(error) => {
                claims.free([id]);
                Err(error.into())
            }
        }
    }

    pub(crate) fn push_feed(&mut self, feed: Option<OpenFeed>) {
        if let Some(current) = &mut self.current {
            current.ident.push(feed);
        }
    }

    fn advance(&mut self, bytes: u64, records: u64) {
        self.read += bytes;
        self.records += records;
        self.shared.progress.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn recorder(&self) -> &Recorder<S> {
        &self.recorder
    }

    /// The batch that the next commit writes.
    pub(crate) fn batch(&mut self) -> &mut Batch {
        self.packer.batch()
    }

    fn is_full(&self) -> bool {
        self.filled() >= self.pace.share
    }

    /// The size of the batch, as a share of a full one.
    fn filled(&self) -> f64 {
        let share = |some: u64, full: u64| some as f64 / full as f64;
        share(self.read, BATCH_BYTES)
            .max(share(self.records, BATCH_RECORDS))
            .max(share(self.packer.words_memory() as u64, MAX_WORDS_BYTES as u64))
    }

    /// Commits in the middle of a file. After a crash here the file is read again from its start,
    /// and cursors skip what is stored: a decoder's state is too large to save with every batch.
    fn write_so_far(&mut self, position: ReadPosition) -> Result<(), Stop> {
        let source = self.current.as_ref().and_then(|current| self.open_origin(&current.origin));
        if let Some(current) = &mut self.current {
            let print =
                source.and_then(|mut source| fingerprint(source.text(), position.offset).ok());
            let file = FileRow {
                row: current.row,
                path: current.name.clone(),
                ..file_row(position, print, Verdict::HasSessions)
            };
            self.packer.batch().files.push(file);
            current.add_to(&mut self.packer)?;
        }
        if self.shared.live.is_none() && self.done.is_empty() {
            (self.read, self.records) = (0, 0);
            return Ok(self.begin_commit()?);
        }
        self.commit()
    }

    /// Writes the batch while the file is read on. Only where nobody waits for other files: the next
    /// slice of one would wait for this batch.
    fn begin_commit(&mut self) -> Result<(), StoreError> {
        self.finish_commit()?;
        let current =
            self.current.iter_mut().flat_map(|current| current.ident.iter_mut().flatten());
        let writers = current.map(|feed| &mut feed.writer);
        self.pending = self.shared.recorder.begin_commit(&mut self.packer, writers)?;
        Ok(())
    }

    /// Waits for the batch that is being written.
    fn finish_commit(&mut self) -> Result<(), StoreError> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        self.shared.recorder.finish_commit(pending).inspect_err(|_| {
            // What was packed since builds on rows that are not there.
            let _ = self.packer.finish();
        })
    }

    /// Finishes the current file.
    fn close(&mut self, file: FileRow) -> Result<(), Stop> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        if let Some(refused) = &file.refused {
            self.shared.tally.warn(warning(display_name(&current.name), refused.clone()));
        }
        let file = FileRow { row: current.row, path: current.name.clone(), ..file };
        // A file that is read on every scan may not have changed.
        let stored = self.shared.file(&file.path);
        let found = FileRow { saved: None, ..file.clone() };
        if stored.is_none_or(|stored| stored != found) {
            let mut written = self.shared.written.lock().unwrap_or_else(PoisonError::into_inner);
            written.insert(found.path.clone(), found);
            drop(written);
            self.packer.batch().outdated_warnings.push((file.row, UNFINISHED_LINE_WARNING));
            self.packer.batch().files.push(file);
        }
        let added = current.add_to(&mut self.packer);
        for mut feed in current.ident.into_iter().flatten() {
            let tally = self.shared.tally;
            let new = feed.writer.take_count_delta();
            tally.turns.fetch_add(new.turns, Ordering::Relaxed);
            tally.parts.fetch_add(new.parts, Ordering::Relaxed);
            Tally::add(&tally.records, feed.records_read());
            if feed.changed && !feed.writer.is_empty_agent() {
                tally.changed(feed.writer.id);
            }
            self.done.insert(feed.writer.id, feed.writer);
        }
        added?;
        if self.is_full() {
            self.commit()?;
        }
        Ok(())
    }

    /// Commits the batch, publishes its changes and releases the finished sessions.
    pub fn commit(&mut self) -> Result<(), Stop> {
        let (filled, begun) = (self.filled(), Instant::now());
        (self.read, self.records) = (0, 0);
        let outcome = self.commit_batch().and_then(|()| self.order_sources());
        if self.shared.live.is_some() {
            self.pace.adapt(filled, begun.elapsed());
        }
        self.free_done();
        Ok(outcome?)
    }

    fn commit_batch(&mut self) -> Result<(), StoreError> {
        self.finish_commit()?;
        let current =
            self.current.iter_mut().flat_map(|current| current.ident.iter_mut().flatten());
        let writers = current.map(|feed| &mut feed.writer).chain(self.done.values_mut());
        self.shared.recorder.commit(&mut self.packer, writers)
    }

    /// Puts the turns of finished sessions in order that were read from several files. This takes
    /// time in proportion to the turns of a session, so it does not happen with each of its files.
    fn order_sources(&mut self) -> Result<(), StoreError> {
        for writer in self.done.values_mut() {
            self.shared.recorder.order_sources(writer)?;
            if writer.is_dirty() {
                self.packer.add(writer)?;
            }
        }
        self.commit_batch()
    }

    /// Drops the current file after a failure. Committed parts stay, and cursors keep them from
    /// being stored twice.
    fn drop_current(&mut self) {
        self.free_current();
        self.current = None;
    }

    fn free_done(&mut self) {
        self.shared.claims.free(self.done.drain().map(|(id, _)| id));
        self.files_in_batch.drain(..).for_each(|path| self.shared.in_use.end(&path));
    }

    fn free_current(&mut self) {
        // Others may open its sessions from now on.
        if let Some(pending) = &self.pending {
            pending.write.wait();
        }
        if let Some(current) = &mut self.current {
            let writers = current.ident.drain(..).flatten();
            self.shared.claims.free(writers.map(|feed| feed.writer.id));
        }
    }
}

impl<S: Store> Drop for Worker<'_, S> {
    /// Frees all claims, so that no other worker waits forever.
    fn drop(&mut self) {
        self.free_current();
        self.free_done();
    }
}
