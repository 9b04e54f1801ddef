//! Texts that other machines sent, in compressed pieces. Small pieces are joined as they come, so
//! that a log that grows by a line at a time is read and compressed like one that was sent at once.

use super::{erase, user_changes};
use crate::pack::{Compressor, PackError, decompress};
use crate::rows::{Batch, Received, ReceivedPiece, ReceivedWrite, RowId};
use crate::sql;
use crate::sql::{Connection, FromSqlError, OptionalExtension, Transaction, params};
use crate::store::StoreError;
use unspool_model::source::Fingerprint;

/// A piece is not joined beyond this size: whoever reads some of it decompresses all of it.
const MAX_PIECE_BYTES: usize = 1024 * 1024;

pub fn write(transaction: &Transaction<'_>, writes: &[ReceivedWrite]) -> sql::Result<()> {
    for write in writes {
        let Received { file, generation, print, idle } = write.state;
        transaction
            .prepare_cached(
                "INSERT INTO received (file, generation, taken, head, tail, idle)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (file) DO UPDATE
                 SET generation = ?2, taken = ?3, head = ?4, tail = ?5, idle = ?6",
            )?
            .run(params![
                file,
                i64::from(generation),
                print.offset as i64,
                print.head as i64,
                print.tail as i64,
                i64::from(idle)
            ])?;
        if write.start == 0 {
            transaction.prepare_cached("DELETE FROM received_text WHERE file = ?1")?.run([file])?;
        }
        append(transaction, write)?;
    }
    Ok(())
}

/// Appends a text. It takes in the pieces before it that are not larger than it has become by then,
/// so that a byte is written again once for each doubling of its piece.
fn append(transaction: &Transaction<'_>, write: &ReceivedWrite) -> sql::Result<()> {
    if write.text.is_empty() {
        return Ok(());
    }
    let (file, mut start) = (write.state.file, write.start);
    let mut before: Vec<Vec<u8>> = Vec::new();
    let mut length = write.text.len();
    let mut last = transaction.prepare_cached(
        "SELECT start, length, data FROM received_text WHERE file = ?1 AND start < ?2
         ORDER BY start DESC LIMIT 1",
    )?;
    let mut delete =
        transaction.prepare_cached("DELETE FROM received_text WHERE file = ?1 AND start = ?2")?;
    loop {
        let found: Option<(i64, i64, Vec<u8>)> = last
            .query_row(params![file, start as i64], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let Some((begin, size, data)) = found else { break };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > length || length.saturating_add(size) > MAX_PIECE_BYTES {
            break;
        }
        // What cannot be read stays as it is.
        let Ok(text) = decompress(&data) else { break };
        delete.run(params![file, begin])?;
        start = begin as u64;
        length += text.len();
        before.push(text);
    }
    let mut text: Vec<u8> = before.into_iter().rev().flatten().collect();
    text.extend_from_slice(&write.text);
    let mut insert = transaction.prepare_cached(
        "INSERT INTO received_text (file, start, length, data) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let failed = |error: PackError| sql::Error::Value(FromSqlError::Other(Box::new(error)));
    let mut compressor = Compressor::new().map_err(failed)?;
    for piece in text.chunks(MAX_PIECE_BYTES) {
        let data = compressor.compress(piece).map_err(failed)?;
        insert.run(params![file, start as i64, piece.len() as i64, data])?;
        start += piece.len() as u64;
    }
    Ok(())
}

/// Removes the sessions of a file, so that they are recorded again without what its sender takes
/// back: their bytes too, and lines of the file that could not be read. Names and tags stay. Returns
/// the other files of those sessions.
pub fn withdraw(connection: &mut Connection, file: RowId) -> Result<Vec<String>, StoreError> {
    erase::erasing(connection, |transaction| {
        let rows = |sql: &str| -> Result<Vec<RowId>, StoreError> {
            let mut statement = transaction.prepare_cached(sql)?;
            Ok(statement.query_map([file], |row| row.get(0))?.collect::<Result<_, _>>()?)
        };
        let sessions = rows("SELECT DISTINCT session FROM source WHERE file = ?1")?;
        let mut others = transaction.prepare_cached(
            "SELECT DISTINCT file.path FROM source JOIN file ON file.row = source.file
             WHERE source.session IN (SELECT session FROM source WHERE file = ?1)
                 AND file.row <> ?1 ORDER BY file.path",
        )?;
        let others = others.query_map([file], |row| row.get(0))?.collect::<Result<_, _>>()?;
        transaction.execute("DELETE FROM warning WHERE file = ?1", [file])?;
        for session in sessions {
            for chunk in user_changes::forget_rows(transaction, session)? {
                erase::blank_gaps(transaction, chunk)?;
            }
        }
        Ok(others)
    })
}

/// Drops links from a session to a sub-agent that another member sent: such a link says whose page
/// shows a session, and with what it is deleted. Looks at the links of the parts that a batch writes,
/// and at those to its sessions.
pub fn drop_foreign_links(transaction: &Transaction<'_>, batch: &Batch) -> sql::Result<()> {
    if batch.received.is_empty() {
        return Ok(());
    }
    // Whoever sent the files of a session; nothing for those of this machine.
    let owner = |session: &str| {
        format!(
            "coalesce((SELECT min(substr(file.path, 1, instr(file.path, '@')))
                       FROM source JOIN file ON file.row = source.file
                       JOIN received ON received.file = file.row
                       WHERE source.session = {session}), '')"
        )
    };
    let (parent, child) = (owner("agent.parent"), owner("child.row"));
    let foreign = |link: &str| {
        transaction.prepare_cached(&format!(
            "SELECT agent.part, agent.agent_id FROM agent
             JOIN session AS child ON child.id = agent.session
             WHERE {link} = ?1 AND {parent} <> {child}"
        ))
    };
    let (mut of_part, mut to_session) = (foreign("agent.part")?, foreign("child.row")?);
    let mut found: Vec<(RowId, String)> = Vec::new();
    for session in &batch.sessions {
        let link = |row: &sql::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        for part in session.parts.iter().filter(|part| !part.agents.is_empty()) {
            let rows = of_part.query_map([part.row], link)?;
            found.extend(rows.collect::<sql::Result<Vec<_>>>()?);
        }
        let rows = to_session.query_map([session.row], link)?;
        found.extend(rows.collect::<sql::Result<Vec<_>>>()?);
    }
    let mut delete =
        transaction.prepare_cached("DELETE FROM agent WHERE part = ?1 AND agent_id = ?2")?;
    for (part, agent) in found {
        delete.run(params![part, agent])?;
    }
    Ok(())
}

