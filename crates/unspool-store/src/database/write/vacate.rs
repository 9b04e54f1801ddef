//! Moves rows that a batch will write out of the way of others. A place is unique in its turn and a
//! number in its session (R-001-07), and SQLite checks that after every statement: parts that change
//! places with each other would clash in between. Only rows that are about to be written are moved.

use crate::sql;
use crate::sql::{Statement, ToSql, Transaction};

use crate::rows::{PartRow, TurnWrite};

/// Below all places of parts, those of the user's message included.
const LOWEST_PLACE: i64 = i64::MIN / 2;

/// Runs the statement. If its row clashes with a row that is written later, `vacate` moves those.
pub(super) fn execute(
    statement: &mut Statement<'_>,
    params: &[&dyn ToSql],
    vacate: impl FnOnce() -> sql::Result<()>,
) -> sql::Result<()> {
    match statement.run(params) {
        Ok(()) => Ok(()),
        // PostgreSQL looks for clashes at the end of the transaction only.
        Err(error) if error.is_clash() => {
            vacate()?;
            statement.run(params)
        }
        Err(error) => Err(error),
    }
}

/// Frees the places of these parts.
pub(super) fn places(transaction: &Transaction<'_>, parts: &[PartRow]) -> sql::Result<()> {
    let mut vacate = transaction.prepare_cached("UPDATE part SET place = ?2 WHERE row = ?1")?;
    for part in parts.iter().filter(|part| part.stored) {
        vacate.run((part.row, LOWEST_PLACE.saturating_add(part.row)))?;
    }
    Ok(())
}

/// Frees the numbers of these turns.
pub(super) fn numbers(transaction: &Transaction<'_>, turns: &[TurnWrite]) -> sql::Result<()> {
    let mut vacate = transaction.prepare_cached("UPDATE turn SET number = -row WHERE row = ?1")?;
    for turn in turns {
        vacate.run([turn.row])?;
    }
    Ok(())
}
