//! Reads turns and messages, the outline with which the recorder resumes a session, and what an
//! export holds besides turns. Sessions, lists of sessions and sources have a file each.

mod session;
mod session_list;
mod sources;

use crate::sql;
use crate::sql::{Connection, OptionalExtension};
use unspool_model::assemble::TurnStub;
use unspool_model::id::{SessionId, TurnId};
use unspool_model::session::Turn;

use self::session::{SESSION, session};
use self::sources::{cursors, sources};
use super::load::{Loader, id};
use super::prompts;
use super::subagents::SubagentIndex;
use crate::pack::PackError;
use crate::rows::{RowId, WarningRow};
use crate::store::{
    MessageFilter, NextRows, SessionExport, SessionOutline, StoreError, StoredMessage, StoredTurn,
    TurnWindow,
};

pub use self::session::{find, project_folders, sessions_by_id, sessions_with_running_turns};
pub(super) use self::session_list::NOT_EMPTY;
pub use self::session_list::sessions;
pub use self::sources::{file_row, files, records, saved, source_files, warnings};

pub fn turns(
    connection: &Connection,
    session: RowId,
    window: TurnWindow,
) -> Result<Vec<Turn>, StoreError> {
    let (first, last, count) = match window {
        TurnWindow::All => (0, i64::MAX, i64::MAX),
        TurnWindow::Turn(number) => (number.into(), number.into(), i64::MAX),
        TurnWindow::From { number, count } => (number.into(), i64::MAX, i64::from(count)),
    };
    let mut loader = Loader::new(connection);
    let mut statement = connection.prepare_cached(
        "SELECT row, head FROM turn WHERE session = ?1 AND number BETWEEN ?2 AND ?3
         ORDER BY number, row LIMIT ?4",
    )?;
    let mut rows = statement.query([session, first, last, count])?;
    let mut turns = Vec::new();
    while let Some(row) = rows.next()? {
        let head = row.get_ref(1)?.as_str()?;
        turns.push(loader.turn(row.get(0)?, head)?.turn);
    }
    Ok(turns)
}

