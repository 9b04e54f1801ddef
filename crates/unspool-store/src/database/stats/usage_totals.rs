//! The first pass: sessions with their turns and model calls.

use crate::sql::{Connection, Row as SqlRow, params_from_iter};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rustc_hash::FxHashMap;

use super::groups::{Calls, Groups, PriceCache};
use super::session_costs::{SessionCost, SessionCosts};
use super::{Conditions, TURN_TIME, conditions};
use crate::database::derived_columns::IS_SHOWN;
use crate::database::load::usage;
use crate::database::read::NOT_EMPTY;
use crate::rows::RowId;
use crate::stats::{StatsRequest, Totals};
use crate::store::StoreError;

/// Sessions with their turns and model calls: everything but the parts.
pub(super) fn usage_totals(
    connection: &Connection,
    request: &StatsRequest,
    totals: &mut Totals,
    groups: &mut Groups,
    costs: &mut SessionCosts,
) -> Result<(), StoreError> {
    let Conditions { session, turn, values } = conditions(request);
    // In the order of the index `turn_session`.
    let sql = format!(
        "SELECT session.row, session.agent, session.project, session.sub_agent,
             session.started, session.turns, turn.row, {TURN_TIME}, turn.first,
             max(coalesce(turn.ended, turn.started, turn.last),
                 coalesce(turn.last, turn.ended, turn.started)),
             turn.parts, turn.tools, turn.errors, session.models, {IS_SHOWN}
         FROM session LEFT JOIN turn ON turn.session = session.row{turn}
         WHERE true{NOT_EMPTY}{session} ORDER BY session.row, turn.number, turn.row"
    );
    let mut turns = connection.prepare_cached(&sql)?;
    let mut steps = connection.prepare_cached(
        "SELECT model, input, output, cache_read, cache_write, reasoning, cache_write_1h
         FROM step WHERE turn = ?1",
    )?;
    let mut rows = turns.query(params_from_iter(values))?;
    let (mut last, mut periods) = (None, PeriodNames::default());
    let mut prices = PriceCache { prices: &request.prices, existing: FxHashMap::default() };
    while let Some(row) = rows.next()? {
        let (session, turn, own_time): (RowId, Option<RowId>, Option<i64>) =
            (row.get(0)?, row.get(6)?, row.get(4)?);
        // A session without turns is placed by its own start time.
        if turn.is_none() && !(row.get::<_, i64>(5)? == 0 && request.includes(own_time)) {
            continue;
        }
        let cost = costs.of(session);
        let mut calls = Calls::of_session(cost);
        let shown = turn.filter(|_| row.get(14).unwrap_or(true));
        if let Some(turn) = turn {
            let models = row.get_ref(13)?.as_str()?;
            let only = serde_json::from_str::<[String; 1]>(models).ok().map(|[only]| only);
            let mut rows = steps.query([turn])?;
            while let Some(row) = rows.next()? {
                let model = row.get_ref(0)?.as_str_or_null()?;
                let price = model.or(only.as_deref()).and_then(|model| prices.of(model));
                let call = Calls::one(usage(&row, 1)?, price);
                groups.model.of(model).count(session, shown, &call);
                calls.add(&call);
            }
        }
        let at: Option<i64> = row.get(7)?;
        if let (Some(at), Some(_)) = (at, turn) {
            groups.hours.count(at, shown.is_some(), &calls);
        }
        let names = periods.of(at);
        let name = |nth: usize| names.map(|names| names[nth].as_str());
        let in_groups = [
            groups.day.of(name(0)),
            groups.week.of(name(1)),
            groups.month.of(name(2)),
            groups.agent.of(row.get_ref(1)?.as_str_or_null()?),
            groups.project.of(row.get_ref(2)?.as_str_or_null()?),
        ]
        .map(|seen| {
            seen.count(session, shown, &calls);
            &mut seen.group.usage
        });
        totals.steps += calls.count;
        calls.add_to(&mut totals.usage);
        count_turn(&row, shown, request, totals)?;
        costs.count(session, shown, &calls);
        if last.replace(session) == Some(session) {
            continue;
        }
        count_session(totals, row.get(3)?, own_time.filter(|at| request.includes(Some(*at))));
        // The cost is of the whole session: count it in the groups of its first turn.
        totals.sessions_with_cost += u64::from(matches!(cost, SessionCost::Reported(_)));
        let in_totals = [&mut totals.usage, costs.usage(session)];
        in_groups.into_iter().chain(in_totals).for_each(|usage| cost.add_to(usage));
    }
    Ok(())
}

fn count_session(totals: &mut Totals, sub_agent: bool, started: Option<i64>) {
    totals.sessions += 1;
    totals.sub_agents += u64::from(sub_agent);
    extend_period(totals, started, None);
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
    totals.parts += count(10)?;
    totals.tool_calls += count(11)?;
    totals.errors += count(12)?;
    extend_period(totals, row.get(7)?, row.get(9)?);
    // Sources may report a part that started before its turn.
    let first = row.get(8)?;
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

/// The names of the days, weeks and months of turns. Many turns share a day.
#[derive(Default)]
struct PeriodNames(FxHashMap<i64, Option<[String; 3]>>);

const DAY_MS: i64 = 24 * 3_600_000;

impl PeriodNames {
    /// The day, the Monday of its week, and the month. None without a time.
    fn of(&mut self, milliseconds: Option<i64>) -> Option<&[String; 3]> {
        let day = milliseconds?.div_euclid(DAY_MS);
        let names = self.0.entry(day).or_insert_with(|| {
            let at = Timestamp::from_millisecond(day.saturating_mul(DAY_MS)).ok()?;
            let date = at.to_zoned(TimeZone::UTC).date();
            let back = i64::from(date.weekday().to_monday_zero_offset());
            let monday = date.checked_sub(back.days()).unwrap_or(date);
            Some([date.to_string(), monday.to_string(), date.strftime("%Y-%m").to_string()])
        });
        names.as_ref()
    }
}
