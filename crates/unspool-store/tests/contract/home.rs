//! Where an archive lives while it is tested: a way to make a fresh one and to open it again, as
//! another process would.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use unspool_store::contract::Store;
use unspool_store::sqlite::Sqlite;

/// One archive, wherever it is. It is gone when this is dropped.
pub trait Home: Sized {
    type Store: Store;

    /// A place in which there is no archive yet.
    fn new() -> Self;

    /// Opens it as the process that records does; makes it the first time.
    fn open(&self) -> Self::Store;

    /// Opens it beside a process that records.
    fn open_to_read(&self) -> Self::Store;
}

/// A real file in a temporary folder.
pub struct SqliteHome {
    folder: TempDir,
}

impl Home for SqliteHome {
    type Store = Sqlite;

    fn new() -> SqliteHome {
        SqliteHome { folder: tempfile::tempdir().unwrap() }
    }

    fn open(&self) -> Sqlite {
        Sqlite::open(&self.path()).unwrap()
    }

    fn open_to_read(&self) -> Sqlite {
        Sqlite::open_to_read(&self.path()).unwrap()
    }
}

impl SqliteHome {
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("archive.db")
    }

    /// A connection of nobody's: it asks what people ask, and does what no program of ours does.
    pub fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}
