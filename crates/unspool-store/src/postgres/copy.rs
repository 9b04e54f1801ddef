//! Copies an archive from a file into an empty database, row by row: the same sessions with the same
//! row numbers, chunks and index segments. One transaction: it is there whole or not at all.

use std::path::Path;

use rusqlite::types::Value;

use super::Address;
use super::connection::PostgresConnection;
use crate::database::Database;
use crate::sql::{Connection, Transaction, params_from_iter};
use crate::store::{ArchivePlace, StoreError, StoreErrorKind};

/// All tables.
const TABLES: [&str; 26] = [
    "setting",
    "file",
    "session",
    "tag",
    "turn",
    "step",
    "chunk",
    "content",
    "part",
    "journal",
    "agent",
    "snapshot",
    "session_snapshot",
    "source",
    "cursor",
    "warning",
    "deleted",
    "remembered",
    "segment",
    "word_block",
    "word_runs",
    "unindexed",
    "edited_file",
    "note",
    "received",
    "received_text",
];
/// The table of prompts: its rows are large, and their numbers are given by the database.
const PROMPTS: &str = "prompt_log";
/// Tables whose rows get their number from the database.
const NUMBERED: [&str; 4] = ["content", "warning", "segment", PROMPTS];

/// What was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyReport {
    pub sessions: u64,
    pub rows: u64,
}

/// Copies the archive in a file into an empty one on a server. Calls `progress` with the number of
/// rows so far.
pub fn copy(
    from: &Path,
    to: &Address,
    progress: &mut dyn FnMut(u64),
) -> Result<CopyReport, StoreError> {
    let source = Database::connect_to_copy(from)?;
    let place = ArchivePlace::Server(to.to_string());
    let mut run = || -> Result<CopyReport, StoreError> {
        let connection = PostgresConnection::connect(to)?;
        super::check(&connection, true)?;
        let mut target = Connection::Postgres(Box::new(connection.for_writing()?));
        let transaction = target.transaction()?;
        for table in ["session", "file", "setting"] {
            let sql = format!("SELECT 1 FROM {table} LIMIT 1");
            if transaction.prepare(&sql)?.exists([])? {
                return Err(StoreError::new(StoreErrorKind::NotEmpty));
            }
        }
        let mut report = CopyReport::default();
        for table in TABLES.into_iter().chain([PROMPTS]) {
            let rows = copy_table(&source, &transaction, table, report.rows, progress)?;
            report.rows += rows;
            if table == "session" {
                report.sessions = rows;
            }
        }
        for table in NUMBERED {
            let sql = format!(
                "SELECT setval(pg_get_serial_sequence('unspool.{table}', 'row'),
                     coalesce(max(row), 0) + 1, false) FROM {table}"
            );
            transaction.query_row(&sql, [], |_| Ok(()))?;
        }
        transaction.commit()?;
        Ok(report)
    };
    run().map_err(|error| error.at_place(&place))
}

fn copy_table(
    source: &rusqlite::Connection,
    target: &Transaction<'_>,
    table: &str,
    before: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, StoreError> {
    let names: Vec<String> = source
        .prepare("SELECT name FROM pragma_table_info(?1)")?
        .query_map([table], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let places: Vec<String> = (1..=names.len()).map(|at| format!("?{at}")).collect();
    let (columns, places) = (names.join(", "), places.join(", "));
    let mut insert =
        target.prepare_cached(&format!("INSERT INTO {table} ({columns}) VALUES ({places})"))?;
    let mut statement = source.prepare(&format!("SELECT {columns} FROM {table}"))?;
    let mut rows = statement.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let values: Vec<Value> =
            (0..names.len()).map(|at| row.get(at)).collect::<Result<_, _>>()?;
        insert.run(params_from_iter(values))?;
        count += 1;
        if count % 1024 == 0 {
            progress(before + count);
        }
    }
    progress(before + count);
    Ok(count)
}
