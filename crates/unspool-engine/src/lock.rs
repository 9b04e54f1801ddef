//! One process records at a time. The lock is the operating system's, on a file in the data folder:
//! it is gone with the process that held it, however that ended.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Where our own data lies.
#[derive(Clone, Debug)]
pub struct DataFolder(PathBuf);

impl DataFolder {
    pub fn new(path: PathBuf) -> DataFolder {
        DataFolder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn database(&self) -> PathBuf {
        self.0.join("unspool.db")
    }

    pub fn socket(&self) -> PathBuf {
        self.0.join("changes.sock")
    }

    fn lock(&self) -> PathBuf {
        self.0.join("recorder.lock")
    }

    /// Makes the folder, for its owner alone: what agents read and wrote is nobody else's.
    pub fn create(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.0)
    }

    /// Becomes the recorder, unless another process is.
    pub fn try_record(&self) -> io::Result<Option<RecorderLock>> {
        let file = self.open_lock()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(RecorderLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Waits until no other process records, and becomes the recorder.
    pub fn wait_to_record(&self) -> io::Result<RecorderLock> {
        let file = self.open_lock()?;
        file.lock()?;
        Ok(RecorderLock(file))
    }

    fn open_lock(&self) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(self.lock())
    }
}

/// Held while this process records.
#[derive(Debug)]
pub struct RecorderLock(#[allow(dead_code)] File);
