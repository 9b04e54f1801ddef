//! Files that agents write while a sync reads history. A worker ingests them between two records of
//! its own file, so that a live session is shown at once, however long the history is.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use unspool_store::store::Store;

use crate::recorder::batch::IngestMode;
use crate::sync::worker::{FileRoute, Stop, SyncContext, Worker};
use crate::sync::{FileCandidate, LIVE_MAX_BYTES, SyncError};

/// The shortest time between two looks. It bounds the delay of a live session, and the share of the
/// time that a busy one takes from the history.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long a commit may take: a live session waits for it.
const COMMIT_TARGET: Duration = Duration::from_millis(12);
/// A batch has at least this share of its full size: with too many commits nothing gets done.
const MIN_SHARE: f64 = 1.0 / 64.0;
/// How many times as much as the cheapest one a commit may cost, for what it writes.
const MAX_COST_RATIO: f64 = 4.0;

/// Where a sync learns of files that agents write meanwhile.
pub trait LiveFiles: Sync {
    /// Takes the next file that was written to.
    fn next(&self) -> Option<FileCandidate>;

    /// Hands a file back: its session is being written. It is due again a little later.
    fn retry(&self, file: FileCandidate);

    /// Leaves a file to the next sync.
    fn postpone(&self);
}

/// How much a batch holds while live sessions wait for its commit, as a share of a full batch.
#[derive(Debug)]
pub(super) struct Pace {
    pub share: f64,
    /// When to look for live files again.
    pub due: Instant,
    /// The lowest cost of a commit so far, in seconds per full batch.
    lowest_cost: f64,
}

impl Pace {
    pub fn new(live: bool) -> Pace {
        let share = if live { MIN_SHARE } else { 1.0 };
        Pace { share, due: Instant::now(), lowest_cost: f64::INFINITY }
    }

    /// Adapts the size of the next batch to the time that a commit of this size took.
    pub fn adapt(&mut self, filled: f64, took: Duration) {
        if filled < MIN_SHARE / 2.0 {
            // The end of a file, or a session that another file needs: it says nothing.
            return;
        }
        let cost = took.as_secs_f64().max(1e-6) / filled;
        self.lowest_cost = self.lowest_cost.min(cost);
        // A part of the cost grows with the session, not with the batch. Where that part prevails,
        // batches grow with it, which keeps the whole import linear.
        let share = if cost > MAX_COST_RATIO * self.lowest_cost {
            self.share * 2.0
        } else {
            COMMIT_TARGET.as_secs_f64() / cost
        };
        // A small batch says little about a large one.
        self.share = share.clamp(self.share / 2.0, self.share * 2.0).clamp(MIN_SHARE, 1.0);
    }
}

/// The files that workers are reading, by name. No two workers read one file: a new file has no row
/// yet, and each of them would make one.
#[derive(Debug, Default)]
pub(crate) struct FilesInUse(Mutex<FxHashSet<PathBuf>>);

impl FilesInUse {
    pub fn try_begin(&self, path: &Path) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned())
    }

    /// Waits until no other worker reads the file. That takes moments: only a quick read of a live
    /// file can overlap with another one.
    pub fn begin(&self, path: &Path) {
        while !self.try_begin(path) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn end(&self, path: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }
}

impl<S: Store> Worker<'_, S> {
    /// Ingests a file that an agent has just written to, if there is one. The worker's own file
    /// stays as it is.
    pub(super) fn ingest_live(&mut self) -> Result<(), Stop> {
        let Some(live) = self.shared.live else { return Ok(()) };
        let begun = Instant::now();
        if begun < self.pace.due {
            return Ok(());
        }
        while let Some(file) = live.next() {
            match self.news(&file) {
                0 => continue,
                news if news > LIVE_MAX_BYTES => live.postpone(),
                _ => self.ingest_between(live, file)?,
            }
            break;
        }
        self.pace.due = Instant::now() + begun.elapsed().max(POLL_INTERVAL);
        Ok(())
    }

    /// How many bytes of a file are new, roughly: 0 only if nothing is.
    fn news(&self, file: &FileCandidate) -> u64 {
        let stored = self.shared.file(&file.path.to_string_lossy());
        let (Some(found), Some(stored)) = (file.stamp, &stored) else {
            return file.stamp.map_or(1, |found| found.size.max(1));
        };
        if found == stored.stamp {
            return 0;
        }
        found.size.saturating_sub(stored.print.offset).max(1)
    }

    fn ingest_between(&mut self, live: &dyn LiveFiles, file: FileCandidate) -> Result<(), Stop> {
        let mut route = self.ingest_quickly(&file.path)?;
        if route == FileRoute::Defer {
            // A session of an earlier file is ours until its batch is committed.
            self.commit()?;
            route = self.ingest_quickly(&file.path)?;
        }
        match route {
            FileRoute::Decode => {}
            FileRoute::Import => live.postpone(),
            FileRoute::Defer => live.retry(file),
        }
        Ok(())
    }

    fn ingest_quickly(&self, path: &Path) -> Result<FileRoute, Stop> {
        if !self.shared.in_use.try_begin(path) {
            return Ok(FileRoute::Defer);
        }
        let shared =
            SyncContext { mode: IngestMode::Live, live: None, named: false, ..*self.shared };
        let outcome = ingest_alone(&shared, path);
        self.shared.in_use.end(path);
        outcome.map_err(Stop::Failed)
    }
}

/// Ingests one file with a worker of its own, which waits for nobody.
fn ingest_alone<S: Store>(
    shared: &SyncContext<'_, S>,
    path: &Path,
) -> Result<FileRoute, SyncError> {
    let mut worker = Worker::new(shared)?.without_waiting();
    let route = worker.ingest_file(path)?;
    super::finish(&mut worker)?;
    Ok(route)
}
