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

    /// What lies in it and belongs to nothing: rows that no session leads to. Files that were read
    /// and deletions that are remembered belong to nobody and are none.
    fn leftovers(&self) -> Vec<String>;
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

    fn leftovers(&self) -> Vec<String> {
        let connection = self.raw();
        let orphans = [
            ("turn", "session NOT IN (SELECT row FROM session)"),
            ("step", "turn NOT IN (SELECT row FROM turn)"),
            ("part", "turn NOT IN (SELECT row FROM turn)"),
            ("journal", "part NOT IN (SELECT row FROM part)"),
            ("unindexed", "part NOT IN (SELECT row FROM part)"),
            ("agent", "part NOT IN (SELECT row FROM part)"),
            ("agent", "parent NOT IN (SELECT row FROM session)"),
            ("tag", "session NOT IN (SELECT row FROM session)"),
            ("source", "session NOT IN (SELECT row FROM session)"),
            ("cursor", "session NOT IN (SELECT row FROM session)"),
            ("warning", "session IS NOT NULL AND session NOT IN (SELECT row FROM session)"),
            ("session_snapshot", "session NOT IN (SELECT row FROM session)"),
            ("snapshot", "sha256 NOT IN (SELECT sha256 FROM session_snapshot)"),
            ("chunk", "session IS NOT NULL AND session NOT IN (SELECT row FROM session)"),
            ("chunk", "session IS NULL AND row NOT IN (SELECT chunk FROM content)"),
            ("content", "row NOT IN (SELECT content FROM part WHERE content IS NOT NULL)"),
            ("word_block", "segment NOT IN (SELECT row FROM segment)"),
            ("word_runs", "segment NOT IN (SELECT row FROM segment)"),
        ];
        let left = orphans.iter().filter_map(|(table, condition)| {
            let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
            let count: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
            (count > 0).then(|| format!("{count} of {table} where {condition}"))
        });
        left.collect()
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
