//! Error paths, for the statistics (R-002-42): which calls came before calls that failed, so that a
//! habit such as "edits without reading, then fails" shows as one row.

use std::collections::BTreeMap;

use crate::sql::{Connection, params, params_from_iter};
use rustc_hash::FxHashSet;
use unspool_model::part::ToolState;

use super::failures::{MAX_LISTED, MIN_REPEATS, place};
use super::stats::{Conditions, conditions};
use crate::rows::RowId;
use crate::stats::{ErrorPath, PathCall, StatsRequest};
use crate::store::StoreError;

/// The calls before a failure that its path has. With more of them hardly two paths are the same.
const MAX_CALLS_BEFORE: i64 = 2;

/// The failures that the same calls led to.
#[derive(Default)]
struct PathGroup {
    count: u64,
    sessions: FxHashSet<RowId>,
    newest: Option<(Option<i64>, RowId)>,
}

pub fn error_paths(
    connection: &Connection,
    request: &StatsRequest,
) -> Result<Vec<ErrorPath>, StoreError> {
    let Conditions { session, turn, values } = conditions(request);
    // Uses the index `part_tool` on (tool, state): few of the calls failed.
    let sql = format!(
        "SELECT part.row, part.turn, part.place, part.tool, turn.session,
             coalesce(part.ended, part.started)
         FROM part JOIN turn ON turn.row = part.turn JOIN session ON session.row = turn.session
         WHERE part.tool IS NOT NULL AND part.state = '{}' AND part.kind = 'tool'
             AND part.role = 'assistant' AND NOT part.hidden{session}{turn}",
        ToolState::Failed.name()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut groups: BTreeMap<Vec<PathCall>, PathGroup> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let mut calls = calls_before(connection, row.get(1)?, row.get(2)?)?;
        // The first call of a turn has nothing before it; `failures` counts it.
        if calls.is_empty() {
            continue;
        }
        calls.push(PathCall { tool: row.get(3)?, failed: true });
        let group = groups.entry(calls).or_default();
        group.count += 1;
        group.sessions.insert(row.get(4)?);
        group.newest = group.newest.max(Some((row.get(5)?, row.get(0)?)));
    }
    let mut repeated: Vec<_> =
        groups.into_iter().filter(|(_, group)| group.count >= MIN_REPEATS).collect();
    // Stable: paths of one count stay in alphabetical order.
    repeated.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
    repeated.truncate(MAX_LISTED);
    let mut paths = Vec::new();
    for (calls, group) in repeated {
        let Some((_, newest)) = group.newest else { continue };
        let Some((_, last)) = place(connection, newest)? else { continue };
        let sessions = group.sessions.len() as u64;
        paths.push(ErrorPath { calls, count: group.count, sessions, last });
    }
    Ok(paths)
}

/// The calls of a turn before a place, in their order.
fn calls_before(
    connection: &Connection,
    turn: RowId,
    place: i64,
) -> Result<Vec<PathCall>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT tool, state FROM part
         WHERE turn = ?1 AND place < ?2 AND kind = 'tool' AND tool IS NOT NULL
             AND role = 'assistant' AND NOT hidden
         ORDER BY place DESC LIMIT ?3",
    )?;
    let mut rows = statement.query(params![turn, place, MAX_CALLS_BEFORE])?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        let state: Option<String> = row.get(1)?;
        let failed = state.as_deref() == Some(ToolState::Failed.name());
        calls.push(PathCall { tool: row.get(0)?, failed });
    }
    calls.reverse();
    Ok(calls)
}
