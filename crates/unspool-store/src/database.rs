//! The `Store` in a database: one SQLite file, or a PostgreSQL server. Each connection has its own
//! thread; callers send it closures and await the result. One connection writes and another reads.
//! The file is in WAL mode, so readers never wait for the recorder.

// Public for the benchmark that compares the index with FTS5.
pub mod block_store;
mod check;
mod connection_thread;
mod derived_columns;
mod edited_files;
mod erase;
mod error;
mod error_paths;
mod facets;
mod failures;
mod file_identity;
mod forgotten_logs;
mod last_prompt;
mod load;
mod maintenance;
mod migrate;
mod notes;
mod on_server;
mod prompts;
mod read;
mod received;
mod recent_usage;
mod search;
mod stats;
mod subagents;
mod user_changes;
mod view;
mod windows;
mod write;

use std::path::Path;
use std::time::Duration;

use connection_thread::ConnectionThread;
use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;
use unspool_model::id::{SessionId, TurnId};
use unspool_model::note::{Note, NoteTarget};
use unspool_model::part::Part;

use crate::private_file;
use crate::rows::{Batch, FileRow, RowId};
use crate::sql::Connection;
use crate::store::{
    ArchivePlace, CheckReport, Maintenance, NextRows, SessionOutline, Store, StoreError,
    StoreErrorKind, StoredTurn, Viewer,
};

pub use file_identity::FileIdentity;
pub use view::DatabaseView;

/// How long to wait while another process writes or does maintenance.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// An open archive.
#[derive(Clone)]
pub struct Database {
    place: ArchivePlace,
    /// Of its file, if it is in one.
    identity: Option<FileIdentity>,
    /// None when the archive is only read.
    writer: Option<ConnectionThread>,
    reader: ConnectionThread,
}

impl Database {
    /// Opens the archive for writing and creates it if missing. The caller must hold the recorder
    /// lock.
    pub fn open(path: &Path) -> Result<Database, StoreError> {
        // SQLite gives its -wal and -shm files the mode of the archive.
        private_file::create(path);
        let connection =
            connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        let at = |error: rusqlite::Error| StoreError::from(error).at(path);
        // Check before any pragma, which would modify a file of another program.
        let version = migrate::check_version(&connection, path)?;
        // Earlier versions created archives that others may read.
        private_file::restrict(path);
        if version == 0 {
            connection.pragma_update(None, "page_size", 8192).map_err(at)?;
            // Frees the pages of merged segments without rewriting the file. Set only on creation:
            // on an existing file the pragma would write to it.
            connection.pragma_update(None, "auto_vacuum", "incremental").map_err(at)?;
        }
        connection.pragma_update(None, "journal_mode", "wal").map_err(at)?;
        // A power failure may lose the last commits but never tears one; a crash of this process
        // loses nothing. Lost commits are read from their sources again.
        connection.pragma_update(None, "synchronous", "normal").map_err(at)?;
        connection.pragma_update(None, "wal_autocheckpoint", 4096).map_err(at)?;
        connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024).map_err(at)?;
        connection.pragma_update(None, "secure_delete", erase::ZEROING).map_err(at)?;
        migrate::migrate(&connection, path)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(at)?;
        // Statements that may fail halfway copy each page before they change it. In a file, these
        // copies took a sixth of an import.
        connection.pragma_update(None, "temp_store", "memory").map_err(at)?;
        let writer = ConnectionThread::start(Connection::Sqlite(connection))?;
        let reader = ConnectionThread::start(Connection::Sqlite(read_connection(path)?))?;
        let identity = Some(FileIdentity::of_open(path)?);
        Ok(Database { place: ArchivePlace::of_file(path), identity, writer: Some(writer), reader })
    }

    /// Opens the archive for reading. Another process may be writing to it.
    pub fn open_to_read(path: &Path) -> Result<Database, StoreError> {
        let connection = read_connection(path)?;
        // Empty: the process that created it was killed, or the disk was full.
        if migrate::check_version(&connection, path)? == 0 {
            return Err(StoreError::new(StoreErrorKind::Missing).at(path));
        }
        // A fragment search reads all over the file: mapping saves a system call for each page.
        connection
            .pragma_update(None, "mmap_size", 4_i64 << 30)
            .map_err(|error| StoreError::from(error).at(path))?;
        let reader = ConnectionThread::start(Connection::Sqlite(connection))?;
        let identity = Some(FileIdentity::of_open(path)?);
        Ok(Database { place: ArchivePlace::of_file(path), identity, writer: None, reader })
    }

    /// A connection to a file that sees one state of it, for a copy. Only to an archive of the
    /// newest version.
    pub(crate) fn connect_to_copy(path: &Path) -> Result<rusqlite::Connection, StoreError> {
        let connection = read_connection(path)?;
        match migrate::check_version(&connection, path)? {
            Database::SCHEMA_VERSION => {}
            0 => return Err(StoreError::new(StoreErrorKind::Missing).at(path)),
            version => {
                let supported = Database::SCHEMA_VERSION;
                let kind = StoreErrorKind::Older { version, supported };
                return Err(StoreError::new(kind).at(path));
            }
        }
        let begun = connection.execute_batch("BEGIN; SELECT count(*) FROM setting");
        begun.map_err(|error| StoreError::from(error).at(path))?;
        Ok(connection)
    }

    /// The schema version that this program writes.
    pub const SCHEMA_VERSION: usize = migrate::SCHEMA_VERSION;

    /// The schema version of an archive.
    pub fn schema_version(path: &Path) -> Result<usize, StoreError> {
        migrate::check_version(&read_connection(path)?, path)
    }

    /// The file of the archive, unless it is on a server.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            ArchivePlace::File(path) => Some(path),
            ArchivePlace::Server(_) => None,
        }
    }

    pub fn place(&self) -> &ArchivePlace {
        &self.place
    }

    /// Runs work on the writing connection, after all work sent before.
    async fn run_on_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let writer = self
            .writer
            .as_ref()
            .ok_or_else(|| StoreError::new(StoreErrorKind::ReadOnly).at_place(&self.place))?;
        self.check_identity()?;
        writer.run(work).await?.map_err(|error| error.at_place(&self.place))
    }

    /// Runs work on the reading connection, in one transaction: it sees one snapshot.
    async fn run_on_reader<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.check_identity()?;
        let work = move |connection: &mut Connection| work(&*connection.transaction()?);
        self.reader.run(work).await?.map_err(|error| error.at_place(&self.place))
    }

    /// Reads on the writing connection if there is one, so the recorder sees its own writes.
    async fn read_own_writes<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.check_identity()?;
        let worker = self.writer.as_ref().unwrap_or(&self.reader);
        worker.run(work).await?.map_err(|error| error.at_place(&self.place))
    }
}

