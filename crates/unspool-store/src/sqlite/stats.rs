//! Computes the statistics in two passes: sessions with their turns and model calls, then parts.
//! Grouping is done here and not in SQL: one pass fills all groups, and absurd numbers in a log
//! cannot overflow a sum. Both passes use existing indexes. Memory: the groups, and four bytes for
//! each tool call.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::types::Value;
use rusqlite::{Connection, Row as SqlRow, params_from_iter};
use rustc_hash::FxHashMap;
use unspool_core::part::ToolState;
use unspool_core::price::{Price, Prices};
use unspool_core::session::Usage;

use super::failures::{Slowest, failures};
use super::load::usage;
use super::read::NOT_EMPTY;
use crate::rows::RowId;
use crate::stats::{
    DurationFigures, GroupFigures, Stats, StatsRequest, ToolFigures, Totals, UsageFigures, share,
};
use crate::store::StoreError;

/// The start of a turn, or the best available substitute.
const TURN_TIME: &str = "coalesce(turn.started, turn.first, turn.ended, session.started)";

pub fn stats(connection: &Connection, request: &StatsRequest) -> Result<Stats, StoreError> {
    let mut totals = Totals::default();
    let mut groups = Groups::default();
    usage_totals(connection, request, &mut totals, &mut groups)?;
    let mut slowest = Slowest::default();
    let tools = parts(connection, request, &mut totals, &mut slowest)?;
    totals.reasoning_share = share(totals.reasoning_parts, totals.parts);
    let mut by_day = groups.day.into_list();
    by_day.sort_by(|one, other| {
        (one.name.is_none(), &one.name).cmp(&(other.name.is_none(), &other.name))
    });
    Ok(Stats {
        totals,
        tools,
        by_day,
        by_model: groups.model.into_list(),
        by_agent: groups.agent.into_list(),
        by_project: groups.project.into_list(),
        slowest: slowest.entries(connection)?,
        failures: failures(connection, request)?,
    })
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
    let session = [
        condition(agent.map(Value::from), &|at| format!("session.agent = ?{at}")),
        condition(project.map(Value::from), &|at| format!("instr(session.project, ?{at}) > 0")),
    ];
    let turn = [
        condition(request.since.map(Value::from), &|at| format!("{TURN_TIME} >= ?{at}")),
        condition(request.until.map(Value::from), &|at| format!("{TURN_TIME} < ?{at}")),
    ];
    Conditions { session: session.concat(), turn: turn.concat(), values }
}

/// The groups of the first pass.
#[derive(Default)]
struct Groups {
    day: GroupIndex,
    model: GroupIndex,
    agent: GroupIndex,
    project: GroupIndex,
}

/// Groups by name. Rows come ordered by session and turn, so comparing with the last session and
/// turn of a group is enough to count distinct ones.
#[derive(Default)]
struct GroupIndex {
    list: Vec<GroupEntry>,
    by_name: FxHashMap<String, usize>,
    nameless: Option<usize>,
}

#[derive(Default)]
struct GroupEntry {
    group: GroupFigures,
    session: Option<RowId>,
    turn: Option<RowId>,
}

impl GroupIndex {
    fn of(&mut self, name: Option<&str>) -> &mut GroupEntry {
        let existing = match name {
            Some(name) => self.by_name.get(name).copied(),
            None => self.nameless,
        };
        let at = existing.unwrap_or_else(|| {
            let new = self.list.len();
            let name = name.map(str::to_owned);
            if let Some(name) = name.clone() {
                self.by_name.insert(name, new);
            } else {
                self.nameless = Some(new);
            }
            self.list.push(GroupEntry {
                group: GroupFigures { name, ..GroupFigures::default() },
                ..GroupEntry::default()
            });
            new
        });
        &mut self.list[at]
    }

    /// Most tokens first.
    fn into_list(self) -> Vec<GroupFigures> {
        let mut list: Vec<GroupFigures> = self.list.into_iter().map(|seen| seen.group).collect();
        list.sort_by(|one, other| {
            let rank =
                |group: &GroupFigures| (group.usage.tokens.total(), group.turns, group.sessions);
            rank(other).cmp(&rank(one)).then_with(|| one.name.cmp(&other.name))
        });
        list
    }
}

impl GroupEntry {
    fn count(&mut self, session: RowId, turn: Option<RowId>, calls: &Calls) {
        if self.session.replace(session) != Some(session) {
            self.group.sessions += 1;
        }
        if turn.is_some() && self.turn != turn {
            self.turn = turn;
            self.group.turns += 1;
        }
        self.group.steps += calls.count;
        calls.add_to(&mut self.group.usage);
    }
}

/// Model calls.
#[derive(Default)]
struct Calls {
    count: u64,
    used: Usage,
    estimated_usd: Option<f64>,
    unpriced: u64,
}

