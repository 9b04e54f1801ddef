//! The first pass: sessions with their turns and model calls.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::{Connection, Row as SqlRow, params_from_iter};
use rustc_hash::FxHashMap;

use super::groups::{Calls, Groups, PriceCache};
use super::{Conditions, TURN_TIME, conditions};
use crate::rows::RowId;
use crate::sqlite::load::usage;
use crate::sqlite::read::NOT_EMPTY;
use crate::stats::{StatsRequest, Totals};
use crate::store::StoreError;

/// Sessions with their turns and model calls: everything but the parts.
pub(super) fn usage_totals(
    connection: &Connection,
    request: &StatsRequest,
    totals: &mut Totals,
    groups: &mut Groups,
) -> Result<(), StoreError> {
    let Conditions { session, turn, values } = conditions(request);
    // In the order of the index `turn_session`.
    let sql = format!(
        "SELECT session.row, session.agent, session.project, session.sub_agent, session.cost_usd,
             session.started, session.turns, turn.row, {TURN_TIME}, turn.first,
             max(coalesce(turn.ended, turn.started, turn.last),
                 coalesce(turn.last, turn.ended, turn.started)),
             turn.parts, turn.tools, turn.errors, session.models
         FROM session LEFT JOIN turn ON turn.session = session.row{turn}
         WHERE 1{NOT_EMPTY}{session} ORDER BY session.row, turn.number, turn.row"
    );
    let mut turns = connection.prepare_cached(&sql)?;
    let mut steps = connection.prepare_cached(
        "SELECT model, input, output, cache_read, cache_write, reasoning, cache_write_1h
         FROM step WHERE turn = ?1",
    )?;
    let mut rows = turns.query(params_from_iter(values))?;
    let mut last = None;
    let mut prices = PriceCache { prices: &request.prices, existing: FxHashMap::default() };
    while let Some(row) = rows.next()? {
        let (session, turn): (RowId, Option<RowId>) = (row.get(0)?, row.get(7)?);
        let own_time: Option<i64> = row.get(5)?;
        // A session without turns is placed by its own start time.
        if turn.is_none() && !(row.get::<_, i64>(6)? == 0 && request.includes(own_time)) {
            continue;
        }
        let mut calls = Calls::default();
        if let Some(turn) = turn {
            let models = row.get_ref(14)?.as_str()?;
            let only = serde_json::from_str::<[String; 1]>(models).ok().map(|[only]| only);
            let mut rows = steps.query([turn])?;
            while let Some(row) = rows.next()? {
                let used = usage(row, 1)?;
                let model = row.get_ref(0)?.as_str_or_null()?;
                let price = model.or(only.as_deref()).and_then(|model| prices.of(model));
                let call = Calls::one(used, price);
                groups.model.of(model).count(session, Some(turn), &call);
                calls.add(&call);
            }
        }
        let day = day(row.get(8)?);
        let in_groups = [
            groups.day.of(day.as_deref()),
            groups.agent.of(row.get_ref(1)?.as_str_or_null()?),
            groups.project.of(row.get_ref(2)?.as_str_or_null()?),
        ]
        .map(|seen| {
            seen.count(session, turn, &calls);
            &mut seen.group.usage
        });
        totals.steps += calls.count;
        calls.add_to(&mut totals.usage);
        count_turn(row, turn, request, totals)?;
        if last.replace(session) == Some(session) {
            continue;
        }
        totals.sessions += 1;
        totals.sub_agents += u64::from(row.get::<_, bool>(3)?);
        if request.includes(own_time) {
            extend_period(totals, own_time, None);
        }
        // The cost is of the whole session: count it in the groups of its first turn.
        if let Some(cost) = row.get::<_, Option<f64>>(4)? {
            totals.sessions_with_cost += 1;
            totals.usage.add_cost(cost);
            in_groups.into_iter().for_each(|usage_totals| usage_totals.add_cost(cost));
        }
    }
    Ok(())
}

fn count_turn(
    row: &SqlRow<'_>,
    turn: Option<RowId>,
    request: &StatsRequest,
    totals: &mut Totals,
) -> Result<(), StoreError> {
    if turn.is_none() {
        return Ok(());
    }
    let count = |at: usize| row.get::<_, i64>(at).map(|count| count.max(0) as u64);
    totals.turns += 1;
    totals.parts += count(11)?;
    totals.tool_calls += count(12)?;
    totals.errors += count(13)?;
    extend_period(totals, row.get(8)?, row.get(10)?);
    // Sources may report a part that started before its turn.
    let first = row.get(9)?;
    if request.includes(first) {
        extend_period(totals, first, None);
    }
    Ok(())
}

/// Extends the period of the totals.
fn extend_period(totals: &mut Totals, first: Option<i64>, last: Option<i64>) {
    totals.first = [totals.first, first].into_iter().flatten().min();
    totals.last = totals.last.max(last).max(first);
}

fn day(milliseconds: Option<i64>) -> Option<String> {
    let at = Timestamp::from_millisecond(milliseconds?).ok()?;
    Some(at.to_zoned(TimeZone::UTC).date().to_string())
}
