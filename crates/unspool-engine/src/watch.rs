//! Watching: what agents write goes into the archive while they write it. The file system says
//! which files changed; a look at everything now and then finds what it did not say, and is all
//! there is on file systems that say nothing (network homes).

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use rustc_hash::FxHashSet;
use unspool_sources::discover::{Environment, Found, discover};
use unspool_store::contract::Store;
use unspool_store::recorder::Recorder;

use crate::report::{Progress, Report};
use crate::sync::{Candidate, Known, SyncError, sync};

/// How often everything is looked at where the file system tells of changes.
const SELDOM: Duration = Duration::from_secs(5);
/// And where it does not.
const OFTEN: Duration = Duration::from_millis(500);
/// Agents write several lines at once. What follows so closely is taken together.
const TOGETHER: Duration = Duration::from_millis(2);
/// But nobody waits longer than this.
const AT_MOST: Duration = Duration::from_millis(20);

/// What agents write, from now on.
pub struct Watch {
    environment: Environment,
    known: Known,
    watcher: Option<RecommendedWatcher>,
    watched: FxHashSet<PathBuf>,
    changes: Receiver<notify::Result<notify::Event>>,
    /// When everything is looked at again.
    due: Instant,
}

/// What changed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changed {
    files: FxHashSet<PathBuf>,
    /// Something that no single file stands for: a folder came, or something was missed.
    anything: bool,
}

impl Watch {
    pub fn new(environment: Environment, known: Known) -> Watch {
        let (tell, changes) = channel();
        // Without a watcher everything is looked at often.
        let watcher = notify::recommended_watcher(tell).ok();
        let watched = FxHashSet::default();
        Watch { environment, known, watcher, watched, changes, due: Instant::now() }
    }

    /// Waits until something may have changed, and takes it into the archive.
    pub fn take_next<S: Store>(&mut self, recorder: &Recorder<S>) -> Result<Report, SyncError> {
        let every = self.watch_folders();
        self.due = self.due.min(Instant::now() + every);
        let changed = self.wait();
        let found = if changed.anything {
            self.due = Instant::now() + every;
            discover(&self.environment).files
        } else {
            let look = |path: &PathBuf| self.environment.look_at(path);
            changed.files.iter().flat_map(look).collect::<Vec<Found>>()
        };
        let candidates = found.into_iter().map(Candidate::from).collect();
        let report = sync(recorder, &mut self.known, candidates, &Progress::default());
        if report.is_err() {
            // What was written before it failed is not known for certain.
            self.known = Known::load(recorder)?;
        }
        report
    }

    /// Folders may come later. Says how often everything must be looked at.
    fn watch_folders(&mut self) -> Duration {
        let Some(watcher) = &mut self.watcher else { return OFTEN };
        let mut every = SELDOM;
        for (folder, reach) in self.environment.watched_folders() {
            if self.watched.contains(&folder) || !folder.exists() {
                continue;
            }
            let mode = if reach { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            match watcher.watch(&folder, mode) {
                Ok(()) => {
                    self.watched.insert(folder);
                    // What was written before we watched was not told.
                    self.due = Instant::now();
                }
                // No more watches to be had, or a file system without them.
                Err(_) => every = OFTEN,
            }
        }
        every
    }

    /// What changed until a look at everything is due.
    fn wait(&mut self) -> Changed {
        let mut changed = Changed::default();
        let mut until = self.due;
        let mut begun = None;
        loop {
            let wait = until.saturating_duration_since(Instant::now());
            match self.changes.recv_timeout(wait) {
                Ok(told) => {
                    changed.take(told);
                    if !changed.is_nothing() {
                        let begun = *begun.get_or_insert_with(Instant::now);
                        until = (Instant::now() + TOGETHER).min(begun + AT_MOST);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    changed.anything |= Instant::now() >= self.due;
                    return changed;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.watcher = None;
                    std::thread::sleep(wait.min(OFTEN));
                    changed.anything = true;
                    return changed;
                }
            }
        }
    }
}

impl Changed {
    fn is_nothing(&self) -> bool {
        self.files.is_empty() && !self.anything
    }

    fn take(&mut self, told: notify::Result<notify::Event>) {
        let Ok(event) = told else {
            self.anything = true;
            return;
        };
        self.anything |= event.need_rescan();
        match event.kind {
            // We open files ourselves.
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
            EventKind::Access(_) => return,
            // What was in it before it was watched is not told. A renamed folder is not told as
            // its files.
            EventKind::Create(CreateKind::Folder | CreateKind::Any | CreateKind::Other)
            | EventKind::Modify(ModifyKind::Name(_)) => {
                self.anything |= event.paths.iter().any(|path| path.is_dir());
            }
            EventKind::Create(CreateKind::File)
            | EventKind::Modify(
                ModifyKind::Any | ModifyKind::Data(_) | ModifyKind::Metadata(_) | ModifyKind::Other,
            )
            | EventKind::Remove(_)
            | EventKind::Any
            | EventKind::Other => {}
        }
        self.files.extend(event.paths);
    }
}
