//! Where sessions come from: files and their saved decoder states, the sources and cursors of a
//! session, and the warnings about its records.

use crate::sql;
use std::collections::BTreeMap;

use crate::sql::{Connection, OptionalExtension, Row as SqlRow};
use unspool_model::assemble::Cursor;
use unspool_model::provenance::Feed;
use unspool_model::source::{FileStamp, Fingerprint, RecordCounts};

use crate::pack::PackError;
use crate::rows::{FileRow, RowId, SourceRow};
use crate::store::{StoreError, StoredWarning};

fn feed(name: &str) -> Feed {
    match name {
        "hooks" => Feed::Hooks,
        "stream" => Feed::Stream,
        _ => Feed::Log,
    }
}

pub(super) fn cursors(connection: &Connection, session: RowId) -> Result<Vec<Cursor>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT telling, source, offset, nth FROM cursor WHERE session = ?1
             ORDER BY telling, source",
    )?;
    let rows = statement.query_map([session], |row| {
        Ok(Cursor {
            feed: feed(row.get_ref(0)?.as_str()?),
            source: row.get(1)?,
            offset: row.get::<_, i64>(2)? as u64,
            nth: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn sources(
    connection: &Connection,
    session: RowId,
) -> Result<Vec<SourceRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT file, number, telling, first, read, in_parts, metadata, unreadable, left_out,
             (SELECT sub_agent FROM session WHERE row = source.session)
         FROM source WHERE session = ?1 ORDER BY number, file",
    )?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let count = |at: usize| row.get::<_, i64>(at).map(|count| count as u64);
        found.push(SourceRow {
            file: row.get(0)?,
            number: row.get(1)?,
            feed: feed(row.get_ref(2)?.as_str()?),
            first: count(3)?,
            sub_agent: row.get(9)?,
            records: RecordCounts {
                read: count(4)?,
                in_parts: count(5)?,
                metadata: count(6)?,
                unreadable: count(7)?,
                left_out: serde_json::from_str(row.get_ref(8)?.as_str()?)
                    .map_err(PackError::from)?,
            },
        });
    }
    Ok(found)
}

pub fn records(connection: &Connection, session: RowId) -> Result<RecordCounts, StoreError> {
    // Sources with the same number are copies of one log (renamed, compressed, restored). Count
    // the longest.
    let mut longest: BTreeMap<u16, RecordCounts> = BTreeMap::new();
    for source in sources(connection, session)? {
        let held = longest.entry(source.number).or_default();
        if source.records.read > held.read {
            *held = source.records;
        }
    }
    let mut records = RecordCounts::default();
    longest.values().for_each(|counted| records.merge(counted));
    Ok(records)
}

pub fn warnings(connection: &Connection, session: RowId) -> Result<Vec<StoredWarning>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT file.path, warning.line, warning.what FROM warning
         JOIN file ON file.row = warning.file
         WHERE warning.session = ?1 ORDER BY file.path, warning.line, warning.row",
    )?;
    let rows = statement.query_map([session], |row| {
        Ok(StoredWarning {
            file: row.get(0)?,
            line: row.get::<_, i64>(1)? as u64,
            what: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const FILE: &str = "SELECT row, path, size, modified, changed, inode, device, offset, line, head,
    tail, refused FROM file";

/// A file, without its saved state: `saved` loads that when the file is resumed.
fn file(row: &SqlRow<'_>) -> sql::Result<FileRow> {
    let number = |at: usize| row.get::<_, i64>(at);
    Ok(FileRow {
        row: number(0)?,
        path: row.get(1)?,
        stamp: FileStamp {
            size: number(2)? as u64,
            modified: number(3)?,
            changed: number(4)?,
            inode: number(5)? as u64,
            device: number(6)? as u64,
        },
        print: Fingerprint {
            offset: number(7)? as u64,
            head: number(9)? as u64,
            tail: number(10)? as u64,
        },
        line: number(8)? as u64,
        saved: None,
        refused: row.get(11)?,
    })
}

pub fn files(connection: &Connection) -> Result<Vec<FileRow>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("{FILE} ORDER BY row"))?;
    let rows = statement.query_map([], file)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub fn file_row(connection: &Connection, path: &str) -> Result<Option<RowId>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT row FROM file WHERE path = ?1")?;
    Ok(statement.query_row([path], |row| row.get(0)).optional()?)
}

/// The files of one session, with their saved states.
pub fn source_files(connection: &Connection, session: RowId) -> Result<Vec<FileRow>, StoreError> {
    let sql =
        format!("{FILE} WHERE row IN (SELECT file FROM source WHERE session = ?1) ORDER BY row");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([session], file)?;
    let mut files = rows.collect::<Result<Vec<FileRow>, _>>()?;
    for file in &mut files {
        file.saved = saved(connection, file.row)?;
    }
    Ok(files)
}

/// The saved decoder state of a file.
pub fn saved(connection: &Connection, file: RowId) -> Result<Option<String>, StoreError> {
    let found: Option<Option<Vec<u8>>> = connection
        .prepare_cached("SELECT saved FROM file WHERE row = ?1")?
        .query_row([file], |row| row.get(0))
        .optional()?;
    // If it cannot be read, the file is read from its start.
    let saved = found.flatten().and_then(|saved| crate::pack::decompress(&saved).ok());
    Ok(saved.and_then(|saved| String::from_utf8(saved).ok()))
}
