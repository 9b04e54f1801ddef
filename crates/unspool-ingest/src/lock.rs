//! The data folder and the recorder lock: one process records at a time. The operating system holds
//! the lock on a file in the data folder and releases it when the process ends, even after a crash.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use unspool_model::id::Id;
use unspool_store::private_file;

/// The folder of Unspool's own data.
#[derive(Clone, Debug)]
pub struct DataFolder(PathBuf);

impl DataFolder {
    pub fn new(path: PathBuf) -> DataFolder {
        DataFolder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder for what belongs to the archive on this server.
    pub fn of_server(&self, address: &str) -> DataFolder {
        let name = Id::derive([b"server".as_slice(), address.as_bytes()]);
        DataFolder(self.0.join("servers").join(name.to_string()))
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

    /// Creates the folder with mode 0700: sessions contain what agents read and wrote.
    pub fn create(&self) -> io::Result<()> {
        private_file::folders().recursive(true).create(&self.0)
    }

    /// Takes the recorder lock. None if another process holds it.
    pub fn try_record(&self) -> io::Result<Option<RecorderLock>> {
        let file = self.open_lock()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(RecorderLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the recorder lock, waiting until it is free.
    pub fn wait_to_record(&self) -> io::Result<RecorderLock> {
        let file = self.open_lock()?;
        file.lock()?;
        Ok(RecorderLock(file))
    }

    fn open_lock(&self) -> io::Result<File> {
        let mut options = private_file::options();
        options.read(true).write(true).create(true).truncate(false).open(self.lock())
    }
}

/// The recorder lock; released on drop.
#[derive(Debug)]
pub struct RecorderLock(#[allow(dead_code)] File);
