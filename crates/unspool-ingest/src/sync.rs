//! Sync: selects the files that are new or changed and ingests them on several threads. Files come
//! from discovery, from the watch loop or from a request; their events go to the recorder.

pub mod agents;
mod claim;
pub(crate) mod file_state;
mod import_lines;
mod live_files;
mod open_file;
pub mod received;
pub mod reread;
mod worker;

use std::collections::VecDeque;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustc_hash::FxHashMap;
use thiserror::Error;
use unspool_model::source::FileStamp;
use unspool_sources::decode::Warning;
use unspool_sources::discover::{LogFile, file_stamp};
use unspool_sources::read::regular_file::open_regular;
use unspool_sources::read::rows;
use unspool_store::blocking::block_on;
use unspool_store::rows::{FileRow, forgotten_path};
use unspool_store::store::{Maintenance, Store, StoreError};

use crate::recorder::Recorder;
use crate::recorder::batch::IngestMode;
use crate::report::{Progress, SyncReport, Tally};
use crate::sync::claim::Claims;
use crate::sync::import_lines::ImportLinesError;
use crate::sync::live_files::FilesInUse;
pub use crate::sync::live_files::LiveFiles;
use crate::sync::worker::{FileRoute, QueuedFile, Stop, SyncContext, Worker};

#[derive(Debug, Error)]
pub enum SyncError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a worker thread crashed; everything stored so far is safe: run the command again")]
    Thread,
}

/// A file that may have to be read.
#[derive(Clone, Debug)]
pub struct FileCandidate {
    pub path: PathBuf,
    /// None forces a read.
    pub stamp: Option<FileStamp>,
    /// The user named this file: read it completely, without waiting for more data.
    pub named: bool,
}

impl From<LogFile> for FileCandidate {
    fn from(found: LogFile) -> FileCandidate {
        FileCandidate { path: found.path, stamp: Some(found.stamp), named: false }
    }
}

impl FileCandidate {
    pub fn of(path: &Path) -> FileCandidate {
        let stamp = std::fs::metadata(path).ok().map(|metadata| file_stamp(&metadata));
        let stamp = stamp.or_else(|| rows::stamp_of(path));
        FileCandidate { path: path.to_owned(), stamp, named: true }
    }
}

/// Below this much new input, the sync follows live sessions instead of importing history.
const LIVE_MAX_BYTES: u64 = 1024 * 1024;

/// Few parts take less than this in a log. A file with more parts than expected gets row numbers of
/// the newest for the rest.
const MIN_PART_BYTES: u64 = 64;

/// With more threads than this, workers only wait for the single writer.
const MAX_THREADS: usize = 4;

/// The stored state of every file. A long-running recorder keeps it in memory and loads it once.
#[derive(Default)]
pub struct FileStates(FxHashMap<String, FileRow>);

impl FileStates {
    pub fn load<S: Store>(recorder: &Recorder<S>) -> Result<FileStates, StoreError> {
        let files = block_on(recorder.store().files())?;
        Ok(FileStates(files.into_iter().map(|file| (file.path.clone(), file)).collect()))
    }
}

/// Ingests files into the archive. Unchanged files cause no write.
pub fn sync<S: Store>(
    recorder: &Recorder<S>,
    file_states: &mut FileStates,
    candidates: Vec<FileCandidate>,
    progress: &Progress,
) -> Result<SyncReport, SyncError> {
    sync_beside(recorder, file_states, candidates, progress, None)
}

/// Like `sync`, and meanwhile ingests what agents write. Its commits are small, so that what an
/// agent writes does not wait for them.
pub fn sync_beside<S: Store>(
    recorder: &Recorder<S>,
    FileStates(stored): &mut FileStates,
    candidates: Vec<FileCandidate>,
    progress: &Progress,
    live: Option<&dyn LiveFiles>,
) -> Result<SyncReport, SyncError> {
    let tally = Tally::default();
    let named = candidates.iter().all(|candidate| candidate.named);
    let todo = select_changed(stored, candidates, &tally);
    let _entered = tracing::info_span!("sync", files = todo.len(), named).entered();
    progress.files.store(todo.len() as u64, Ordering::Relaxed);
    progress.bytes.store(todo.iter().map(|file| file.size).sum(), Ordering::Relaxed);
    let (claims, in_use) = (Claims::default(), FilesInUse::default());
    let written = Mutex::default();
    let shared = SyncContext {
        recorder,
        claims: &claims,
        stored: &*stored,
        written: &written,
        in_use: &in_use,
        live,
        tally: &tally,
        progress,
        mode: ingest_mode(stored, &todo),
        named,
    };
    let queue = Mutex::new(enqueue(recorder, todo));
    let RoutedFiles { deferred, mut exports } = run(&shared, &queue)?;
    exports.extend(ingest_deferred(&shared, deferred)?);
    if tally.parts.load(Ordering::Relaxed) > 0 {
        maintain(&shared)?;
    }
    let written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
    stored.extend(written);
    let mut report = tally.into_report();
    import_exports(recorder, exports, &mut report)?;
    report.log();
    Ok(report)
}

