//! The user's notes. They name their session, turn or part by id. `follow` moves them when the
//! recorder gives a turn or part another id, so that a note stays where it was written.

use crate::sql;
use crate::sql::{Connection, OptionalExtension, Row, Transaction, params};
use jiff::Timestamp;
use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_model::note::{Note, NoteTarget, PlacedNote};
use unspool_model::part::Place;
use unspool_view::present::format::first_line;

use super::load::{Loader, id};
use crate::pack::Extent;
use crate::rows::RowId;
use crate::search::beginning;
use crate::store::StoreError;

/// The longest beginning of what a note is on.
const MAX_ABOUT_CHARS: usize = 120;

fn columns(target: NoteTarget) -> (&'static str, String) {
    match target {
        NoteTarget::Session => ("session", String::new()),
        NoteTarget::Turn(turn) => ("turn", turn.to_string()),
        NoteTarget::Part(part) => ("part", part.to_string()),
    }
}

fn target(kind: &str, text: &str) -> Result<NoteTarget, StoreError> {
    Ok(match kind {
        "turn" => NoteTarget::Turn(TurnId(id(text)?)),
        "part" => NoteTarget::Part(PartId(id(text)?)),
        _ => NoteTarget::Session,
    })
}

pub fn set(connection: &Connection, session: SessionId, note: &Note) -> Result<(), StoreError> {
    let (kind, target) = columns(note.target);
    let turn = match note.target {
        NoteTarget::Session | NoteTarget::Turn(_) => String::new(),
        NoteTarget::Part(part) => turn_of(connection, session, part)?.unwrap_or_default(),
    };
    connection.execute(
        "INSERT INTO note (session, kind, target, turn, text, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (session, kind, target) DO UPDATE SET turn = ?4, text = ?5, at = ?6",
        params![session.to_string(), kind, target, turn, note.text, note.at.as_millisecond()],
    )?;
    Ok(())
}

pub fn remove(
    connection: &Connection,
    session: SessionId,
    target: NoteTarget,
) -> Result<(), StoreError> {
    let (kind, target) = columns(target);
    connection.execute(
        "DELETE FROM note WHERE session = ?1 AND kind = ?2 AND target = ?3",
        params![session.to_string(), kind, target],
    )?;
    Ok(())
}

/// Deletes the notes of a session.
pub fn delete_all(transaction: &Transaction<'_>, session: SessionId) -> Result<(), StoreError> {
    transaction.execute("DELETE FROM note WHERE session = ?1", [session.to_string()])?;
    Ok(())
}

/// The id of the turn that has a part.
fn turn_of(
    connection: &Connection,
    session: SessionId,
    part: PartId,
) -> Result<Option<String>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT turn.id FROM session JOIN turn ON turn.session = session.row
             JOIN part ON part.turn = turn.row WHERE session.id = ?1 AND part.id = ?2 LIMIT 1",
        )?
        .query_row(params![session.to_string(), part.to_string()], |row| row.get(0))
        .optional()?;
    Ok(found)
}

/// Moves the notes of turns and parts that got another id, and of parts that went to another turn.
/// If both ids have a note, the texts are joined: no note is lost.
pub fn follow(
    transaction: &Transaction<'_>,
    session: SessionId,
    moved: &[(NoteTarget, NoteTarget)],
    moved_parts: &[(PartId, TurnId)],
) -> sql::Result<()> {
    if moved.is_empty() && moved_parts.is_empty() {
        return Ok(());
    }
    let session = session.to_string();
    let mut any = transaction.prepare_cached("SELECT 1 FROM note WHERE session = ?1")?;
    if !any.exists([&session])? {
        return Ok(());
    }
    let mut copy = transaction.prepare_cached(
        "INSERT INTO note (session, kind, target, turn, text, at)
         SELECT session, kind, ?4, turn, text, at FROM note
         WHERE session = ?1 AND kind = ?2 AND target = ?3
         ON CONFLICT (session, kind, target) DO UPDATE SET
             at = max(note.at, excluded.at),
             text = iif(note.text = '' OR excluded.text = '', note.text || excluded.text,
                 note.text || ?5 || excluded.text)",
    )?;
    let mut delete = transaction
        .prepare_cached("DELETE FROM note WHERE session = ?1 AND kind = ?2 AND target = ?3")?;
    let mut turn =
        transaction.prepare_cached("UPDATE note SET turn = ?3 WHERE session = ?1 AND turn = ?2")?;
    for (from, into) in moved.iter().filter(|(from, into)| from != into) {
        let ((kind, from), (_, into)) = (columns(*from), columns(*into));
        if copy.execute(params![session, kind, from, into, "\n\n"])? > 0 {
            delete.execute(params![session, kind, from])?;
        }
        if kind == "turn" {
            turn.execute(params![session, from, into])?;
        }
    }
    let mut part = transaction.prepare_cached(
        "UPDATE note SET turn = ?3 WHERE session = ?1 AND kind = 'part' AND target = ?2",
    )?;
    for (id, turn) in moved_parts {
        part.execute(params![session, id.to_string(), turn.to_string()])?;
    }
    Ok(())
}

