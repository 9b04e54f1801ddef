//! Sync: which files are new or have grown, and all of them into the archive.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustc_hash::FxHashMap;
use thiserror::Error;
use unspool_sources::decode::Warning;
use unspool_sources::discover::{Found, Stamp};
use unspool_sources::read::rows;
use unspool_store::batch::Pace;
use unspool_store::blocking::wait;
use unspool_store::contract::{Store, StoreError, Tidy};
use unspool_store::recorder::Recorder;
use unspool_store::rows::FileRow;

use crate::claim::Claims;
use crate::exchange::{self, ExchangeError};
use crate::report::{Progress, Report, Tally};
use crate::take::{Shared, Stop, Taker};

#[derive(Debug, Error)]
pub enum SyncError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a thread that read files has ended; what was stored before is safe: run it again")]
    Thread,
}

/// A file to be looked at.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub path: PathBuf,
    /// None where the file system did not say.
    pub stamp: Option<Stamp>,
    /// Somebody asked for this file, and wants what is in it now.
    pub named: bool,
}

impl From<Found> for Candidate {
    fn from(found: Found) -> Candidate {
        Candidate { path: found.path, stamp: Some(found.stamp), named: false }
    }
}

impl Candidate {
    pub fn of(path: &Path) -> Candidate {
        let stamp = std::fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata));
        let stamp = stamp.or_else(|| rows::stamp_of(path));
        Candidate { path: path.to_owned(), stamp, named: true }
    }
}

/// Less than this is no history to catch up with, but something that goes on.
const LITTLE: u64 = 1024 * 1024;

/// More threads than this wait for the one that writes.
const THREADS: usize = 4;

/// The files that the archive knows, as it last saw them. Whoever records for long keeps it: the
/// archive is asked once.
#[derive(Default)]
pub struct Known(FxHashMap<String, FileRow>);

impl Known {
    pub fn load<S: Store>(recorder: &Recorder<S>) -> Result<Known, StoreError> {
        let files = wait(recorder.store().files())?;
        Ok(Known(files.into_iter().map(|file| (file.path.clone(), file)).collect()))
    }
}

