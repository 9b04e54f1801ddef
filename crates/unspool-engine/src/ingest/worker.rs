//! A worker thread of a sync: ingests files one after another into batches. It holds the sessions
//! of one file and one batch in memory, however long the files are.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use unspool_core::id::SessionId;
use unspool_sources::file_decoder::{
    Checkpoint, FileDecoder, FileDigest, LastLine, SessionIdent, UNFINISHED_LINE_WARNING, Verdict,
    decode_from,
};
use unspool_sources::fingerprint::{self, fingerprint};
use unspool_sources::read::lines::Position;
use unspool_sources::read::source::{self, Source};
use unspool_store::batch::{IngestMode, Packer};
use unspool_store::blocking::block_on;
use unspool_store::recorder::Recorder;
use unspool_store::rows::FileRow;
use unspool_store::session_writer::SessionWriter;
use unspool_store::store::{Store, StoreError};

use crate::exchange::is_export;
use crate::ingest::claim::Claims;
use crate::ingest::file_state::{file_row, is_idle, warning};
use crate::ingest::open_file::{OpenFeed, OpenFile};
use crate::ingest::sync::SyncError;
use crate::report::{Progress, Tally};

/// A batch is committed after this much input. Bounds memory while keeping transactions large.
const BATCH_BYTES: u64 = 16 * 1024 * 1024;
/// A batch is also committed when its index words take this much memory.
const MAX_WORDS_BYTES: usize = 16 * 1024 * 1024;

/// What the workers of one sync share.
pub(crate) struct SyncContext<'a, S: Store> {
    pub recorder: &'a Recorder<S>,
    pub claims: &'a Claims,
    pub stored: &'a FxHashMap<String, FileRow>,
    /// File rows written by this sync.
    pub written: &'a Mutex<Vec<FileRow>>,
    pub tally: &'a Tally,
    pub progress: &'a Progress,
    pub mode: IngestMode,
    /// The user named these files: read them completely, without waiting for more data.
    pub named: bool,
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
    packer: Packer,
    /// Bytes read since the last commit.
    read: u64,
    /// Finished sessions that are not committed yet.
    done: Vec<SessionWriter>,
    pub(crate) current: Option<OpenFile>,
    pub(crate) stop: Option<Stop>,
}