/// How far the files with these names have been received.
pub fn states(
    connection: &Connection,
    names: &[String],
) -> Result<Vec<Option<Received>>, StoreError> {
    if !connection.has_table("received")? {
        return Ok(vec![None; names.len()]);
    }
    let mut statement = connection.prepare_cached(
        "SELECT received.file, generation, taken, received.head, received.tail, idle
         FROM received JOIN file ON file.row = received.file WHERE file.path = ?1",
    )?;
    let mut states = Vec::with_capacity(names.len());
    for name in names {
        let state = statement
            .query_row([name], |row| {
                let digest = |at: usize| row.get::<_, i64>(at).map(|digest| digest as u64);
                Ok(Received {
                    file: row.get(0)?,
                    generation: u32::try_from(row.get::<_, i64>(1)?).unwrap_or(u32::MAX),
                    print: Fingerprint { offset: digest(2)?, head: digest(3)?, tail: digest(4)? },
                    idle: row.get::<_, i64>(5)? != 0,
                })
            })
            .optional()?;
        states.push(state);
    }
    Ok(states)
}

/// The pieces of a file, in order.
pub fn pieces(connection: &Connection, file: RowId) -> Result<Vec<ReceivedPiece>, StoreError> {
    if !connection.has_table("received")? {
        return Ok(Vec::new());
    }
    let mut statement = connection
        .prepare_cached("SELECT start, length FROM received_text WHERE file = ?1 ORDER BY start")?;
    let rows = statement.query_map([file], |row| {
        let number = |at: usize| row.get::<_, i64>(at).map(|number| number as u64);
        Ok(ReceivedPiece { start: number(0)?, length: number(1)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The text of one piece.
pub fn piece(
    connection: &Connection,
    file: RowId,
    start: u64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT data FROM received_text WHERE file = ?1 AND start = ?2")?;
    let data: Option<Vec<u8>> =
        statement.query_row([file, start as i64], |row| row.get(0)).optional()?;
    Ok(data.map(|data| decompress(&data)).transpose()?)
}
