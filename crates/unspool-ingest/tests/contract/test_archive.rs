//! The location of an archive under test: creates a fresh one and opens it again, as another
//! process would.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use unspool_store::database::Database;
use unspool_store::postgres::Address;
use unspool_store::store::Store;

use crate::postgres_server::TestDatabase;

/// The location of one archive. Dropping it deletes the archive.
pub trait TestArchive: Sized {
    type Store: Store;

    /// A new location without an archive.
    fn new() -> Self;

    /// Opens the archive for writing, creating it the first time.
    fn open(&self) -> Self::Store;

    /// Opens the archive for reading, beside the recorder.
    fn open_to_read(&self) -> Self::Store;

    /// Where the archive is, as an error names it.
    fn place(&self) -> String;

    /// Orphaned rows, which no session references. Files and remembered deletions belong to no
    /// session and do not count.
    fn leftovers(&self) -> Vec<String>;
}

/// A real file in a temporary folder.
pub struct SqliteTestArchive {
    folder: TempDir,
}

impl TestArchive for SqliteTestArchive {
    type Store = Database;

    fn new() -> SqliteTestArchive {
        SqliteTestArchive { folder: tempfile::tempdir().unwrap() }
    }

    fn open(&self) -> Database {
        Database::open(&self.path()).unwrap()
    }

    fn open_to_read(&self) -> Database {
        Database::open_to_read(&self.path()).unwrap()
    }

    fn place(&self) -> String {
        self.path().display().to_string()
    }

    fn leftovers(&self) -> Vec<String> {
        let connection = self.raw();
        leftovers(|sql| connection.query_row(sql, [], |row| row.get(0)).unwrap())
    }
}

fn leftovers(count: impl Fn(&str) -> i64) -> Vec<String> {
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
        let found = count(&format!("SELECT count(*) FROM {table} WHERE {condition}"));
        (found > 0).then(|| format!("{found} of {table} where {condition}"))
    });
    left.collect()
}

/// A database of its own on a PostgreSQL server.
pub struct PostgresTestArchive {
    database: TestDatabase,
}

impl PostgresTestArchive {
    pub fn address(&self) -> Address {
        self.url().parse().unwrap()
    }

    pub fn url(&self) -> String {
        self.database.address()
    }

    /// Runs statements as another program would.
    pub fn execute(&self, sql: &str) {
        self.database.execute(sql);
    }
}

impl TestArchive for PostgresTestArchive {
    type Store = Database;

    fn new() -> PostgresTestArchive {
        PostgresTestArchive { database: TestDatabase::new() }
    }

    fn open(&self) -> Database {
        Database::open_on_server(&self.address()).unwrap()
    }

    fn open_to_read(&self) -> Database {
        Database::open_on_server_to_read(&self.address()).unwrap()
    }

    fn place(&self) -> String {
        self.address().to_string()
    }

    fn leftovers(&self) -> Vec<String> {
        leftovers(|sql| self.database.count(sql))
    }
}

impl SqliteTestArchive {
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("archive.db")
    }

    /// A raw connection, for user queries and for damaging the file.
    pub fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}
