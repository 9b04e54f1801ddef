//! Watches the agents' folders and ingests files while agents write them. File-system events name
//! the changed files. A periodic full scan finds changes without an event; on file systems without
//! events (network homes) the scan is all there is. Of a log folder that does not exist yet, the nearest
//! folder above it is watched (`missing_folders.rs`).

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use rustc_hash::FxHashSet;
use unspool_sources::discover::{Discovery, Environment, LogFile, discover};
use unspool_store::store::{Store, Viewer};

use crate::recorder::Recorder;
use crate::report::{Progress, SyncReport};
use crate::service::inbox::{Changed, Inbox, InboxFiles};
use crate::service::missing_folders::{Found, MissingFolders};
use crate::service::projects::projects_of_sessions;
use crate::service::remote_folder::is_remote;
use crate::service::request::{RequestOutcome, execute};
use crate::service::request_queue::{QueuedRequest, RequestQueue, Wakeup};
use crate::service::silence::SilenceCheck;
use crate::sync::{FileCandidate, FileStates, SyncError, sync_beside};

/// Interval of full scans where the file system sends events.
const FULL_SCAN_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of full scans where it does not.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How changes are detected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ChangeDetection {
    /// By file-system events where available.
    #[default]
    Events,
    /// By scanning everything at a short interval.
    Polling,
}

/// The watch loop's state.
pub struct Watch {
    environment: Environment,
    file_states: FileStates,
    watcher: Option<RecommendedWatcher>,
    watched: FxHashSet<PathBuf>,
    missing: Option<MissingFolders>,
    /// A watched folder is on a network file system, where remote writes cause no events.
    remote: bool,
    /// Held so that the channel never closes.
    wakeup_sender: Sender<Wakeup>,
    inbox: Mutex<Inbox>,
    /// Sessions were written since the folders of projects were read.
    projects_changed: bool,
    /// When the next full scan is due.
    due: Instant,
    silence: Option<SilenceCheck>,
}

impl Watch {
    pub fn new(
        environment: Environment,
        file_states: FileStates,
        change_detection: ChangeDetection,
    ) -> Watch {
        let (wakeup_sender, wakeups) = channel();
        let sender = wakeup_sender.clone();
        // Without a watcher, `watch_folders` selects the short scan interval.
        let watcher = match change_detection {
            ChangeDetection::Events => notify::recommended_watcher(move |result| {
                // Fails only after the watch loop has ended.
                let _ = sender.send(Wakeup::FileEvent(result));
            })
            .ok(),
            ChangeDetection::Polling => None,
        };
        let missing = watcher.as_ref().and_then(|_| {
            let sender = wakeup_sender.clone();
            MissingFolders::new(&environment, move |event| {
                let _ = sender.send(Wakeup::FileEvent(Ok(event)));
            })
        });
        let watched = FxHashSet::default();
        let due = Instant::now();
        Watch {
            environment,
            file_states,
            watcher,
            watched,
            missing,
            remote: false,
            wakeup_sender,
            inbox: Mutex::new(Inbox::new(wakeups)),
            projects_changed: true,
            due,
            silence: None,
        }
    }

    /// Also ends the turns of agents that are gone.
    pub fn with_silence_check(self, silence: SilenceCheck) -> Watch {
        Watch { silence: Some(silence), ..self }
    }

    /// The queue for write requests from other processes.
    pub fn request_queue(&self) -> RequestQueue {
        RequestQueue(self.wakeup_sender.clone())
    }

    /// Searches the sources.
    pub fn discover(&mut self) -> Discovery {
        // Watched before the search: what is written to a file after it was found causes an event.
        self.watch_folders();
        discover(&self.environment)
    }

    /// Ingests what was found, and meanwhile what agents write.
    pub fn take_discovered<S: Store>(
        &mut self,
        recorder: &Recorder<S>,
        discovered: Discovery,
        progress: &Progress,
    ) -> Result<SyncReport, SyncError> {
        let mut report = self.sync(recorder, discovered.files, progress)?;
        report.warnings.extend(discovered.warnings);
        Ok(report)
    }

    /// Waits for changes and ingests them; executes the requests that arrived meanwhile.
    pub fn take_next<S: Store>(&mut self, recorder: &Recorder<S>) -> Result<SyncReport, SyncError> {
        self.take(recorder, None)
    }

    /// Like `take_next`, but waits no longer than until `then`.
    pub fn take_until<S: Store>(
        &mut self,
        recorder: &Recorder<S>,
        then: Instant,
    ) -> Result<SyncReport, SyncError> {
        self.take(recorder, Some(then))
    }