impl Calls {
    /// One call. A call without tokens needs no price.
    fn one(used: Usage, price: Option<Price>) -> Calls {
        let unpriced = u64::from(price.is_none() && used != Usage::default());
        Calls { count: 1, used, estimated_usd: price.map(|price| price.of(&used)), unpriced }
    }

    fn add(&mut self, other: &Calls) {
        self.count += other.count;
        self.used.add(other.used);
        self.unpriced += other.unpriced;
        if let Some(cost) = other.estimated_usd {
            self.estimated_usd = Some(self.estimated_usd.unwrap_or(0.0) + cost);
        }
    }

    fn add_to(&self, usage_totals: &mut UsageFigures) {
        usage_totals.tokens.add(self.used);
        usage_totals.unpriced_steps += self.unpriced;
        if let Some(cost) = self.estimated_usd {
            usage_totals.estimated_cost_usd =
                Some(usage_totals.estimated_cost_usd.unwrap_or(0.0) + cost);
        }
    }
}

/// A cache of price lookups: there are thousands of calls of each model.
struct PriceCache<'a> {
    prices: &'a Prices,
    existing: FxHashMap<String, Option<Price>>,
}

impl PriceCache<'_> {
    fn of(&mut self, model: &str) -> Option<Price> {
        if let Some(price) = self.existing.get(model) {
            return *price;
        }
        let price = self.prices.of(model);
        self.existing.insert(model.to_owned(), price);
        price
    }
}

/// Sessions with their turns and model calls: everything but the parts.
fn usage_totals(
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

/// The calls of one tool so far.
#[derive(Default)]
struct ToolCalls {
    figures: ToolFigures,
    milliseconds: Vec<u32>,
    total_ms: u64,
}

/// Tool calls and reasoning.
fn parts(
    connection: &Connection,
    request: &StatsRequest,
    totals: &mut Totals,
    slowest: &mut Slowest,
) -> Result<Vec<ToolFigures>, StoreError> {
    let Conditions { session, turn, values } = conditions(request);
    // Without filters a table scan of `part` is faster; with filters, go through the turns.
    let from = if request.is_narrow() {
        "session CROSS JOIN turn ON turn.session = session.row
         CROSS JOIN part ON part.turn = turn.row"
    } else {
        "part"
    };
    let sql = format!(
        "SELECT part.tool, part.state, coalesce(part.duration, part.ended - part.started),
             part.row
         FROM {from}
         WHERE part.kind IN ('tool', 'reasoning') AND part.role = 'assistant'
             AND NOT part.hidden{session}{turn}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut calls: Vec<ToolCalls> = Vec::new();
    let mut by_name: FxHashMap<String, usize> = FxHashMap::default();
    while let Some(row) = rows.next()? {
        // A clock that was set back makes the difference negative.
        let took = row.get::<_, Option<i64>>(2)?.and_then(|took| u64::try_from(took).ok());
        // Only tool calls have a state.
        let Some(state) = row.get_ref(1)?.as_str_or_null()? else {
            totals.reasoning_parts += 1;
            totals.reasoning_ms = totals.reasoning_ms.saturating_add(took.unwrap_or_default());
            continue;
        };
        let name = row.get_ref(0)?.as_str_or_null()?.unwrap_or_default();
        let at = by_name.get(name).copied().unwrap_or_else(|| {
            by_name.insert(name.to_owned(), calls.len());
            let figures = ToolFigures { name: name.to_owned(), ..ToolFigures::default() };
            calls.push(ToolCalls { figures, ..ToolCalls::default() });
            calls.len() - 1
        });
        if calls[at].count(state, took)
            && let Some(took) = took
        {
            slowest.take(took, row.get(3)?);
        }
    }
    let mut tools: Vec<ToolFigures> = calls.into_iter().map(ToolCalls::finish).collect();
    tools.sort_by(|one, other| other.calls.cmp(&one.calls).then_with(|| one.name.cmp(&other.name)));
    Ok(tools)
}

impl ToolCalls {
    /// Counts one call. Returns true if it has ended.
    fn count(&mut self, state: &str, took: Option<u64>) -> bool {
        let figures = &mut self.figures;
        figures.calls += 1;
        let counted = [
            (ToolState::Completed, &mut figures.completed),
            (ToolState::Failed, &mut figures.failed),
            (ToolState::Denied, &mut figures.denied),
            (ToolState::Interrupted, &mut figures.interrupted),
        ];
        match counted.into_iter().find(|(existing, _)| existing.name() == state) {
            Some((_, count)) => *count += 1,
            None => {
                figures.running += 1;
                return false;
            }
        }
        if let Some(took) = took {
            self.milliseconds.push(u32::try_from(took).unwrap_or(u32::MAX));
            self.total_ms = self.total_ms.saturating_add(took);
        }
        true
    }

    fn finish(mut self) -> ToolFigures {
        let figures = &self.figures;
        ToolFigures {
            error_rate: share(figures.failed, figures.calls - figures.running),
            duration: DurationFigures::of(&mut self.milliseconds, self.total_ms),
            ..self.figures
        }
    }
}