/// A note as it is stored, and its turn then.
fn read(row: &Row<'_>) -> Result<(SessionId, Note, String), StoreError> {
    let at = Timestamp::from_millisecond(row.get(5)?).unwrap_or_default();
    let target = target(row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?)?;
    let session = SessionId(id(row.get_ref(0)?.as_str()?)?);
    Ok((session, Note { target, text: row.get(4)?, at }, row.get(3)?))
}

fn place(
    connection: &Connection,
    session: SessionId,
    note: Note,
    turn: &str,
) -> Result<PlacedNote, StoreError> {
    let found: Option<(u32, Option<i64>, RowId)> = match note.target {
        NoteTarget::Session => None,
        NoteTarget::Turn(turn) => connection
            .prepare_cached(
                "SELECT number, CAST(NULL AS INTEGER), row FROM turn WHERE id = ?2
                     AND session = (SELECT row FROM session WHERE id = ?1)",
            )?
            .query_row(params![session.to_string(), turn.to_string()], numbers)
            .optional()?,
        NoteTarget::Part(part) => {
            let part = part.to_string();
            let remembered = connection
                .prepare_cached(
                    "SELECT number, place, part.row FROM turn JOIN part ON part.turn = turn.row
                     WHERE turn.id = ?2 AND part.id = ?3 AND NOT part.hidden
                         AND turn.session = (SELECT row FROM session WHERE id = ?1)",
                )?
                .query_row(params![session.to_string(), turn, part], numbers)
                .optional()?;
            match remembered {
                Some(found) => Some(found),
                // It may have come to another turn when the session was read again.
                None => connection
                    .prepare_cached(
                        "SELECT number, place, part.row FROM session JOIN turn
                             ON turn.session = session.row
                         JOIN part ON part.turn = turn.row
                         WHERE session.id = ?1 AND part.id = ?2 AND NOT part.hidden LIMIT 1",
                    )?
                    .query_row(params![session.to_string(), part], numbers)
                    .optional()?,
            }
        }
    };
    let Some((turn, place, row)) = found else {
        return Ok(PlacedNote { note, turn: None, place: None, about: String::new() });
    };
    let about = match note.target {
        NoteTarget::Session => String::new(),
        NoteTarget::Turn(_) => prompt(connection, row)?,
        NoteTarget::Part(_) => part_words(connection, row)?,
    };
    Ok(PlacedNote { note, turn: Some(turn), place: place.map(Place), about })
}

fn numbers(row: &Row<'_>) -> sql::Result<(u32, Option<i64>, RowId)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// The beginning of the user's message in a turn.
fn prompt(connection: &Connection, turn: RowId) -> Result<String, StoreError> {
    let said = connection
        .prepare_cached(
            "SELECT substr(text, 1, 400) FROM part
             WHERE turn = ?1 AND place < 0 AND text IS NOT NULL AND kind <> 'context-info'
             ORDER BY kind <> 'text', place LIMIT 1",
        )?
        .query_row([turn], |row| row.get(0))
        .optional()?;
    Ok(said.map(|said: String| first_line(&said, MAX_ABOUT_CHARS)).unwrap_or_default())
}

/// A call as on its card, or the beginning of a text.
fn part_words(connection: &Connection, part: RowId) -> Result<String, StoreError> {
    let loaded = Loader::new(connection).part_if_readable_with(part, Extent::WithoutResult)?;
    let Some(loaded) = loaded else { return Ok(String::new()) };
    let body = &loaded.part.body;
    let tool = body.tool().map(|tool| tool.name.as_str());
    let words = beginning(body, MAX_ABOUT_CHARS).text;
    let words = tool.into_iter().chain([words.trim()]).filter(|words| !words.is_empty());
    Ok(first_line(&words.collect::<Vec<_>>().join(" "), MAX_ABOUT_CHARS))
}

pub fn notes(connection: &Connection, session: SessionId) -> Result<Vec<PlacedNote>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT session, kind, target, turn, text, at FROM note WHERE session = ?1 ORDER BY at, kind, target",
    )?;
    let mut rows = statement.query([session.to_string()])?;
    let mut notes = Vec::new();
    while let Some(row) = rows.next()? {
        let (session, note, turn) = read(&row)?;
        notes.push(place(connection, session, note, &turn)?);
    }
    notes.sort_by_key(PlacedNote::position);
    Ok(notes)
}

/// The notes of all sessions that are stored, newest first.
pub fn all(connection: &Connection) -> Result<Vec<(SessionId, PlacedNote)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT session, kind, target, turn, text, at FROM note
         WHERE session IN (SELECT id FROM session) ORDER BY at DESC, session, kind, target",
    )?;
    let mut rows = statement.query([])?;
    let mut notes = Vec::new();
    while let Some(row) = rows.next()? {
        let (session, note, turn) = read(&row)?;
        notes.push((session, place(connection, session, note, &turn)?));
    }
    Ok(notes)
}