    /// Makes the next call start with a full scan.
    pub fn hurry(&mut self) {
        self.due = Instant::now();
    }

    fn take<S: Store>(
        &mut self,
        recorder: &Recorder<S>,
        then: Option<Instant>,
    ) -> Result<SyncReport, SyncError> {
        let every = self.watch_folders();
        self.due = self.due.min(Instant::now() + every);
        let checked = self.silence.as_ref().and_then(SilenceCheck::due);
        let until = [Some(self.due), checked, then].into_iter().flatten().min();
        let mut changed = self.wait(until.unwrap_or(self.due));
        // Also when there is nothing to write: otherwise nobody would notice for hours.
        recorder.store().check_identity()?;
        for QueuedRequest { request, reply } in changed.queued.drain(..) {
            let live = InboxFiles { inbox: &self.inbox, environment: &self.environment };
            let states = &mut self.file_states;
            let done = execute(recorder, states, request, &Progress::default(), Some(&live));
            if done.is_err() {
                self.file_states = FileStates::load(recorder)?;
            }
            let report = done.as_ref().ok().and_then(RequestOutcome::report);
            if let (Some(silence), Some(report)) = (&mut self.silence, report) {
                silence.add(report);
            }
            // The requester may have disconnected.
            let _ = reply.send(done);
        }
        let found = if changed.anything {
            self.due = Instant::now() + every;
            if std::mem::take(&mut self.projects_changed) {
                let view = recorder.store().view(Viewer::Sole);
                self.environment.projects = projects_of_sessions(&view)?;
                self.watch_folders();
            }
            discover(&self.environment).files
        } else {
            let look = |path: &PathBuf| self.environment.logs_at(path);
            changed.files.iter().flat_map(look).collect::<Vec<LogFile>>()
        };
        let report = self.sync(recorder, found, &Progress::default())?;
        if let Some(silence) = &mut self.silence {
            silence.add(&report);
            silence.run(recorder)?;
        }
        Ok(report)
    }

    /// Ingests files, and meanwhile what agents write.
    fn sync<S: Store>(
        &mut self,
        recorder: &Recorder<S>,
        found: Vec<LogFile>,
        progress: &Progress,
    ) -> Result<SyncReport, SyncError> {
        let candidates = found.into_iter().map(FileCandidate::from).collect();
        let live = InboxFiles { inbox: &self.inbox, environment: &self.environment };
        let report =
            sync_beside(recorder, &mut self.file_states, candidates, progress, Some(&live));
        self.projects_changed |= report.as_ref().is_ok_and(|report| report.records > 0);
        if report.is_err() {
            // After a failure the in-memory state may differ from what was committed.
            self.file_states = FileStates::load(recorder)?;
        }
        report
    }

    /// Watches folders that have appeared since the last call. Returns the full-scan interval.
    fn watch_folders(&mut self) -> Duration {
        let Some(watcher) = &mut self.watcher else { return POLL_INTERVAL };
        let mut every = if self.remote { POLL_INTERVAL } else { FULL_SCAN_INTERVAL };
        for (folder, reach) in self.environment.watched_folders() {
            if self.watched.contains(&folder) {
                continue;
            }
            if !folder.exists() {
                let missing = self.missing.as_mut();
                if missing.is_none_or(|missing| missing.watch_above(&folder) == Found::Nothing) {
                    continue;
                }
            }
            let mode = if reach { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            match watcher.watch(&folder, mode) {
                Ok(()) => {
                    self.remote |= is_remote(&folder);
                    self.watched.insert(folder);
                    // Writes before the watch started caused no event.
                    self.due = Instant::now();
                }
                // The watch limit is reached, or the file system has no events.
                Err(_) => every = POLL_INTERVAL,
            }
        }
        every
    }

    /// Collects changes until then; requests a full scan if one is due.
    fn wait(&mut self, until: Instant) -> Changed {
        let mut changed = self.inbox.get_mut().unwrap_or_else(PoisonError::into_inner).wait(until);
        changed.anything |= Instant::now() >= self.due;
        // A folder that is made again at the same path needs a new watch.
        for path in changed.removed.drain(..) {
            if let Some(missing) = &mut self.missing {
                missing.forget(&path);
            }
            if let Some(watcher) = &mut self.watcher
                && self.watched.remove(&path)
            {
                // The watcher may have dropped it already.
                let _ = watcher.unwatch(&path);
            }
        }
        changed
    }
}
