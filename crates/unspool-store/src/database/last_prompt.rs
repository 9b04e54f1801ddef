//! The size of a session's last prompt, from the usage of its steps, and its compactions.

use crate::sql::{Connection, OptionalExtension};
use unspool_model::part::Body;

use super::derived_columns::MAX_COUNTED;
use super::load::Loader;
use crate::pack::Extent;
use crate::rows::RowId;
use crate::store::{LastPrompt, StoreError};

/// How many compactions are looked at.
const MAX_COMPACTIONS: usize = 4;

/// A place in a session: the number of a turn, and a place in it.
type SessionPlace = (i64, i64);

pub fn last_prompt(connection: &Connection, session: RowId) -> Result<LastPrompt, StoreError> {
    // The first table of a cross join is the outer loop: the index of kinds finds the few
    // compactions of an archive, the index of turns would read all parts of the session.
    let mut statement = connection.prepare_cached(
        "SELECT turn.number, part.place, part.row FROM part CROSS JOIN turn ON turn.row = part.turn
         WHERE part.kind = 'compaction' AND NOT part.hidden AND turn.session = ?1",
    )?;
    let places = statement
        .query_map([session], |row| Ok(((row.get(0)?, row.get(1)?), row.get::<_, RowId>(2)?)))?;
    let mut compactions: Vec<(SessionPlace, RowId)> = places.collect::<Result<_, _>>()?;
    compactions.sort_unstable();
    let tokens = ["input", "cache_read", "cache_write"];
    let tokens = tokens.map(|count| format!("min(step.{count}, {MAX_COUNTED})")).join(" + ");
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {tokens}, step.model, turn.number,
             coalesce((SELECT place FROM part
                 WHERE part.turn = turn.row AND part.step = step.id AND part.kind <> 'compaction'
                     AND NOT part.hidden ORDER BY place DESC LIMIT 1), 0)
         FROM turn JOIN step ON step.turn = turn.row
         WHERE turn.session = ?1 AND {tokens} > 0
         ORDER BY turn.number DESC, step.number DESC LIMIT 1",
    ))?;
    let found = statement
        .query_row([session], |row| {
            let at: SessionPlace = (row.get(2)?, row.get(3)?);
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?, at))
        })
        .optional()?;
    let last = compactions.last().map(|(place, _)| *place);
    let found = found.filter(|(_, _, at)| last < Some(*at));
    let (tokens, model) = match found {
        Some((tokens, model, _)) => (u64::try_from(tokens).ok(), model),
        None => (None, None),
    };
    let compacted_at = automatic_size(connection, &compactions)?;
    Ok(LastPrompt { tokens, model, compactions: compactions.len() as u64, compacted_at })
}

/// The tokens before the last compaction that the agent made by itself. One that the user asked for
/// says nothing about the next.
fn automatic_size(
    connection: &Connection,
    compactions: &[(SessionPlace, RowId)],
) -> Result<Option<u64>, StoreError> {
    let mut loader = Loader::new(connection);
    for (_, part) in compactions.iter().rev().take(MAX_COMPACTIONS) {
        let loaded = loader.part_if_readable_with(*part, Extent::WithoutResult)?;
        if let Some(Body::Compaction(compaction)) = loaded.map(|loaded| loaded.part.body)
            && compaction.trigger.as_deref() == Some("auto")
            && compaction.tokens_before.is_some()
        {
            return Ok(compaction.tokens_before);
        }
    }
    Ok(None)
}
