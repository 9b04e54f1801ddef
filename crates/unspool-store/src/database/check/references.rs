//! Rows whose owner is missing.

use crate::sql::Connection;
use crate::store::{CheckReport, StoreError};

pub(super) fn references(
    connection: &Connection,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    if connection.is_server() {
        return owners(connection, report);
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, to): (String, String) = (row.get(0)?, row.get(2)?);
        report.problem(format!("a row of {table} references a missing row of {to}"));
    }
    Ok(())
}

/// Rows of a server whose owner is missing: it has no foreign keys between large tables.
fn owners(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    const OWNED: [(&str, &str, &str); 21] = [
        ("turn", "session", "session"),
        ("tag", "session", "session"),
        ("chunk", "session", "session"),
        ("agent", "parent", "session"),
        ("session_snapshot", "session", "session"),
        ("source", "session", "session"),
        ("source", "file", "file"),
        ("cursor", "session", "session"),
        ("warning", "session", "session"),
        ("warning", "file", "file"),
        ("prompt_log", "session", "session"),
        ("step", "turn", "turn"),
        ("part", "turn", "turn"),
        ("journal", "part", "part"),
        ("agent", "part", "part"),
        ("unindexed", "part", "part"),
        ("edited_file", "part", "part"),
        ("part", "chunk", "chunk"),
        ("part", "content", "content"),
        ("content", "chunk", "chunk"),
        ("word_block", "segment", "segment"),
    ];
    for (table, column, owner) in OWNED {
        let sql = format!(
            "SELECT count(*) FROM {table} WHERE {table}.{column} IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM {owner} WHERE {owner}.row = {table}.{column})"
        );
        let orphans: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
        if orphans > 0 {
            report.problem(format!("{orphans} rows of {table} reference a missing row of {owner}"));
        }
    }
    Ok(())
}
