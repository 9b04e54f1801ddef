//! Checking an archive: the file itself, its references, every payload, and every column and sum
//! that is derived from the parts.

use rusqlite::{Connection, ErrorCode};

use super::load::Loader;
use crate::contract::{Checked, StoreError};
use crate::rows::{Row, columns, milliseconds};

/// More problems than this are counted and not told.
const TOLD: usize = 100;

pub fn check(connection: &Connection) -> Result<Checked, StoreError> {
    let mut checked = Checked::default();
    let mut integrity = connection.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = integrity.query([])?;
    while let Some(row) = rows.next()? {
        let told: String = row.get(0)?;
        if told != "ok" {
            checked.problem(told);
        }
    }
    for look in [references, parts, sums] {
        match look(connection, &mut checked) {
            Ok(()) => {}
            // Damage is what we look for: the rest is looked at all the same.
            Err(StoreError::Bare(error))
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) =>
            {
                checked.problem(format!("the rest of a table cannot be read: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(checked)
}

fn references(connection: &Connection, checked: &mut Checked) -> Result<(), StoreError> {
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, to): (String, String) = (row.get(0)?, row.get(2)?);
        checked.problem(format!("a row of {table} names a row of {to} that is not there"));
    }
    Ok(())
}

/// Every payload is read, and the columns are held against it (R-001-09).
fn parts(connection: &Connection, checked: &mut Checked) -> Result<(), StoreError> {
    let mut loader = Loader::new(connection);
    let mut statement = connection.prepare(
        "SELECT row, kind, state, tool, call_id, started, ended, hidden, id, role FROM part",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let number: Row = row.get(0)?;
        let id: String = row.get(8)?;
        checked.parts += 1;
        let part = match loader.part(number) {
            Ok(Some(loaded)) => loaded.part,
            Ok(None) => continue,
            Err(error) => {
                checked.problem(format!("part {id} cannot be read: {error}"));
                continue;
            }
        };
        let derived = columns(&part.body);
        let text = |at: usize| row.get::<_, Option<String>>(at);
        let same = text(1)?.as_deref() == Some(derived.kind)
            && text(2)?.as_deref() == derived.state
            && text(3)? == derived.tool
            && text(4)? == derived.call_id
            && row.get::<_, Option<i64>>(5)? == milliseconds(part.started)
            && row.get::<_, Option<i64>>(6)? == milliseconds(part.ended)
            && row.get::<_, bool>(7)? == part.origin.foreign;
        if !same {
            checked.problem(format!("the columns of part {id} do not say what the part says"));
        }
    }
    Ok(())
}

/// Every sum, against what it sums up.
fn sums(connection: &Connection, checked: &mut Checked) -> Result<(), StoreError> {
    let mut wrong = connection.prepare(
        "SELECT turn.id FROM turn WHERE
             (parts, tools, errors) IS NOT
             (SELECT count(*), count(*) FILTER (WHERE kind = 'tool'),
                  count(*) FILTER (WHERE kind = 'error' OR state = 'failed')
              FROM part WHERE part.turn = turn.row AND role = 'assistant' AND NOT hidden)
             OR (input, output, cache_read, cache_write, reasoning) IS NOT
             (SELECT CAST(total(step.input) AS INTEGER), CAST(total(step.output) AS INTEGER),
                  CAST(total(step.cache_read) AS INTEGER), CAST(total(step.cache_write) AS INTEGER),
                  CAST(total(step.reasoning) AS INTEGER) FROM step WHERE step.turn = turn.row)",
    )?;
    for id in wrong.query_map([], |row| row.get::<_, String>(0))? {
        checked.problem(format!("the sums of turn {} are wrong", id?));
    }
    let mut wrong = connection.prepare(
        "SELECT session.id FROM session WHERE
             (turns, parts, tools, errors, input, output, cache_read, cache_write, reasoning) IS NOT
             (SELECT count(*), CAST(total(turn.parts) AS INTEGER), CAST(total(turn.tools) AS INTEGER),
                  CAST(total(turn.errors) AS INTEGER), CAST(total(turn.input) AS INTEGER),
                  CAST(total(turn.output) AS INTEGER), CAST(total(turn.cache_read) AS INTEGER),
                  CAST(total(turn.cache_write) AS INTEGER), CAST(total(turn.reasoning) AS INTEGER)
              FROM turn WHERE turn.session = session.row)",
    )?;
    for id in wrong.query_map([], |row| row.get::<_, String>(0))? {
        checked.problem(format!("the sums of session {} are wrong", id?));
    }
    let count = |table: &str| -> rusqlite::Result<u64> {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
            row.get::<_, i64>(0).map(|count| count as u64)
        })
    };
    checked.sessions = count("session")?;
    checked.turns = count("turn")?;
    let mut doubled = connection
        .prepare("SELECT id FROM part GROUP BY turn, id HAVING count(*) > 1 LIMIT 100")?;
    for id in doubled.query_map([], |row| row.get::<_, String>(0))? {
        checked.problem(format!("part {} is there twice", id?));
    }
    Ok(())
}

impl Checked {
    fn problem(&mut self, what: String) {
        if self.problems.len() < TOLD {
            self.problems.push(what);
        }
        self.count += 1;
    }
}
