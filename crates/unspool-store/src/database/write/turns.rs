//! Writes the turns of a session with their steps (model calls).

use crate::sql;
use crate::sql::{OptionalExtension, Statement, Transaction, params};
use rustc_hash::FxHashSet;
use unspool_model::session::Step;

use super::sum_changes::SumChanges;
use super::{json, vacate};
use crate::database::derived_columns::stored_names;
use crate::rows::{NameDigests, RowId, SessionWrite, TurnWrite, milliseconds};

pub(super) fn turns(
    transaction: &Transaction<'_>,
    session: &SessionWrite,
    sums: &mut SumChanges<'_>,
) -> sql::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO turn (row, session, id, number, trigger, thinking_mode, state, abandoned,
             inherited, started, ended, settled, head, names)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?15)
         ON CONFLICT (row) DO UPDATE SET id = ?3, number = ?4, trigger = ?5, thinking_mode = ?6,
             state = ?7, abandoned = ?8, inherited = ?9, started = ?10, ended = ?11,
             settled = ?12, head = ?13, names = iif(?14, ?15, CAST(turn.names || ?15 AS BLOB))",
    )?;
    let mut forget =
        transaction.prepare_cached("DELETE FROM step WHERE turn = ?1 AND number >= ?2")?;
    let mut step = transaction.prepare_cached(
        "INSERT INTO step (turn, number, id, model, input, output, cache_read, cache_write,
             reasoning, cache_write_1h, stop_reason, origin)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for (nth, write) in session.turns.iter().enumerate() {
        let TurnWrite { row, turn, steps_from, steps, names, forgotten_names, settled } = write;
        if matches!(names, NameDigests::Added(_)) && !forgotten_names.is_empty() {
            forget_names(transaction, *row, forgotten_names)?;
        }
        let (NameDigests::All(entry) | NameDigests::Added(entry)) = names;
        let digests: Vec<u8> = entry.iter().flat_map(|name| name.to_le_bytes()).collect();
        let later = session.turns.get(nth + 1..).unwrap_or_default();
        let params = params![
            row,
            session.row,
            turn.id.to_string(),
            turn.number,
            turn.trigger.name(),
            turn.thinking_mode,
            turn.state.name(),
            turn.abandoned,
            turn.inherited,
            milliseconds(turn.started),
            milliseconds(turn.ended),
            settled,
            json(turn),
            matches!(names, NameDigests::All(_)),
            digests,
        ];
        vacate::execute(&mut insert, params, || vacate::numbers(transaction, later))?;
        let from = *steps_from as i64;
        sums.steps(*row, from, false)?;
        forget.run(params![row, from])?;
        for (nth, entry) in steps.iter().enumerate() {
            write_step(&mut step, *row, steps_from + nth, entry)?;
        }
        sums.steps(*row, from, true)?;
    }
    Ok(())
}

/// Removes names from those of a turn: they would lead to it although their parts are in another.
fn forget_names(transaction: &Transaction<'_>, turn: RowId, forgotten: &[u64]) -> sql::Result<()> {
    let forgotten: FxHashSet<u64> = forgotten.iter().copied().collect();
    let kept = stored_names(transaction, turn).optional()?.unwrap_or_default().into_iter();
    let kept = kept.filter(|name| !forgotten.contains(name));
    let kept: Vec<u8> = kept.flat_map(u64::to_le_bytes).collect();
    transaction
        .prepare_cached("UPDATE turn SET names = ?2 WHERE row = ?1")?
        .execute(params![turn, kept])?;
    Ok(())
}

fn write_step(
    statement: &mut Statement<'_>,
    turn: RowId,
    number: usize,
    step: &Step,
) -> sql::Result<()> {
    let usage = step.usage;
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let counts = [
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
        usage.cache_write_1h,
    ];
    let too_much = counts.iter().any(|count| i64::try_from(*count).is_err());
    let origin = StepOrigin {
        name: &step.name,
        at: step.at,
        usage: too_much.then_some(usage),
        request: step.request.as_deref(),
        provenance: step.provenance.as_ref(),
    };
    statement.run(params![
        turn,
        number as i64,
        step.id.to_string(),
        step.model.as_deref(),
        count(usage.input),
        count(usage.output),
        count(usage.cache_read),
        count(usage.cache_write),
        count(usage.reasoning),
        count(usage.cache_write_1h),
        step.stop_reason.as_deref(),
        json(&origin),
    ])?;
    Ok(())
}

#[derive(serde::Serialize)]
struct StepOrigin<'a> {
    name: &'a unspool_model::provenance::Name,
    at: unspool_model::provenance::Positions,
    /// Counts that do not fit an SQLite integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<unspool_model::session::Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<&'a unspool_model::session::Provenance>,
}