/// Brings files into the archive. Nothing is written for files that did not change.
pub fn sync<S: Store>(
    recorder: &Recorder<S>,
    Known(known): &mut Known,
    candidates: Vec<Candidate>,
    progress: &Progress,
) -> Result<Report, SyncError> {
    let tally = Tally::default();
    let mut todo: Vec<(i64, u64, PathBuf)> = Vec::new();
    let named = candidates.iter().all(|candidate| candidate.named);
    for Candidate { path, stamp, .. } in candidates {
        let seen = known.get(&*path.to_string_lossy()).map(|file| file.stamp);
        match (stamp, seen) {
            (Some(stamp), Some(seen)) if is_same(stamp, seen) => {
                Tally::add(&tally.unchanged, 1);
            }
            _ => {
                let stamp = stamp.unwrap_or_default();
                todo.push((stamp.modified, stamp.size, path));
            }
        }
    }
    // The newest last: so the newest parts have the highest rows, and are found first where a
    // search would find too much.
    todo.sort_unstable();
    progress.files.store(todo.len() as u64, Ordering::Relaxed);
    progress.bytes.store(todo.iter().map(|(_, size, _)| size).sum(), Ordering::Relaxed);
    let claims = Claims::default();
    // What grew by a little is kept as what is still going on.
    let grown: u64 = todo
        .iter()
        .map(|(_, size, path)| {
            let taken = known.get(&*path.to_string_lossy()).map_or(0, |file| file.offset);
            size.saturating_sub(taken)
        })
        .sum();
    let pace = if grown < LITTLE { Pace::Live } else { Pace::Bulk };
    let written = Mutex::default();
    let shared = Shared {
        recorder,
        claims: &claims,
        known: &*known,
        written: &written,
        tally: &tally,
        progress,
        pace,
        named,
    };
    let queue = Mutex::new(todo.into_iter().map(|(_, _, path)| path).collect::<VecDeque<_>>());
    let later = run(&shared, &queue)?;
    // Files of several sessions, by one thread alone: nobody can be waited for.
    let mut taker = Taker::new(&shared)?;
    let mut exports = Vec::new();
    for path in later {
        match taker.take_file(&path) {
            Ok(()) => {}
            Err(Stop::Later) => exports.push(path),
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    finish(&mut taker)?;
    drop(taker);
    let written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
    known.extend(written.into_iter().map(|file: FileRow| (file.path.clone(), file)));
    let mut report = tally.into_report();
    if report.parts > 0 {
        wait(recorder.store().tidy(Tidy::WhenDue))?;
    }
    for path in exports {
        match File::open(&path)
            .map_err(Into::into)
            .and_then(|file| exchange::import(recorder, BufReader::new(file)))
        {
            Ok(taken) => report.add(taken),
            Err(ExchangeError::Store(error)) => return Err(error.into()),
            Err(error) => report.warnings.push(warning(&path, error.to_string())),
        }
    }
    Ok(report)
}

/// Brings what comes from somewhere else than a file into the archive, under a name.
pub fn take_stream<S: Store>(
    recorder: &Recorder<S>,
    name: &str,
    source: impl Read,
    progress: &Progress,
) -> Result<Report, SyncError> {
    take_all(recorder, [(name.to_owned(), source)], progress)
}

/// The same for several texts, each under a name of its own.
pub fn take_streams<S: Store>(
    recorder: &Recorder<S>,
    texts: Vec<(String, String)>,
    progress: &Progress,
) -> Result<Report, SyncError> {
    let texts = texts.into_iter().map(|(name, text)| (name, Cursor::new(text)));
    take_all(recorder, texts, progress)
}

fn take_all<S: Store, R: Read>(
    recorder: &Recorder<S>,
    sources: impl IntoIterator<Item = (String, R)>,
    progress: &Progress,
) -> Result<Report, SyncError> {
    let Known(known) = Known::load(recorder)?;
    let (tally, claims, written) = (Tally::default(), Claims::default(), Mutex::default());
    let shared = Shared {
        recorder,
        claims: &claims,
        known: &known,
        written: &written,
        tally: &tally,
        progress,
        pace: Pace::Bulk,
        named: true,
    };
    let mut taker = Taker::new(&shared)?;
    for (name, source) in sources {
        match taker.take_stream(&name, source) {
            Ok(()) | Err(Stop::Later) => {}
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
    finish(&mut taker)?;
    drop(taker);
    Ok(tally.into_report())
}

/// Several threads take from one queue. Gives back what was left for later.
fn run<S: Store>(
    shared: &Shared<'_, S>,
    queue: &Mutex<VecDeque<PathBuf>>,
) -> Result<Vec<PathBuf>, SyncError> {
    let files = queue.lock().unwrap_or_else(PoisonError::into_inner).len();
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let count = cores.min(THREADS).min(files);
    let later = Mutex::new(Vec::new());
    let outcome: Result<(), SyncError> = thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    let mut taker = Taker::new(shared)?;
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(path) = next else { break };
                        match taker.take_file(&path) {
                            Ok(()) => {}
                            Err(Stop::Later) => {
                                later.lock().unwrap_or_else(PoisonError::into_inner).push(path);
                                continue;
                            }
                            Err(Stop::Failed(error)) => {
                                // The others need not go on either.
                                queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
                                return Err(error);
                            }
                        }
                        shared.progress.files_done.fetch_add(1, Ordering::Relaxed);
                    }
                    finish(&mut taker)
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
    Ok(later.into_inner().unwrap_or_default())
}

fn finish<S: Store>(taker: &mut Taker<'_, S>) -> Result<(), SyncError> {
    match taker.commit() {
        Ok(()) | Err(Stop::Later) => Ok(()),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn is_same(stamp: Stamp, seen: unspool_store::rows::FileStamp) -> bool {
    (stamp.size, stamp.modified, stamp.changed, stamp.inode, stamp.device)
        == (seen.size, seen.modified, seen.changed, seen.inode, seen.device)
}

/// A warning about a file as a whole.
pub fn warning(path: &Path, what: String) -> Warning {
    crate::known::warning(&path.to_string_lossy(), what)
}
