//! Computes the statistics in two passes: sessions with their turns and model calls, then parts.
//! Grouping is done here and not in SQL: one pass fills all groups, and absurd numbers in a log
//! cannot overflow a sum. Both passes use existing indexes. Memory: the groups, and four bytes for
//! each tool call.

mod groups;
mod session_costs;
mod tool_calls;
mod usage_totals;

use crate::sql::{Connection, OptionalExtension, Value};

use self::groups::Groups;
use self::session_costs::SessionCosts;
use self::tool_calls::parts;
use self::usage_totals::usage_totals;
use super::error_paths::error_paths;
use super::failures::{Slowest, failures};
use crate::stats::{Stats, StatsRequest, Totals, share};
use crate::store::StoreError;

/// The start of a turn, or the best available substitute.
const TURN_TIME: &str = "coalesce(turn.started, turn.first, turn.ended, session.started)";

pub fn stats(connection: &Connection, request: &StatsRequest) -> Result<Stats, StoreError> {
    // A tag that no session has would only make the passes slower.
    let without_tag = match &request.without_tag {
        Some(tag) if has_tag(connection, tag)? => Some(tag.clone()),
        Some(_) | None => None,
    };
    let request = &StatsRequest { without_tag, ..request.clone() };
    let mut totals = Totals::default();
    let mut groups = Groups::default();
    let mut costs = SessionCosts::load(connection)?;
    usage_totals(connection, request, &mut totals, &mut groups, &mut costs)?;
    let mut slowest = Slowest::default();
    let tools = parts(connection, request, &mut totals, &mut slowest)?;
    totals.reasoning_share = share(totals.reasoning_parts, totals.parts);
    Ok(Stats {
        totals,
        tools,
        by_day: groups.day.into_list_by_name(),
        by_week: groups.week.into_list_by_name(),
        by_month: groups.month.into_list_by_name(),
        by_hour: groups.hours.into_list(),
        by_model: groups.model.into_list(),
        by_agent: groups.agent.into_list(),
        by_project: groups.project.into_list(),
        most_expensive: costs.most_expensive(connection)?,
        slowest: slowest.entries(connection)?,
        failures: failures(connection, request)?,
        error_paths: error_paths(connection, request)?,
    })
}

fn has_tag(connection: &Connection, tag: &str) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM tag WHERE name = ?1 LIMIT 1")?;
    Ok(statement.query_row([tag], |row| row.get::<_, i64>(0)).optional()?.is_some())
}

/// Conditions on sessions and on the times of turns, with their values.
pub(super) struct Conditions {
    pub session: String,
    pub turn: String,
    pub values: Vec<Value>,
}

pub(super) fn conditions(request: &StatsRequest) -> Conditions {
    let mut values: Vec<Value> = Vec::new();
    let mut condition = |value: Option<Value>, sql: &dyn Fn(usize) -> String| match value {
        Some(value) => {
            values.push(value);
            format!(" AND {}", sql(values.len()))
        }
        None => String::new(),
    };
    let (agent, project) = (request.agent.clone(), request.project.clone());
    let folder = request.folder.as_deref().map(|folder| folder.trim_end_matches('/').to_owned());
    let session = [
        condition(agent.map(Value::from), &|at| format!("session.agent = ?{at}")),
        condition(project.map(Value::from), &|at| format!("instr(session.project, ?{at}) > 0")),
        condition(folder.map(Value::from), &|at| {
            format!(
                "(session.project = ?{at} \
                  OR substr(session.project, 1, length(?{at}) + 1) = ?{at} || '/')"
            )
        }),
        condition(request.without_tag.clone().map(Value::from), &|at| {
            format!(
                "session.row NOT IN (WITH RECURSIVE left_out (row, id) AS (
                     SELECT tagged.row, tagged.id FROM tag
                     JOIN session AS tagged ON tagged.row = tag.session WHERE tag.name = ?{at}
                     UNION
                     SELECT child.row, child.id FROM left_out
                     JOIN session AS child ON child.parent = left_out.id)
                 SELECT row FROM left_out)"
            )
        }),
    ];
    let turn = [
        condition(request.since.map(Value::from), &|at| format!("{TURN_TIME} >= ?{at}")),
        condition(request.until.map(Value::from), &|at| format!("{TURN_TIME} < ?{at}")),
    ];
    Conditions { session: session.concat(), turn: turn.concat(), values }
}