impl<'a, S: Store> Worker<'a, S> {
    pub fn new(shared: &'a SyncContext<'a, S>) -> Result<Worker<'a, S>, StoreError> {
        let packer = shared.recorder.packer(shared.mode)?;
        Ok(Worker { shared, packer, read: 0, done: Vec::new(), current: None, stop: None })
    }

    /// Reads a file from where the last read stopped, unless it takes another route.
    pub fn ingest_file(&mut self, path: &Path) -> Result<FileRoute, SyncError> {
        if is_export(path) {
            return Ok(FileRoute::Import);
        }
        match self.decode_file(path) {
            Ok(()) => Ok(FileRoute::Decode),
            Err(Stop::Claimed) => Ok(FileRoute::Defer),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn decode_file(&mut self, path: &Path) -> Result<(), Stop> {
        let name = path.to_string_lossy().into_owned();
        let mut source = match source::open(path) {
            Ok(source) => source,
            Err(error) => {
                self.shared.tally.warn(warning(&name, format!("cannot be read: {error}")));
                return Ok(());
            }
        };
        let stored = self.shared.stored.get(&name);
        let mut same = stored.is_some_and(|stored| {
            fingerprint::matches(stored.print, source.text()).unwrap_or(false)
        });
        if let Some(stored) = stored.filter(|_| same) {
            same = !self.is_rewritten(stored, &mut source)?;
        }
        let row = stored.map_or_else(|| self.shared.recorder.row_ids().file(), |stored| stored.row);
        self.current = Some(OpenFile {
            row,
            name,
            path: Some(path.to_owned()),
            // A file that was empty last time starts a new source.
            replaced: stored.is_some_and(|stored| !same || stored.print.offset == 0),
            ident: Vec::new(),
            warnings: Vec::new(),
        });
        let outcome = self.read_file(path, &mut source, stored.filter(|_| same));
        self.drop_current();
        outcome
    }

    /// True if a completely read file of unchanged size has different content. Called when its
    /// mtime or ctime changed; per-line digests tell an in-place rewrite from a touch.
    fn is_rewritten(&self, stored: &FileRow, source: &mut Source) -> Result<bool, Stop> {
        let size = source.stamp.size;
        if (stored.stamp.size, stored.print.offset, source.length) != (size, size, Some(size)) {
            return Ok(false);
        }
        let Some(saved) = self.saved(stored)? else { return Ok(false) };
        let found = source.from(Position::default()).and_then(|text| FileDigest::of(text, size));
        // A read error is reported by the read that follows.
        Ok(found.is_ok_and(|found| found != saved.file_digest()))
    }

    fn saved(&self, stored: &FileRow) -> Result<Option<Checkpoint>, Stop> {
        let saved = block_on(self.shared.recorder.store().saved(stored.row))?;
        Ok(saved.and_then(|saved| serde_json::from_str(&saved).ok()))
    }

    fn read_file(
        &mut self,
        path: &Path,
        source: &mut Source,
        stored: Option<&FileRow>,
    ) -> Result<(), Stop> {
        let mut file_decoder = FileDecoder::new(&path.to_string_lossy());
        let mut position = Position::default();
        if let Some(stored) = stored.filter(|stored| stored.print.offset > 0)
            && let Some(resumed) = self.resume(stored)?
        {
            file_decoder = resumed;
            position = Position { number: stored.line, offset: stored.print.offset };
        }
        let Source { mut stamp, length, .. } = *source;
        let rest = is_idle(stamp);
        let last = if rest { LastLine::TakeWhole } else { LastLine::Leave };
        let text = source.from(position);
        let Some(verdict) = self.read(text, &mut file_decoder, &mut position, last)? else {
            return Ok(());
        };
        let unfinished = length.is_some_and(|length| position.offset < length);
        if !rest && (unfinished || file_decoder.is_undecided()) {
            // A zero mtime never matches, so the next scan reads this file again.
            stamp.modified = 0;
        }
        let print = fingerprint(source.text(), position.offset).ok();
        let saved = file_decoder.save().and_then(|saved| serde_json::to_string(&saved).ok());
        self.close(FileRow { stamp, saved, ..file_row(position, print, verdict) })
    }

    /// Reads input that is not a file, under a given name.
    pub fn ingest_stream(&mut self, name: &str, source: impl Read) -> Result<(), Stop> {
        let stored = self.shared.stored.get(name);
        let row = stored.map_or_else(|| self.shared.recorder.row_ids().file(), |stored| stored.row);
        self.current = Some(OpenFile {
            row,
            name: name.to_owned(),
            path: None,
            replaced: false,
            ident: Vec::new(),
            warnings: Vec::new(),
        });
        let mut file_decoder = FileDecoder::new(name);
        let mut position = Position::default();
        let outcome = self
            .read(Ok(source), &mut file_decoder, &mut position, LastLine::TakeWhole)
            .and_then(|verdict| match verdict {
                Some(verdict) => self.close(file_row(Position::default(), None, verdict)),
                None => Ok(()),
            });
        self.drop_current();
        outcome
    }

    /// Reads to the end. None after a read error, which becomes a warning.
    fn read(
        &mut self,
        source: std::io::Result<impl Read>,
        file_decoder: &mut FileDecoder,
        position: &mut Position,
        last: LastLine,
    ) -> Result<Option<Verdict>, Stop> {
        let begun = position.offset;
        let mut seen = begun;
        let reached = source.and_then(|source| {
            decode_from(source, position, last, file_decoder, self, |_, worker, position| {
                worker.advance(position.offset.saturating_sub(seen));
                seen = position.offset;
                if worker.stop.is_none() && worker.is_full() {
                    worker.stop = worker.write_so_far(position).err();
                }
                match worker.stop {
                    Some(_) => ControlFlow::Break(()),
                    None => ControlFlow::Continue(()),
                }
            })
        });
        if let Some(stop) = self.stop.take() {
            return Err(stop);
        }
        if let Err(error) = reached {
            let name = file_decoder.name().to_owned();
            self.shared.tally.warn(warning(&name, format!("cannot be read: {error}")));
            return Ok(None);
        }
        // A growing file may still state its session id. The file name is only a guess, and parts
        // stored under a wrong session would stay there.
        let waits = last == LastLine::Leave && !self.shared.named;
        let undecided = waits && file_decoder.is_undecided();
        let verdict = if undecided { Verdict::HasSessions } else { file_decoder.finish(self) };
        if let Some(stop) = self.stop.take() {
            return Err(stop);
        }
        Tally::add(&self.shared.tally.bytes, position.offset.saturating_sub(begun));
        Ok(Some(verdict))
    }

    /// Resumes a decoder and opens its sessions. None means to read from the start, which is
    /// harmless because cursors skip what is stored.
    fn resume(&mut self, stored: &FileRow) -> Result<Option<FileDecoder>, Stop> {
        let Some(file_decoder) =
            self.saved(stored)?.and_then(|saved| FileDecoder::resume(&stored.path, &saved))
        else {
            return Ok(None);
        };
        for (handle, ident, number) in file_decoder.sessions() {
            let mut feed = self.open(&ident)?;
            let goes_on = feed.as_mut().is_none_or(|feed| feed.resume_counts(stored.row, number));
            if let (Some(feed), Some(turn)) = (&mut feed, file_decoder.turn(handle)) {
                feed.writer.resume_at(ident.feed, number, &turn);
            }
            self.push_feed(feed);
            if !goes_on {
                // The session was deleted in the meantime.
                self.free_current();
                return Ok(None);
            }
        }
        Ok(Some(file_decoder))
    }

    /// Claims and opens a session. None if the user deleted it.
    pub(crate) fn open(&mut self, ident: &SessionIdent<'_>) -> Result<Option<OpenFeed>, Stop> {
        let id = SessionId::of(ident.agent, ident.session);
        let claims = self.shared.claims;
        if !claims.try_claim(id) {
            // An earlier file of this worker may hold the claim until its batch is committed.
            self.commit()?;
            if self.current.as_ref().is_none_or(|current| current.ident.is_empty()) {
                claims.claim(id);
            } else if !claims.try_claim(id) {
                return Err(Stop::Claimed);
            }
        }
        match self.shared.recorder.open(ident.agent, ident.session) {
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

    fn advance(&mut self, bytes: u64) {
        self.read += bytes;
        self.shared.progress.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        self.read >= BATCH_BYTES || self.packer.words_memory() >= MAX_WORDS_BYTES
    }

    /// Commits in the middle of a file. After a crash here the file is read again from its start,
    /// and cursors skip what is stored: a decoder's state is too large to save with every batch.
    fn write_so_far(&mut self, position: Position) -> Result<(), Stop> {
        if let Some(current) = &mut self.current {
            let source = current.path.as_ref().and_then(|path| source::open(path).ok());
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
        self.commit()
    }

    /// Finishes the current file.
    fn close(&mut self, file: FileRow) -> Result<(), Stop> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        if let Some(refused) = &file.refused {
            self.shared.tally.warn(warning(&current.name, refused.clone()));
        }
        let file = FileRow { row: current.row, path: current.name.clone(), ..file };
        // A file that is read on every scan may not have changed.
        let stored = self.shared.stored.get(&file.path);
        if stored.is_none_or(|stored| *stored != FileRow { saved: None, ..file.clone() }) {
            let mut written = self.shared.written.lock().unwrap_or_else(PoisonError::into_inner);
            written.push(FileRow { saved: None, ..file.clone() });
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
            self.done.push(feed.writer);
        }
        added?;
        if self.is_full() {
            self.commit()?;
        }
        Ok(())
    }

    /// Commits the batch, publishes its changes and releases the finished sessions.
    pub fn commit(&mut self) -> Result<(), Stop> {
        self.read = 0;
        let writers =
            self.current.iter_mut().flat_map(|current| current.ident.iter_mut().flatten());
        let writers = writers.map(|feed| &mut feed.writer).chain(&mut self.done);
        let outcome = self.shared.recorder.commit(&mut self.packer, writers);
        self.shared.claims.free(self.done.drain(..).map(|writer| writer.id));
        Ok(outcome?)
    }

    /// Drops the current file after a failure. Committed parts stay, and cursors keep them from
    /// being stored twice.
    fn drop_current(&mut self) {
        self.free_current();
        self.current = None;
    }

    fn free_current(&mut self) {
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
        self.shared.claims.free(self.done.drain(..).map(|writer| writer.id));
    }
}