impl Store for Database {
    type View = DatabaseView;

    fn view(&self, viewer: Viewer) -> DatabaseView {
        DatabaseView::new(self, viewer)
    }

    fn check_identity(&self) -> Result<(), StoreError> {
        self.identity.as_ref().map_or(Ok(()), FileIdentity::check)
    }

    async fn write(&self, batch: Batch) -> Result<(), StoreError> {
        self.run_on_writer(move |connection| Ok(write::write(connection, batch)?)).await
    }

    async fn next_rows(&self) -> Result<NextRows, StoreError> {
        self.read_own_writes(|connection| read::next_rows(connection)).await
    }

    async fn saved(&self, file: RowId) -> Result<Option<String>, StoreError> {
        self.read_own_writes(move |connection| read::saved(connection, file)).await
    }

    async fn files(&self) -> Result<Vec<FileRow>, StoreError> {
        self.read_own_writes(|connection| read::files(connection)).await
    }

    async fn file_row(&self, path: String) -> Result<Option<RowId>, StoreError> {
        self.read_own_writes(move |connection| read::file_row(connection, &path)).await
    }

    async fn outline(&self, id: SessionId) -> Result<Option<SessionOutline>, StoreError> {
        self.read_own_writes(move |connection| read::outline(connection, id)).await
    }

    async fn turn(&self, session: RowId, id: TurnId) -> Result<Option<StoredTurn>, StoreError> {
        self.read_own_writes(move |connection| read::turn(connection, session, id)).await
    }

    async fn part(&self, row: RowId) -> Result<Option<Part>, StoreError> {
        self.read_own_writes(move |connection| {
            Ok(load::Loader::new(connection).part(row)?.map(|loaded| loaded.part))
        })
        .await
    }

    async fn is_deleted(&self, id: SessionId) -> Result<bool, StoreError> {
        self.read_own_writes(move |connection| read::is_deleted(connection, id)).await
    }

    async fn maintain(&self, how: Maintenance) -> Result<(), StoreError> {
        self.run_on_writer(move |connection| {
            maintenance::maintain(connection, how)?;
            if how == Maintenance::Full
                && let Some(connection) = connection.as_sqlite()
            {
                // The copy of the whole archive goes to a file.
                connection.execute_batch(
                    "PRAGMA temp_store = file; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);
                     PRAGMA temp_store = memory",
                )?;
            }
            Ok(())
        })
        .await
    }

