//! Edits by the user: session names, tags, deletion, settings.

use crate::sql::{Connection, OptionalExtension, Transaction, params};
use rustc_hash::FxHashSet;
use unspool_model::id::SessionId;

use super::erase;
use super::load::id;
use super::notes;
use super::subagents::next_below;
use super::write::OrphanCandidates;
use crate::rows::RowId;
use crate::store::StoreError;

/// Sets or clears a session's name.
pub fn rename(
    connection: &mut Connection,
    session: RowId,
    name: Option<&str>,
) -> Result<(), StoreError> {
    connection.execute("UPDATE session SET name = ?2 WHERE row = ?1", params![session, name])?;
    Ok(())
}

/// Adds and removes tags.
pub fn tag(
    connection: &mut Connection,
    session: RowId,
    add: &[String],
    remove: &[String],
) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    for name in add {
        transaction.execute(
            "INSERT INTO tag (session, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            params![session, name],
        )?;
    }
    for name in remove {
        transaction
            .execute("DELETE FROM tag WHERE session = ?1 AND name = ?2", params![session, name])?;
    }
    Ok(transaction.commit()?)
}

/// The rows and ids of a session and its sub-agents, nested ones included.
pub fn family(
    connection: &Connection,
    session: RowId,
) -> Result<Vec<(RowId, SessionId)>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "WITH RECURSIVE below (row) AS (
             SELECT CAST(?1 AS INTEGER)
             UNION
             {}
         )
         SELECT row, id FROM session WHERE row IN (SELECT below.row FROM below) ORDER BY row",
        next_below(connection)
    ))?;
    let rows: Vec<(RowId, String)> = statement
        .query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    rows.into_iter().map(|(row, text)| Ok((row, SessionId(id(&text)?)))).collect()
}

/// Deletes a session with its sub-agents, and records that syncing must not restore them. Returns
/// the number of deleted sessions.
pub fn delete(connection: &mut Connection, session: RowId, now: i64) -> Result<u64, StoreError> {
    let family = family(connection, session)?;
    erase::erasing(connection, |transaction| {
        for (row, id) in &family {
            transaction.execute(
                "INSERT INTO deleted (id, at) VALUES (?1, ?2)
                 ON CONFLICT (id) DO UPDATE SET at = ?2",
                params![id.to_string(), now],
            )?;
            erase::forget_files(transaction, *row)?;
            notes::delete_all(transaction, *id)?;
            for chunk in delete_rows(transaction, *row)? {
                erase::blank_gaps(transaction, chunk)?;
            }
        }
        Ok(family.len() as u64)
    })
}

/// Deletes a session's rows, and the contents and snapshots that no other session uses. Returns the
/// chunks that lost a content.
pub fn delete_rows(
    transaction: &Transaction<'_>,
    session: RowId,
) -> Result<FxHashSet<RowId>, StoreError> {
    let contents = transaction
        .prepare_cached(
            "SELECT DISTINCT content FROM part JOIN turn ON turn.row = part.turn
             WHERE turn.session = ?1 AND content IS NOT NULL",
        )?
        .query_map([session], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    transaction.execute("DELETE FROM session WHERE row = ?1", [session])?;
    let orphans = OrphanCandidates { contents, ..OrphanCandidates::default() };
    let chunks = orphans.drop_unused(transaction)?;
    transaction.execute(
        "DELETE FROM snapshot WHERE NOT EXISTS (SELECT 1 FROM session_snapshot
             WHERE session_snapshot.sha256 = snapshot.sha256)",
        [],
    )?;
    Ok(chunks)
}

/// Removes a session so that it can be recorded again. Its name and tags move to `remembered`, and
/// its files are marked as changed in the same transaction: if the process ends here, the next
/// sync re-reads them.
pub fn forget(connection: &mut Connection, session: RowId) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    forget_rows(&transaction, session)?;
    Ok(transaction.commit()?)
}

/// Returns the chunks that lost a content.
pub fn forget_rows(
    transaction: &Transaction<'_>,
    session: RowId,
) -> Result<FxHashSet<RowId>, StoreError> {
    transaction.execute(
        "INSERT INTO remembered (id, name, tags)
         SELECT id, name, (SELECT json_group_array(tag.name) FROM tag WHERE tag.session = ?1)
         FROM session WHERE row = ?1
             AND (name IS NOT NULL OR EXISTS (SELECT 1 FROM tag WHERE tag.session = ?1))
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, tags = excluded.tags",
        [session],
    )?;
    transaction.execute(
        "UPDATE file SET size = 0, modified = 0, changed = 0
         WHERE row IN (SELECT file FROM source WHERE session = ?1)",
        [session],
    )?;
    delete_rows(transaction, session)
}

/// Allows a deleted session to be recorded again.
pub fn undelete(connection: &mut Connection, id: SessionId) -> Result<bool, StoreError> {
    let deleted_rows = connection.execute("DELETE FROM deleted WHERE id = ?1", [id.to_string()])?;
    Ok(deleted_rows > 0)
}

pub fn setting(connection: &Connection, name: &str) -> Result<Option<String>, StoreError> {
    Ok(connection
        .query_row("SELECT value FROM setting WHERE name = ?1", [name], |row| row.get(0))
        .optional()?)
}

pub fn set(connection: &Connection, name: &str, value: Option<&str>) -> Result<(), StoreError> {
    match value {
        Some(value) => connection.execute(
            "INSERT INTO setting (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = ?2",
            [name, value],
        )?,
        None => connection.execute("DELETE FROM setting WHERE name = ?1", [name])?,
    };
    Ok(())
}
