//! Columns of turns and sessions that are derived from other rows: sums, the first prompt and the
//! models. A batch updates those of the turns that it changes.

use crate::sql;
use crate::sql::{Connection, Transaction, params};

use super::json;
use crate::database::derived_columns::{
    PART, STEP_SUMS, TURN_SUMS, first_prompt, models_of, part_sums, prompt_and_models,
};
use crate::rows::{RowId, SessionWrite};

/// Adds up changed turns from their rows, then the session from its turns.
pub(super) fn sum_up(
    transaction: &Transaction<'_>,
    session: RowId,
    turns: &[RowId],
) -> sql::Result<()> {
    let ((parts, of_parts), (steps, of_steps)) = (part_sums(&PART), STEP_SUMS);
    let sql = format!("UPDATE turn SET {parts} = {of_parts}, {steps} = {of_steps} WHERE row = ?1");
    let mut turn = transaction.prepare_cached(&sql)?;
    for row in turns {
        turn.run([*row])?;
    }
    let (sums, of_turns) = &*TURN_SUMS;
    let sql = format!("UPDATE session SET {sums} = {of_turns} WHERE row = ?1");
    transaction.prepare_cached(&sql)?.run([session])?;
    Ok(())
}

/// Recomputes all sums.
pub(in crate::database) fn sum_up_all(connection: &mut Connection) -> sql::Result<()> {
    let transaction = connection.transaction()?;
    let sessions: Vec<RowId> = transaction
        .prepare("SELECT row FROM session")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for session in sessions {
        let turns: Vec<RowId> = transaction
            .prepare_cached("SELECT row FROM turn WHERE session = ?1")?
            .query_map([session], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        sum_up(&transaction, session, &turns)?;
        update_prompt_and_models(&transaction, session, false)?;
    }
    transaction.commit()
}

/// Updates the first line of the first prompt, and the models in order of first use unless
/// `same_models`.
pub(super) fn update_prompt_and_models(
    transaction: &Transaction<'_>,
    session: RowId,
    same_models: bool,
) -> sql::Result<()> {
    let (prompt, existing): (Option<String>, Vec<String>) =
        prompt_and_models(transaction, session)?;
    let first = first_prompt(transaction, session)?;
    let models = if same_models { existing.clone() } else { models_of(transaction, session)? };
    if first != prompt || models != existing {
        transaction
            .prepare_cached("UPDATE session SET prompt = ?2, models = ?3 WHERE row = ?1")?
            .run(params![session, first, json(&models)])?;
    }
    Ok(())
}

/// True if the batch cannot change the model list: it has at most one model, and the batch no
/// other.
pub(super) fn has_same_models(
    transaction: &Transaction<'_>,
    write: &SessionWrite,
) -> sql::Result<bool> {
    let (_, existing) = prompt_and_models(transaction, write.row)?;
    let steps = write.turns.iter().flat_map(|turn| &turn.steps);
    let mut entry = steps.filter_map(|step| step.model.as_deref());
    Ok(existing.len() <= 1 && entry.all(|model| existing.iter().any(|existing| existing == model)))
}
