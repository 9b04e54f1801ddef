//! The usage of a session's latest model calls. A live page asks for it often, so the parts are read
//! from the end of the session, and only as far as they are recent.

use crate::sql;
use crate::sql::Connection;
use rustc_hash::FxHashSet;
use unspool_model::session::Usage;

use crate::rows::RowId;
use crate::store::StoreError;

/// The usage of calls that have a part which started at or after `since`, in milliseconds.
pub fn recent_usage(
    connection: &Connection,
    session: RowId,
    since: i64,
) -> Result<Vec<(Option<String>, Usage)>, StoreError> {
    let mut turns = connection
        .prepare_cached("SELECT row FROM turn WHERE session = ?1 ORDER BY number DESC")?;
    let mut parts = connection.prepare_cached(
        "SELECT step, started FROM part WHERE turn = ?1 AND started IS NOT NULL AND NOT hidden
         ORDER BY place DESC",
    )?;
    let mut steps = connection.prepare_cached(
        "SELECT id, model, input, output, cache_read, cache_write, reasoning FROM step
         WHERE turn = ?1 ORDER BY number DESC",
    )?;
    let mut found = Vec::new();
    let mut turns = turns.query([session])?;
    while let Some(turn) = turns.next()? {
        let turn: RowId = turn.get(0)?;
        let mut wanted: FxHashSet<String> = FxHashSet::default();
        let mut is_older = false;
        let mut rows = parts.query([turn])?;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(1)? < since {
                is_older = true;
                break;
            }
            wanted.extend(row.get::<_, Option<String>>(0)?);
        }
        let mut rows = steps.query([turn])?;
        while let Some(row) = rows.next()?.filter(|_| !wanted.is_empty()) {
            if !wanted.remove(&row.get::<_, String>(0)?) {
                continue;
            }
            let count = |at| Ok::<_, sql::Error>(row.get::<_, i64>(at)?.max(0) as u64);
            let usage = Usage {
                input: count(2)?,
                output: count(3)?,
                cache_read: count(4)?,
                cache_write: count(5)?,
                reasoning: count(6)?,
                ..Usage::default()
            };
            found.push((row.get(1)?, usage));
        }
        if is_older {
            break;
        }
    }
    Ok(found)
}