    async fn maintain_a_little(&self) -> Result<bool, StoreError> {
        self.run_on_writer(maintenance::maintain_a_little).await
    }

    async fn rebuild(&self) -> Result<u64, StoreError> {
        self.run_on_writer(|connection| {
            derived_columns::derive(connection)?;
            let parts = maintenance::reindex(connection)?;
            write::sum_up_all(connection)?;
            Ok(parts)
        })
        .await
    }

    async fn check(&self) -> Result<CheckReport, StoreError> {
        self.run_on_reader(check::check).await
    }

    async fn rename(&self, session: RowId, name: Option<String>) -> Result<(), StoreError> {
        self.run_on_writer(move |connection| {
            user_changes::rename(connection, session, name.as_deref())
        })
        .await
    }

    async fn tag(
        &self,
        session: RowId,
        add: Vec<String>,
        remove: Vec<String>,
    ) -> Result<(), StoreError> {
        self.run_on_writer(move |connection| user_changes::tag(connection, session, &add, &remove))
            .await
    }

    async fn set_note(&self, session: SessionId, note: Note) -> Result<(), StoreError> {
        self.run_on_writer(move |connection| notes::set(connection, session, &note)).await
    }

    async fn remove_note(&self, session: SessionId, target: NoteTarget) -> Result<(), StoreError> {
        self.run_on_writer(move |connection| notes::remove(connection, session, target)).await
    }

    async fn delete(&self, session: RowId) -> Result<u64, StoreError> {
        let now = jiff::Timestamp::now().as_millisecond();
        self.run_on_writer(move |connection| user_changes::delete(connection, session, now)).await
    }

    async fn undelete(&self, id: SessionId) -> Result<bool, StoreError> {
        self.run_on_writer(move |connection| user_changes::undelete(connection, id)).await
    }

    async fn forget_logs(&self, before: i64) -> Result<u64, StoreError> {
        self.run_on_writer(move |connection| forgotten_logs::forget(connection, before)).await
    }

    async fn setting(&self, name: String) -> Result<Option<String>, StoreError> {
        self.read_own_writes(move |connection| user_changes::setting(connection, &name)).await
    }

    async fn set(&self, name: String, value: Option<String>) -> Result<(), StoreError> {
        self.run_on_writer(move |connection| user_changes::set(connection, &name, value.as_deref()))
            .await
    }

    async fn forget(&self, session: RowId) -> Result<(), StoreError> {
        self.run_on_writer(move |connection| user_changes::forget(connection, session)).await
    }

    async fn withdraw(&self, file: RowId) -> Result<Vec<String>, StoreError> {
        self.run_on_writer(move |connection| received::withdraw(connection, file)).await
    }
}

fn read_connection(path: &Path) -> Result<rusqlite::Connection, StoreError> {
    if !path.exists() {
        return Err(StoreError::new(StoreErrorKind::Missing).at(path));
    }
    if path.is_dir() {
        return Err(StoreError::new(StoreErrorKind::NotOpened).at(path));
    }
    // Open read-write, because reading a WAL needs its -shm file. `query_only` forbids writes.
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .or_else(|_| connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY))
        .or_else(|error| connect_immutable(path, error))?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|error| StoreError::from(error).at(path))?;
    Ok(connection)
}

/// Opens an archive on a read-only disk, where no -shm file can be created. Without a -wal file
/// none is needed: all data is in the database file, and nobody writes to it.
fn connect_immutable(path: &Path, error: StoreError) -> Result<rusqlite::Connection, StoreError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let closed = matches!(error.kind(), StoreErrorKind::NotOpened | StoreErrorKind::NotWritable);
    if !closed || !path.is_file() || Path::new(&log).exists() {
        return Err(error);
    }
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect_to(Path::new(&address), path, flags)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<rusqlite::Connection, StoreError> {
    connect_to(path, path, flags)
}

fn connect_to(
    address: &Path,
    path: &Path,
    flags: OpenFlags,
) -> Result<rusqlite::Connection, StoreError> {
    let at = |error: rusqlite::Error| StoreError::from(error).at(path);
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(address, flags).map_err(at)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(at)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Query planner stability. Without it SQLite plans a statement again whenever other values are
    // bound, because of the partial indexes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(at)?;
    connection.pragma_update(None, "cache_size", -8192).map_err(at)?;
    Ok(connection)
}

#[cfg(test)]
mod sql_names_tests;
