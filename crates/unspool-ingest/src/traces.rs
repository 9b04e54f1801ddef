//! The folders in which agents write down what model calls were sent, if `unspool run` started them:
//! one for each run, so that it is known what is old. They are read like any log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use unspool_store::private_file;

use crate::lock::DataFolder;

/// Folders of runs are deleted after this time; they have been read long before.
const RETENTION: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// How deep the files of a run are.
const MAX_DEPTH: u32 = 8;

impl DataFolder {
    /// The folder of what agents write down.
    pub fn traces(&self) -> PathBuf {
        self.path().join("traces")
    }

    /// Creates a folder for a run of an agent. Nobody else can read it.
    pub fn create_trace(&self, agent: &str, now: jiff::Timestamp) -> io::Result<PathBuf> {
        self.create()?;
        let builder = private_file::folders();
        let traces = std::path::absolute(self.traces())?;
        match builder.create(&traces) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let started = now.strftime("%Y%m%dT%H%M%SZ");
        let process = std::process::id();
        let mut nth = 0_u32;
        loop {
            let path = traces.join(format!("{agent}-{started}-{process}-{nth}"));
            match builder.create(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => nth += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Removes the folders of old runs. The recorder calls it after it has read everything.
pub fn sweep(folder: &DataFolder) {
    let Ok(runs) = folder.traces().read_dir() else { return };
    for run in runs.flatten() {
        let is_folder = run.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && is_old(&run.path(), MAX_DEPTH) {
            // A failure is retried by the next sweep.
            let _ = fs::remove_dir_all(run.path());
        }
    }
}

/// True if nothing in the folder has changed for long. An agent may run for weeks.
fn is_old(path: &Path, depth: u32) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return false };
    let age = metadata.modified().map(|at| SystemTime::now().duration_since(at));
    if !matches!(age, Ok(Ok(age)) if age > RETENTION) {
        return false;
    }
    if !metadata.is_dir() {
        return true;
    }
    let Ok(entries) = path.read_dir() else { return false };
    let mut entries = entries.map(|entry| entry.map(|entry| entry.path()));
    depth > 0 && entries.all(|entry| entry.is_ok_and(|entry| is_old(&entry, depth - 1)))
}

#[cfg(test)]
#[path = "traces_tests.rs"]
mod tests;