/// Merges the index segments that the sync made, and meanwhile ingests what agents write.
fn maintain<S: Store>(shared: &SyncContext<'_, S>) -> Result<(), SyncError> {
    let store = shared.recorder.store();
    if shared.live.is_none() {
        return Ok(block_on(store.maintain(Maintenance::IfDue))?);
    }
    let mut worker = Worker::new(shared)?;
    while block_on(store.maintain_a_little())? {
        match worker.ingest_live() {
            Ok(()) | Err(Stop::Claimed) => {}
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    Ok(())
}

/// A file that is new or changed. Orders by time of change, then by size.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ChangedFile {
    modified: i64,
    size: u64,
    path: PathBuf,
}

/// The files whose stamp is not the stored one, in the order in which they are read.
fn select_changed(
    stored: &FxHashMap<String, FileRow>,
    candidates: Vec<FileCandidate>,
    tally: &Tally,
) -> Vec<ChangedFile> {
    let mut todo = Vec::new();
    for FileCandidate { path, stamp, .. } in candidates {
        let name = path.to_string_lossy();
        // A file whose path was forgotten is recognised, and read again if it changed.
        let seen = stored.get(&*name).or_else(|| stored.get(&forgotten_path(&name)));
        let seen = seen.map(|file| file.stamp);
        match (stamp, seen) {
            (Some(stamp), Some(seen)) if stamp == seen => {
                Tally::add(&tally.unchanged, 1);
            }
            _ => {
                let FileStamp { modified, size, .. } = stamp.unwrap_or_default();
                todo.push(ChangedFile { modified, size, path });
            }
        }
    }
    todo.sort_unstable();
    todo
}

/// The files in the order in which they are read: newest first, because those are what a person
/// wants to see first. Their parts get the highest row numbers nevertheless: a search with too many
/// matches returns the highest rows.
fn enqueue<S: Store>(recorder: &Recorder<S>, todo: Vec<ChangedFile>) -> VecDeque<QueuedFile> {
    let rows_of = |file: &ChangedFile| (file.size / MIN_PART_BYTES) as i64 + 1;
    let total = if todo.len() > 1 { todo.iter().map(rows_of).sum() } else { 0 };
    let mut start = recorder.row_ids().reserve_parts(total);
    let mut queue = VecDeque::with_capacity(todo.len());
    for file in todo {
        let end = start + rows_of(&file);
        let part_block = (total > 0).then_some(start..end);
        queue.push_front(QueuedFile { path: file.path, part_block });
        start = end;
    }
    queue
}

/// Little new input means live sessions, whose payloads stay in the journal.
fn ingest_mode(stored: &FxHashMap<String, FileRow>, todo: &[ChangedFile]) -> IngestMode {
    let grown: u64 = todo
        .iter()
        .map(|ChangedFile { size, path, .. }| {
            let taken = stored.get(&*path.to_string_lossy()).map_or(0, |file| file.print.offset);
            size.saturating_sub(taken)
        })
        .sum();
    if grown < LIVE_MAX_BYTES { IngestMode::Live } else { IngestMode::Bulk }
}

/// Ingests deferred files on one thread, where no claim can be contended. Returns the exports among
/// them.
fn ingest_deferred<S: Store>(
    shared: &SyncContext<'_, S>,
    deferred: Vec<QueuedFile>,
) -> Result<Vec<PathBuf>, SyncError> {
    let mut exports = Vec::new();
    let mut worker = Worker::new(shared)?;
    for file in deferred {
        match worker.ingest_queued(&file)? {
            FileRoute::Decode => {}
            FileRoute::Import => exports.push(file.path),
            FileRoute::Defer => {
                let what = "its session is being recorded; run `unspool sync` again".to_owned();
                shared.tally.warn(warning(&file.path, what));
            }
        }
    }
    finish(&mut worker)?;
    Ok(exports)
}

/// Imports files that are our own exports. One that cannot be imported becomes a warning.
fn import_exports<S: Store>(
    recorder: &Recorder<S>,
    exports: Vec<PathBuf>,
    report: &mut SyncReport,
) -> Result<(), SyncError> {
    for path in exports {
        match open_regular(&path)
            .map_err(Into::into)
            .and_then(|file| import_lines::import(recorder, BufReader::new(file)))
        {
            Ok(taken) => report.add(taken),
            Err(ImportLinesError::Store(error)) => return Err(error.into()),
            Err(error) => report.warnings.push(warning(&path, error.to_string())),
        }
    }
    Ok(())
}

/// Ingests input that is not a file, under a given name.
pub fn ingest_stream<S: Store>(
    recorder: &Recorder<S>,
    name: &str,
    source: impl Read,
    progress: &Progress,
) -> Result<SyncReport, SyncError> {
    ingest_all(recorder, [(name.to_owned(), source)], progress)
}

/// Ingests several texts, each under its own name.
pub fn ingest_streams<S: Store>(
    recorder: &Recorder<S>,
    texts: Vec<(String, String)>,
    progress: &Progress,
) -> Result<SyncReport, SyncError> {
    let texts = texts.into_iter().map(|(name, text)| (name, Cursor::new(text)));
    ingest_all(recorder, texts, progress)
}

fn ingest_all<S: Store, R: Read>(
    recorder: &Recorder<S>,
    sources: impl IntoIterator<Item = (String, R)>,
    progress: &Progress,
) -> Result<SyncReport, SyncError> {
    let FileStates(stored) = FileStates::load(recorder)?;
    let (tally, claims, written) = (Tally::default(), Claims::default(), Mutex::default());
    let in_use = FilesInUse::default();
    let shared = SyncContext {
        recorder,
        claims: &claims,
        stored: &stored,
        written: &written,
        in_use: &in_use,
        live: None,
        tally: &tally,
        progress,
        mode: IngestMode::Bulk,
        named: true,
    };
    let mut worker = Worker::new(&shared)?;
    for (name, source) in sources {
        match worker.ingest_stream(&name, source) {
            Ok(()) | Err(Stop::Claimed) => {}
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    finish(&mut worker)?;
    drop(worker);
    Ok(tally.into_report())
}

/// The files that the parallel phase did not decode.
#[derive(Default)]
struct RoutedFiles {
    deferred: Vec<QueuedFile>,
    exports: Vec<PathBuf>,
}

/// Runs the workers on one queue. Returns the files that they did not decode.
fn run<S: Store>(
    shared: &SyncContext<'_, S>,
    queue: &Mutex<VecDeque<QueuedFile>>,
) -> Result<RoutedFiles, SyncError> {
    let files = queue.lock().unwrap_or_else(PoisonError::into_inner).len();
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let count = cores.min(MAX_THREADS).min(files);
    let routed = Mutex::new(RoutedFiles::default());
    let outcome: Result<(), SyncError> = thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    let mut worker = Worker::new(shared)?;
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(file) = next else { break };
                        let route = worker.ingest_queued(&file).inspect_err(|_| {
                            // Stop the other workers too.
                            queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
                        })?;
                        let mut routed = routed.lock().unwrap_or_else(PoisonError::into_inner);
                        match route {
                            FileRoute::Decode => {
                                shared.progress.files_done.fetch_add(1, Ordering::Relaxed);
                            }
                            FileRoute::Import => routed.exports.push(file.path),
                            FileRoute::Defer => routed.deferred.push(file),
                        }
                    }
                    finish(&mut worker)
                })
            })
            .collect();
        let mut outcome = Ok(());
        for thread in threads {
            let ended = thread.join().unwrap_or(Err(SyncError::Thread));
            outcome = outcome.and(ended);
        }
        outcome
    });
    outcome?;
    Ok(routed.into_inner().unwrap_or_default())
}

fn finish<S: Store>(worker: &mut Worker<'_, S>) -> Result<(), SyncError> {
    match worker.commit() {
        Ok(()) | Err(Stop::Claimed) => Ok(()),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// A warning about a file as a whole.
pub fn warning(path: &Path, what: String) -> Warning {
    crate::sync::file_state::warning(&path.to_string_lossy(), what)
}
