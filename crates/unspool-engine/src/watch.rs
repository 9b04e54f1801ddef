//! Watching: what agents write goes into the archive while they write it. The file system says
//! which files changed; a look at everything now and then finds what it did not say, and is all
//! there is on file systems that say nothing (network homes).

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use rustc_hash::FxHashSet;
use unspool_sources::discover::{Environment, Found, discover};
use unspool_store::contract::Store;
use unspool_store::recorder::Recorder;

use crate::desk::{Asked, Call, Desk};
use crate::report::{Progress, Report};
use crate::request::carry_out;
use crate::sync::{Candidate, Known, SyncError, sync};

/// How often everything is looked at where the file system tells of changes.
const SELDOM: Duration = Duration::from_secs(5);
/// And where it does not.
const OFTEN: Duration = Duration::from_millis(500);
/// Agents write several lines at once. What follows so closely is taken together.
const TOGETHER: Duration = Duration::from_millis(2);
/// But nobody waits longer than this.
const AT_MOST: Duration = Duration::from_millis(20);

/// How one comes to know of changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Notice {
    /// The file system tells, where it can.
    #[default]
    Told,
    /// Everything is looked at again and again, as on a file system that tells nothing.
    Polled,
}

/// What agents write, from now on.
pub struct Watch {
    environment: Environment,
    known: Known,
    watcher: Option<RecommendedWatcher>,
    watched: FxHashSet<PathBuf>,
    /// One of them is on another machine, whose own changes nobody tells here.
    remote: bool,
    /// Kept, so that the channel is never closed.
    call: Sender<Call>,
    calls: Receiver<Call>,
    /// When everything is looked at again.
    due: Instant,
}

/// What changed.
#[derive(Default)]
struct Changed {
    files: FxHashSet<PathBuf>,
    /// Something that no single file stands for: a folder came, or something was missed.
    anything: bool,
    asked: Vec<Asked>,
}

impl Watch {
    pub fn new(environment: Environment, known: Known, notice: Notice) -> Watch {
        let (call, calls) = channel();
        let tell = call.clone();
        // Without a watcher everything is looked at often.
        let watcher = match notice {
            Notice::Told => notify::recommended_watcher(move |told| {
                // Nobody watches any more.
                let _ = tell.send(Call::Told(told));
            })
            .ok(),
            Notice::Polled => None,
        };
        let watched = FxHashSet::default();
        let due = Instant::now();
        Watch { environment, known, watcher, watched, remote: false, call, calls, due }
    }

    /// Where others hand in what they want to be written.
    pub fn desk(&self) -> Desk {
        Desk(self.call.clone())
    }

    /// Waits until something may have changed, and takes it into the archive; and does what was
    /// asked meanwhile.
    pub fn take_next<S: Store>(&mut self, recorder: &Recorder<S>) -> Result<Report, SyncError> {
        self.take(recorder, None)
    }

    /// The same, but waits no longer than until then.
    pub fn take_until<S: Store>(
        &mut self,
        recorder: &Recorder<S>,
        then: Instant,
    ) -> Result<Report, SyncError> {
        self.take(recorder, Some(then))
    }

    /// Everything is looked at the next time, and that is now.
    pub fn hurry(&mut self) {
        self.due = Instant::now();
    }

    fn take<S: Store>(
        &mut self,
        recorder: &Recorder<S>,
        then: Option<Instant>,
    ) -> Result<Report, SyncError> {
        let every = self.watch_folders();
        self.due = self.due.min(Instant::now() + every);
        let mut changed = self.wait(then.map_or(self.due, |then| then.min(self.due)));
        for Asked { request, answer } in changed.asked.drain(..) {
            let done = carry_out(recorder, &mut self.known, request, &Progress::default());
            if done.is_err() {
                self.known = Known::load(recorder)?;
            }
            // Whoever asked may be gone.
            let _ = answer.send(done);
        }
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
        let mut every = if self.remote { OFTEN } else { SELDOM };
        for (folder, reach) in self.environment.watched_folders() {
            if self.watched.contains(&folder) || !folder.exists() {
                continue;
            }
            let mode = if reach { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            match watcher.watch(&folder, mode) {
                Ok(()) => {
                    self.remote |= is_remote(&folder);
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

    /// A folder that is gone is watched no more; one that comes in its place is another.
    fn forget_removed(&mut self, told: &notify::Result<notify::Event>) {
        let gone = |kind: EventKind| {
            matches!(kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)))
        };
        if let (Ok(event), Some(watcher)) = (told, &mut self.watcher)
            && gone(event.kind)
        {
            for path in event.paths.iter().filter(|path| self.watched.remove(*path)) {
                // It may be gone from the watcher as well.
                let _ = watcher.unwatch(path);
            }
        }
    }

    /// What changed until then; everything, if a look at it is due by then.
    fn wait(&mut self, mut until: Instant) -> Changed {
        let mut changed = Changed::default();
        let mut begun = None;
        loop {
            let wait = until.saturating_duration_since(Instant::now());
            match self.calls.recv_timeout(wait) {
                // What was told before it was asked for is taken first, or with it.
                Ok(Call::Asked(asked)) => {
                    changed.asked.push(asked);
                    return changed;
                }
                Ok(Call::Told(told)) => {
                    self.forget_removed(&told);
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
                // We hold one end ourselves.
                Err(RecvTimeoutError::Disconnected) => return changed,
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

/// Whether a folder may be written to by another machine, or lies on a file system that tells
/// nothing of what is written behind it.
#[cfg(target_os = "linux")]
fn is_remote(folder: &Path) -> bool {
    // As in statfs(2): NFS, SMB in its three forms, FUSE, 9P, AFS, Coda, Ceph, Lustre, NCP and the
    // shared folders of VirtualBox.
    const REMOTE: [u32; 13] = [
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x6573_5546,
        0x0102_1997,
        0x5346_414F,
        0x6B41_4653,
        0x7375_7245,
        0x00C3_6400,
        0x0BD0_0BD0,
        0x564C,
        0x786F_4256,
    ];
    // The type is signed on some machines and unsigned on others; it has 32 bits everywhere.
    rustix::fs::statfs(folder).is_ok_and(|told| REMOTE.contains(&(told.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_remote(_: &Path) -> bool {
    false
}
