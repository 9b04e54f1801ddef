//! Notices that a log folder is made: the first session of an agent on this machine makes it. The
//! nearest folder above it is watched, without what is below.
//!
//! A watcher of its own, because it drops most events. Such a folder may be the user's home, where
//! anything happens, or one that holds our own archive, whose writes would wake the recorder.

use std::path::{Path, PathBuf};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use rustc_hash::FxHashSet;
use unspool_sources::discover::Environment;

pub(super) struct MissingFolders {
    watcher: RecommendedWatcher,
    watched: FxHashSet<PathBuf>,
    /// Our own folders. They are made by us, and the folder above them is our archive's.
    own: Vec<PathBuf>,
}

/// Whether a folder exists after all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    Folder,
    Nothing,
}

impl MissingFolders {
    /// Reports events of log folders and of the folders above them.
    pub fn new(
        environment: &Environment,
        report: impl Fn(Event) + Send + 'static,
    ) -> Option<MissingFolders> {
        let folders: Vec<PathBuf> =
            environment.watched_folders().map(|(folder, _)| folder).collect();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let leads_to_log = |path: &PathBuf| folders.iter().any(|log| log.starts_with(path));
            // A lost event is found by the next scan.
            if let Ok(event) = event
                && event.paths.iter().any(leads_to_log)
            {
                report(event);
            }
        });
        let own = environment.spools.clone();
        Some(MissingFolders { watcher: watcher.ok()?, watched: FxHashSet::default(), own })
    }

    /// Watches the nearest folder above this one. It may be made meanwhile.
    pub fn watch_above(&mut self, folder: &Path) -> Found {
        if self.own.iter().any(|own| own == folder) {
            return Found::Nothing;
        }
        loop {
            let Some(nearest) = folder.ancestors().find(|above| above.is_dir()) else {
                return Found::Nothing;
            };
            if nearest == folder {
                return Found::Folder;
            }
            // Looked up again after a new watch: what was made before it caused no event.
            if self.watched.contains(nearest)
                || self.watcher.watch(nearest, RecursiveMode::NonRecursive).is_err()
            {
                return Found::Nothing;
            }
            self.watched.insert(nearest.to_owned());
        }
    }

    /// A folder that is made again at the same path needs a new watch.
    pub fn forget(&mut self, path: &Path) {
        if self.watched.remove(path) {
            // The watcher may have dropped it already.
            let _ = self.watcher.unwatch(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_folder_is_noticed_when_it_is_made() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let data = home.join("data");
        fs::create_dir(&data).unwrap();
        let environment = Environment {
            home: Some(home.clone()),
            spools: vec![data.join("spool")],
            ..Environment::default()
        };
        let (sender, events) = channel();
        let report = move |event| sender.send(event).unwrap();
        let mut missing = MissingFolders::new(&environment, report).unwrap();
        let logs = home.join(".claude/projects");
        assert_eq!(missing.watch_above(&logs), Found::Nothing);
        assert_eq!(missing.watch_above(&data.join("spool")), Found::Nothing);
        // What is not on the way to a log wakes nobody: our own archive, other files of the home.
        fs::write(data.join("archive.db"), "x").unwrap();
        fs::write(home.join("notes.txt"), "x").unwrap();
        assert!(events.recv_timeout(Duration::from_millis(300)).is_err());
        // One folder after the other, as agents make them.
        for folder in [".claude", ".claude/projects"] {
            fs::create_dir(home.join(folder)).unwrap();
            let event = events.recv_timeout(Duration::from_secs(10)).unwrap();
            assert_eq!(event.paths, [home.join(folder)]);
            let found = missing.watch_above(&logs);
            assert_eq!(found == Found::Folder, folder != ".claude");
        }
        // Removed, and made again.
        fs::remove_dir_all(home.join(".claude")).unwrap();
        while let Ok(event) = events.recv_timeout(Duration::from_millis(500)) {
            event.paths.iter().for_each(|path| missing.forget(path));
        }
        assert_eq!(missing.watch_above(&logs), Found::Nothing);
        fs::create_dir_all(&logs).unwrap();
        assert!(events.recv_timeout(Duration::from_secs(10)).is_ok());
        assert_eq!(missing.watch_above(&logs), Found::Folder);
    }
}
