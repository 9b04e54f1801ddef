//! What the own index and the tables of FTS5 have in common for the benchmark.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use unspool_store::database::Database;
use unspool_store::sql::Connection;

use crate::Failure;
use crate::corpus::Query;

/// Bytes of text of a batch, as in an import.
const BATCH: usize = 16 << 20;

/// How many of the matching documents a lookup returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// As many as a page of hits.
    First,
    All,
}

/// The result of a lookup.
pub struct Found {
    pub rows: Vec<i64>,
    /// Best first. If false, newest first.
    pub ranked: bool,
    /// Whether the lookup compared candidates with their texts.
    pub verified: bool,
}

pub trait Variant {
    fn name(&self) -> &'static str;

    /// Indexes the documents, each under its position.
    fn build(&self, connection: &mut Connection, documents: &[String]) -> Result<(), Failure>;

    /// Finds documents and reads their texts, as far as needed for a page of hits. None if the
    /// variant cannot answer such a query.
    fn look_up(
        &self,
        connection: &Connection,
        query: &Query,
        answer: Answer,
    ) -> Result<Option<Found>, Failure>;
}

/// The positions of the documents of each batch.
pub fn batches(documents: &[String]) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (position, document) in documents.iter().enumerate() {
        bytes += document.len();
        if bytes >= BATCH || position + 1 == documents.len() {
            batches.push(start..position + 1);
            (start, bytes) = (position + 1, 0);
        }
    }
    batches
}

/// The connection as one of SQLite.
pub fn file_of(connection: &Connection) -> Result<&rusqlite::Connection, Failure> {
    connection.as_sqlite().ok_or_else(|| "the comparison is one of files".into())
}

pub fn text_of(
    connection: &Connection,
    table: &str,
    row: i64,
) -> unspool_store::sql::Result<String> {
    connection
        .prepare_cached(&format!("SELECT text FROM {table} WHERE rowid = ?1"))?
        .query_row([row], |row| row.get(0))
}

/// A variant, built in a file of its own.
pub struct Built {
    pub connection: Connection,
    pub time: Duration,
    /// Bytes that the index takes in the file.
    pub size: u64,
    path: PathBuf,
}

impl Built {
    /// Builds the variant in a new archive, so that both sides have the same page size, journal
    /// and cache.
    pub fn new(
        variant: &dyn Variant,
        folder: &Path,
        documents: &[String],
    ) -> Result<Built, Failure> {
        let path = folder.join("index.db");
        drop(Database::open(&path)?);
        let connection = rusqlite::Connection::open(&path)?;
        connection.execute_batch(
            "PRAGMA synchronous = normal; PRAGMA wal_autocheckpoint = 4096;
             PRAGMA cache_size = -8192; PRAGMA foreign_keys = true;",
        )?;
        let before = size(&connection)?;
        let mut connection = Connection::Sqlite(connection);
        let clock = Clock::start();
        variant.build(&mut connection, documents)?;
        // The pages go from the journal into the file sooner or later.
        let file = file_of(&connection)?;
        file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        let time = clock.elapsed();
        let size = size(file)? - before;
        let texts = folder.join("texts.db");
        file.execute("ATTACH ?1 AS texts", [texts.to_string_lossy()])?;
        file.query_row("PRAGMA mmap_size = 4294967296", [], |_| Ok(()))?;
        Ok(Built { connection, time, size, path })
    }

    /// Deletes the file.
    pub fn remove(self) -> Result<(), Failure> {
        drop(self.connection);
        Ok(std::fs::remove_file(self.path)?)
    }
}

/// Measures the CPU time of this thread, which other programs disturb less than the time that
/// passes. Only Linux tells it.
struct Clock {
    start: Instant,
    cpu: Option<Duration>,
}

impl Clock {
    fn start() -> Clock {
        Clock { start: Instant::now(), cpu: cpu_time() }
    }

    fn elapsed(&self) -> Duration {
        match (self.cpu, cpu_time()) {
            (Some(start), Some(now)) => now.saturating_sub(start),
            (_, _) => self.start.elapsed(),
        }
    }
}

fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// Bytes in use. Free pages are reused or given back.
fn size(connection: &rusqlite::Connection) -> rusqlite::Result<u64> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(((number("page_count")? - number("freelist_count")?) * number("page_size")?) as u64)
}