pub fn turn(
    connection: &Connection,
    session: RowId,
    id: TurnId,
) -> Result<Option<StoredTurn>, StoreError> {
    let found: Option<(RowId, String)> = connection
        .prepare_cached("SELECT row, head FROM turn WHERE session = ?1 AND id = ?2")?
        .query_row((session, id.to_string()), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    found.map(|(row, head)| Loader::new(connection).turn(row, &head)).transpose()
}

pub fn outline(
    connection: &Connection,
    id: SessionId,
) -> Result<Option<SessionOutline>, StoreError> {
    let sql = format!("{SESSION} WHERE session.id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([id.to_string()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut stored = session(connection, &SubagentIndex::default(), &row)?;
    // The recorder needs the stored head, without the fields that reads join in.
    stored.summary.session =
        serde_json::from_str(row.get_ref(1)?.as_str()?).map_err(PackError::from)?;
    let row = stored.row;
    let mut outline = SessionOutline {
        stored,
        turns: Vec::new(),
        unsettled: Vec::new(),
        cursors: cursors(connection, row)?,
        sources: sources(connection, row)?,
    };
    let mut turns = connection.prepare_cached(
        "SELECT row, head, names, settled FROM turn WHERE session = ?1 ORDER BY row",
    )?;
    let mut rows = turns.query([row])?;
    while let Some(row) = rows.next()? {
        let turn: Turn =
            serde_json::from_str(row.get_ref(1)?.as_str()?).map_err(PackError::from)?;
        let names = row.get_ref(2)?.as_blob()?;
        let names = names.as_chunks::<8>().0.iter().map(|name| u64::from_le_bytes(*name)).collect();
        if !row.get::<_, bool>(3)? {
            outline.unsettled.push(turn.id);
        }
        outline.turns.push((row.get(0)?, TurnStub { turn, names }));
    }
    Ok(Some(outline))
}

/// The length of a message preview, in characters (R-001-10).
const PREVIEW_CHARS: usize = 200;

pub fn messages(
    connection: &Connection,
    session: SessionId,
    filter: &MessageFilter,
) -> Result<Vec<StoredMessage>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, execution_id, role, sequence, has_tool_calls, has_reasoning, has_files,
             content, created_at FROM message
         WHERE agent_id = ?1 AND (role = ?2 OR ?2 IS NULL)
             AND (has_tool_calls = ?3 OR ?3 IS NULL)
             AND ((role = 'assistant' AND EXISTS (SELECT 1 FROM part
                 JOIN turn ON turn.row = part.turn
                 JOIN session ON session.row = turn.session AND session.id = ?1
                 WHERE turn.id = message.execution_id AND part.tool = ?4 AND NOT part.hidden)) OR ?4 IS NULL)
             AND (execution_id = ?5 OR ?5 IS NULL)
             AND (sequence > ?6 OR ?6 IS NULL)
         ORDER BY sequence LIMIT ?7",
    )?;
    let mut rows = statement.query((
        session.to_string(),
        &filter.role,
        filter.has_tool_calls,
        &filter.tool_name,
        filter.execution.map(|turn| turn.to_string()),
        filter.after.map(|after| i64::try_from(after).unwrap_or(i64::MAX)),
        filter.limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX)),
    ))?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        // Not the view's preview: SQL functions end a text at its first NUL.
        let content: String = row.get(7)?;
        messages.push(StoredMessage {
            id: row.get(0)?,
            execution: TurnId(id(row.get_ref(1)?.as_str()?)?),
            role: row.get(2)?,
            sequence: row.get::<_, i64>(3)? as u64,
            has_tool_calls: row.get(4)?,
            has_reasoning: row.get(5)?,
            has_files: row.get(6)?,
            text_preview: content.chars().take(PREVIEW_CHARS).collect(),
            content,
            created_at: row.get(8)?,
        });
    }
    Ok(messages)
}

/// Everything stored about a session except its turns.
pub fn session_export(
    connection: &Connection,
    session: RowId,
) -> Result<SessionExport, StoreError> {
    let head: String =
        connection
            .query_row("SELECT head FROM session WHERE row = ?1", [session], |row| row.get(0))?;
    let mut statement = connection.prepare_cached(
        "SELECT file.path, warning.file, warning.line, warning.what, warning.bytes FROM warning
         JOIN file ON file.row = warning.file WHERE warning.session = ?1 ORDER BY warning.row",
    )?;
    let warnings = statement.query_map([session], |row| {
        let warning = WarningRow {
            file: row.get(1)?,
            session: Some(session),
            line: row.get::<_, i64>(2)? as u64,
            what: row.get(3)?,
            bytes: row.get(4)?,
        };
        Ok((row.get(0)?, warning))
    })?;
    Ok(SessionExport {
        session: serde_json::from_str(&head).map_err(PackError::from)?,
        sources: sources(connection, session)?,
        cursors: cursors(connection, session)?,
        warnings: warnings.collect::<Result<_, _>>()?,
        snapshots: prompts::all_snapshots(connection, session)?,
        prompts: prompts::records(connection, session)?,
    })
}

pub fn next_rows(connection: &Connection) -> Result<NextRows, StoreError> {
    let next = |table: &str| -> sql::Result<RowId> {
        let sql = format!("SELECT coalesce(max(row), 0) + 1 FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0))
    };
    Ok(NextRows {
        session: next("session")?,
        turn: next("turn")?,
        part: next("part")?,
        chunk: next("chunk")?,
        file: next("file")?,
    })
}

pub fn is_deleted(connection: &Connection, id: SessionId) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM deleted WHERE id = ?1")?;
    Ok(statement.exists([id.to_string()])?)
}
