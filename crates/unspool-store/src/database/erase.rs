//! Removes the bytes of deleted sessions from the file. SQLite only marks the space of a deleted row
//! as free, so that its content would stay readable until something else is written there.
//!
//! - A deletion writes zeros over its rows and returns free pages to the file system. Those hold
//!   earlier copies: of parts that grew, for example.
//! - A payload in a compressed chunk that other sessions use is replaced by zeros.
//! - The words in the index stay until segments are merged; `db vacuum` always does that.

use crate::sql;
use crate::sql::{Connection, Transaction, params};

use crate::pack::{self, Compressor};
use crate::rows::RowId;
use crate::store::StoreError;

/// Set while the index may have words of deleted sessions only.
const DELETED_WORDS: &str = "index_has_deleted_words";

/// What `secure_delete` is outside of deletions: zeros are written where a page is written anyway.
pub const ZEROING: &str = "fast";

/// Runs a deletion that writes zeros over all that it frees, then shrinks the file.
pub fn erasing<T>(
    connection: &mut Connection,
    delete: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    secure_delete(connection, "true")?;
    let outcome = run(connection, delete);
    secure_delete(connection, ZEROING)?;
    let outcome = outcome?;
    release_free_pages(connection)?;
    if let Some(connection) = connection.as_sqlite() {
        // The log still has the pages as they were. If somebody reads right now it cannot be
        // emptied, and the next checkpoint does it.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    Ok(outcome)
}

/// A server frees and overwrites its pages by itself, later.
fn secure_delete(connection: &Connection, how: &str) -> Result<(), StoreError> {
    match connection.as_sqlite() {
        Some(connection) => Ok(connection.pragma_update(None, "secure_delete", how)?),
        None => Ok(()),
    }
}

fn run<T>(
    connection: &mut Connection,
    delete: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = connection.transaction()?;
    let outcome = delete(&transaction)?;
    transaction.execute(
        "INSERT INTO setting (name, value) VALUES (?1, 'yes')
         ON CONFLICT (name) DO UPDATE SET value = 'yes'",
        [DELETED_WORDS],
    )?;
    transaction.commit()?;
    Ok(outcome)
}

/// Returns all free pages to the file system.
pub fn release_free_pages(connection: &Connection) -> Result<(), StoreError> {
    let Some(connection) = connection.as_sqlite() else { return Ok(()) };
    // The pragma frees one page for each row that is stepped.
    let mut statement = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut pages = statement.query([])?;
    while pages.next()?.is_some() {}
    Ok(())
}

/// Forgets what is stored about the files of a session only: the state of their decoder, lines that
/// could not be read, and text that another machine sent. The caller deletes the session afterwards.
pub fn forget_files(transaction: &Transaction<'_>, session: RowId) -> Result<(), StoreError> {
    const OWN_FILES: &str = "SELECT file FROM source WHERE session = ?1 AND NOT EXISTS
        (SELECT 1 FROM source AS other WHERE other.file = source.file AND other.session <> ?1)";
    for sql in [
        "UPDATE file SET saved = NULL WHERE row",
        "DELETE FROM warning WHERE file",
        "DELETE FROM received_text WHERE file",
    ] {
        transaction.execute(&format!("{sql} IN ({OWN_FILES})"), [session])?;
    }
    Ok(())
}

/// Writes zeros over the parts of a chunk that no payload uses. Offsets stay.
pub fn blank_gaps(transaction: &Transaction<'_>, chunk: RowId) -> Result<(), StoreError> {
    let mut statement = transaction.prepare_cached("SELECT data FROM chunk WHERE row = ?1")?;
    let mut rows = statement.query([chunk])?;
    // Dropped as a whole.
    let Some(row) = rows.next()? else { return Ok(()) };
    let old = pack::decompress(row.get_ref(0)?.as_blob().map_err(sql::Error::from)?)?;
    let mut new = vec![0; old.len()];
    let mut payloads = transaction.prepare_cached(
        "SELECT at, size FROM content WHERE chunk = ?1
         UNION ALL SELECT at, size FROM part WHERE chunk = ?1",
    )?;
    let ranges = payloads.query_map([chunk], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for range in ranges {
        let (at, size): (i64, i64) = range?;
        let (start, size) = (usize::try_from(at).unwrap_or(0), usize::try_from(size).unwrap_or(0));
        let range = start..start.saturating_add(size);
        if let (Some(to), Some(from)) = (new.get_mut(range.clone()), old.get(range)) {
            to.copy_from_slice(from);
        }
    }
    if new != old {
        let data = Compressor::new()?.compress(&new)?;
        transaction.execute("UPDATE chunk SET data = ?2 WHERE row = ?1", params![chunk, data])?;
    }
    Ok(())
}

/// True if a deletion left words in the index.
pub fn has_deleted_words(connection: &Connection) -> Result<bool, StoreError> {
    Ok(connection.prepare("SELECT 1 FROM setting WHERE name = ?1")?.exists([DELETED_WORDS])?)
}

/// Notes that all segments were merged.
pub fn clear_deleted_words(connection: &Connection) -> Result<(), StoreError> {
    connection.execute("DELETE FROM setting WHERE name = ?1", [DELETED_WORDS])?;
    Ok(())
}
