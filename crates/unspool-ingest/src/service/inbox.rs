//! What wakes the watch loop: file-system events and write requests. While a sync runs, its workers
//! take the files that agents write from here; everything else waits until the sync is over.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use rustc_hash::FxHashSet;
use unspool_sources::discover::Environment;

use crate::service::request_queue::{QueuedRequest, Wakeup};
use crate::sync::{FileCandidate, LiveFiles};

/// Agents write several lines in a burst: events this close together are handled as one.
const COALESCE_WINDOW: Duration = Duration::from_millis(2);
/// Upper bound on the delay by coalescing.
const MAX_COALESCE_DELAY: Duration = Duration::from_millis(20);
/// When a file is due again whose session was being written.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// Changes collected by one wait.
#[derive(Default)]
pub(super) struct Changed {
    pub files: FxHashSet<PathBuf>,
    /// A full scan is needed: a new folder, or lost events.
    pub anything: bool,
    /// Paths that were removed or renamed.
    pub removed: Vec<PathBuf>,
    pub queued: Vec<QueuedRequest>,
}

pub(super) struct Inbox {
    wakeups: Receiver<Wakeup>,
    /// Collected while a sync ran, and not handled by it.
    kept: Changed,
    /// Logs that were written to while a sync runs, and when they are due.
    live: VecDeque<(Instant, FileCandidate)>,
}

impl Inbox {
    pub fn new(wakeups: Receiver<Wakeup>) -> Inbox {
        Inbox { wakeups, kept: Changed::default(), live: VecDeque::new() }
    }

    /// Collects changes until then, or until a request arrives.
    pub fn wait(&mut self, mut until: Instant) -> Changed {
        let mut changed = std::mem::take(&mut self.kept);
        // What a database holds has no path that could be looked up.
        changed.anything |= !self.live.is_empty();
        self.live.clear();
        let mut begun = None;
        loop {
            if !changed.queued.is_empty() {
                return changed;
            }
            if !changed.is_nothing() {
                let begun = *begun.get_or_insert_with(Instant::now);
                until = (Instant::now() + COALESCE_WINDOW).min(begun + MAX_COALESCE_DELAY);
            }
            let wait = until.saturating_duration_since(Instant::now());
            match self.wakeups.recv_timeout(wait) {
                Ok(wakeup) => changed.take(wakeup),
                Err(RecvTimeoutError::Timeout) => return changed,
                // Cannot happen: the watch loop holds a sender.
                Err(RecvTimeoutError::Disconnected) => return changed,
            }
        }
    }

    /// The next log that was written to since the sync began.
    fn next_log(&mut self, environment: &Environment) -> Option<FileCandidate> {
        while let Ok(wakeup) = self.wakeups.try_recv() {
            self.kept.take(wakeup);
        }
        let now = Instant::now();
        for path in self.kept.files.drain() {
            let logs = environment.logs_at(&path).into_iter().map(FileCandidate::from);
            self.live.extend(logs.map(|log| (now, log)));
        }
        let at = self.live.iter().position(|(due, _)| *due <= now)?;
        self.live.remove(at).map(|(_, log)| log)
    }
}

impl Changed {
    fn is_nothing(&self) -> bool {
        self.files.is_empty() && !self.anything
    }

    fn take(&mut self, wakeup: Wakeup) {
        let event = match wakeup {
            Wakeup::QueuedRequest(queued) => return self.queued.push(queued),
            Wakeup::FileEvent(Ok(event)) => event,
            Wakeup::FileEvent(Err(_)) => {
                self.anything = true;
                return;
            }
        };
        self.anything |= event.need_rescan();
        let mut paths = event.paths;
        paths.retain(|path| !is_side_effect(&event.kind, path));
        if paths.is_empty() {
            return;
        }
        match event.kind {
            // Ignore our own opens and reads.
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
            EventKind::Access(_) => return,
            // Files created before the new folder was watched cause no event, nor do the files of
            // a renamed folder.
            EventKind::Create(CreateKind::Folder | CreateKind::Any | CreateKind::Other) => {
                self.anything |= paths.iter().any(|path| path.is_dir());
            }
            EventKind::Modify(ModifyKind::Name(_)) => {
                self.anything |= paths.iter().any(|path| path.is_dir());
                self.removed.extend(paths.iter().cloned());
            }
            EventKind::Remove(_) => self.removed.extend(paths.iter().cloned()),
            EventKind::Create(CreateKind::File)
            | EventKind::Modify(
                ModifyKind::Any | ModifyKind::Data(_) | ModifyKind::Metadata(_) | ModifyKind::Other,
            )
            | EventKind::Any
            | EventKind::Other => {}
        }
        self.files.extend(paths);
    }
}

/// True for what reading a database does to the files beside it: SQLite opens them for writing even
/// if the connection only reads, so that closing them would make the recorder read again and again.
fn is_side_effect(kind: &EventKind, path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let unwritten = matches!(
        kind,
        EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Metadata(_))
    );
    name.ends_with("-shm") || (name.ends_with("-wal") && unwritten)
}

/// The files that agents write during a sync.
pub(super) struct InboxFiles<'a> {
    pub inbox: &'a Mutex<Inbox>,
    pub environment: &'a Environment,
}

impl LiveFiles for InboxFiles<'_> {
    fn next(&self) -> Option<FileCandidate> {
        // If it is locked, another worker is looking already.
        self.inbox.try_lock().ok()?.next_log(self.environment)
    }

    fn retry(&self, file: FileCandidate) {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.live.push_back((Instant::now() + RETRY_AFTER, file));
    }

    fn postpone(&self) {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).kept.anything = true;
    }
}

#[cfg(test)]
mod tests {
    use notify::Event;
    use notify::event::{DataChange, MetadataKind};

    use super::*;

    fn taken(kind: EventKind, path: &str) -> usize {
        let mut changed = Changed::default();
        changed.take(Wakeup::FileEvent(Ok(Event::new(kind).add_path(path.into()))));
        changed.files.len()
    }

    #[test]
    fn reading_a_database_does_not_wake_the_recorder() {
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let touched = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        for kind in [closed, touched] {
            assert_eq!(taken(kind, "/a/opencode.db-wal"), 0, "{kind:?}");
            assert_eq!(taken(kind, "/a/opencode.db"), 1, "{kind:?}");
        }
        assert_eq!(taken(written, "/a/opencode.db-wal"), 1);
        assert_eq!(taken(written, "/a/opencode.db-shm"), 0);
    }
}
