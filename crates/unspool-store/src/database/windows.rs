//! Partial reads of long sessions: outlines of all parts from columns alone, and single parts by
//! place.

use std::sync::Arc;

use crate::sql::{Connection, OptionalExtension};
use rustc_hash::FxHashSet;
use unspool_model::id::{PartId, StepId, TurnId};
use unspool_model::part::{Kind, Part, Place, ToolState};
use unspool_model::session::Turn;
use unspool_model::skeleton::{PartSkeleton, Skeleton};
use unspool_model::tools::plan_tool_names;

use super::derived_columns::IS_SHOWN;
use super::load::{Loader, id};
use crate::pack::PackError;
use crate::rows::RowId;
use crate::store::{StoreError, TurnPrompt, TurnSize};

pub fn sizes(connection: &Connection, session: RowId) -> Result<Vec<TurnSize>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, number, parts FROM turn WHERE session = ?1 AND {IS_SHOWN}
         ORDER BY number, row"
    ))?;
    let mut rows = statement.query([session])?;
    let mut sizes = Vec::new();
    while let Some(row) = rows.next()? {
        sizes.push(TurnSize {
            id: TurnId(id(row.get_ref(0)?.as_str()?)?),
            number: row.get(1)?,
            parts: row.get::<_, i64>(2)?.max(0) as u64,
        });
    }
    Ok(sizes)
}

pub fn prompts(connection: &Connection, session: RowId) -> Result<Vec<TurnPrompt>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, number, errors, (SELECT substr(text, 1, 400) FROM part
             WHERE part.turn = turn.row AND place < 0 AND text IS NOT NULL
             AND kind <> 'context-info' ORDER BY kind <> 'text', place LIMIT 1)
         FROM turn WHERE session = ?1 AND {IS_SHOWN} ORDER BY number, row"
    ))?;
    let mut rows = statement.query([session])?;
    let mut prompts = Vec::new();
    while let Some(row) = rows.next()? {
        prompts.push(TurnPrompt {
            turn: TurnId(id(row.get_ref(0)?.as_str()?)?),
            number: row.get(1)?,
            errors: row.get::<_, i64>(2)?.max(0) as u64,
            said: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        });
    }
    Ok(prompts)
}

pub fn tools(connection: &Connection, session: RowId) -> Result<Vec<(String, u64)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT part.tool, count(*) FROM turn JOIN part ON part.turn = turn.row
         WHERE turn.session = ?1 AND turn.tools > 0 AND part.tool IS NOT NULL AND NOT part.hidden
         GROUP BY part.tool ORDER BY count(*) DESC, part.tool LIMIT 100",
    )?;
    let rows =
        statement.query_map([session], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Read at most this many planning calls, the latest: they give the current plan.
const MAX_PLAN_CALLS: usize = 400;

pub fn plans(connection: &Connection, session: RowId) -> Result<Vec<Part>, StoreError> {
    let names: Vec<String> = plan_tool_names().map(|name| format!("'{name}'")).collect();
    let names = names.join(", ");
    let sql = format!(
        "SELECT part.row FROM turn JOIN part ON part.turn = turn.row
         WHERE turn.session = ?1 AND turn.tools > 0 AND part.tool IN ({names}) AND NOT part.hidden
         ORDER BY turn.number DESC, part.place DESC LIMIT {MAX_PLAN_CALLS}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows: Vec<RowId> =
        statement.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut loader = Loader::new(connection);
    let mut parts = Vec::with_capacity(rows.len());
    for row in rows.into_iter().rev() {
        parts.extend(loader.part_if_readable(row)?.map(|loaded| loaded.part));
    }
    Ok(parts)
}

pub fn skeleton(
    connection: &Connection,
    session: RowId,
    number: u32,
) -> Result<Option<Skeleton>, StoreError> {
    let Some(row) = find(connection, session, number)? else { return Ok(None) };
    let turn = load_head(connection, row)?;
    let mut statement = connection.prepare_cached(
        "SELECT id, place, kind, step, tool, state, started, ended FROM part
         WHERE turn = ?1 AND role = 'assistant' AND NOT hidden ORDER BY place",
    )?;
    let mut rows = statement.query([row])?;
    let mut parts = Vec::new();
    // Calls of one tool share one allocation of its name.
    let mut names: FxHashSet<Arc<str>> = FxHashSet::default();
    while let Some(row) = rows.next()? {
        let tool = match row.get_ref(4)?.as_str_or_null()? {
            None => None,
            Some(name) => {
                let held = names.get(name).cloned();
                let name = held.unwrap_or_else(|| Arc::from(name));
                names.insert(name.clone());
                Some(name)
            }
        };
        let step = row.get_ref(3)?.as_str_or_null()?.map(id).transpose()?;
        parts.push(PartSkeleton {
            id: PartId(id(row.get_ref(0)?.as_str()?)?),
            place: Place(row.get(1)?),
            kind: Kind::of_name(row.get_ref(2)?.as_str()?).unwrap_or(Kind::Data),
            step: step.map(StepId),
            tool,
            state: row.get_ref(5)?.as_str_or_null()?.and_then(ToolState::of_name),
            started_ms: row.get(6)?,
            ended_ms: row.get(7)?,
        });
    }
    Ok(Some(Skeleton { turn, parts }))
}

pub fn head(
    connection: &Connection,
    session: RowId,
    number: u32,
) -> Result<Option<Turn>, StoreError> {
    let found = find(connection, session, number)?;
    found.map(|row| load_head(connection, row)).transpose()
}

fn load_head(connection: &Connection, row: RowId) -> Result<Turn, StoreError> {
    let head: String = connection
        .prepare_cached("SELECT head FROM turn WHERE row = ?1")?
        .query_row([row], |row| row.get(0))?;
    let mut turn: Turn = serde_json::from_str(&head).map_err(PackError::from)?;
    let mut loader = Loader::new(connection);
    turn.steps = loader.steps(row)?;
    turn.user = loader.user(row)?;
    Ok(turn)
}

fn find(connection: &Connection, session: RowId, number: u32) -> Result<Option<RowId>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT row FROM turn WHERE session = ?1 AND number = ?2 ORDER BY row LIMIT 1",
    )?;
    Ok(statement.query_row([session, RowId::from(number)], |row| row.get(0)).optional()?)
}

pub fn parts(
    connection: &Connection,
    session: RowId,
    number: u32,
    places: &[Place],
) -> Result<Vec<Part>, StoreError> {
    let Some(turn) = find(connection, session, number)? else { return Ok(Vec::new()) };
    let mut statement = connection
        .prepare_cached("SELECT row FROM part WHERE turn = ?1 AND place = ?2 AND NOT hidden")?;
    let mut loader = Loader::new(connection);
    let mut parts = Vec::with_capacity(places.len());
    for place in places {
        let row: Option<RowId> =
            statement.query_row([turn, place.0], |row| row.get(0)).optional()?;
        if let Some(loaded) = row.map(|row| loader.part(row)).transpose()?.flatten() {
            parts.push(loaded.part);
        }
    }
    Ok(parts)
}

pub fn locate(
    connection: &Connection,
    session: RowId,
    turn: Option<u32>,
    part: PartId,
) -> Result<Option<(u32, Place)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT turn.number, part.place FROM turn JOIN part ON part.turn = turn.row
         WHERE turn.session = ?1 AND part.id = ?2 AND NOT part.hidden
             AND (turn.number = ?3 OR ?3 IS NULL) LIMIT 1",
    )?;
    let found = statement
        .query_row((session, part.to_string(), turn), |row| Ok((row.get(0)?, Place(row.get(1)?))))
        .optional()?;
    Ok(found)
}
