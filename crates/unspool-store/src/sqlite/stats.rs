//! Figures over the archive, in two passes: sessions with their turns and model calls, then the
//! parts. Groups are made here and not in SQL: one pass fills all of them, and nonsense in a log
//! cannot overflow a sum. Both passes go along indexes that are there for other reasons, and keep
//! no more than the groups themselves and four bytes for each tool call.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::types::Value;
use rusqlite::{Connection, Row as SqlRow, params_from_iter};
use rustc_hash::FxHashMap;
use unspool_core::part::ToolState;
use unspool_core::session::Usage;

use super::load::usage;
use crate::contract::StoreError;
use crate::rows::Row;
use crate::stats::{DurationFigures, Group, Stats, StatsRequest, ToolFigures, Totals, share};

/// When a turn started, or the next best that is known of it.
const TIME: &str = "coalesce(turn.started, turn.first, turn.ended, session.started)";

pub fn stats(connection: &mut Connection, request: &StatsRequest) -> Result<Stats, StoreError> {
    // One state of the archive for both passes, while another process may write.
    let transaction = connection.transaction()?;
    let mut totals = Totals::default();
    let mut groups = Groups::default();
    spent(&transaction, request, &mut totals, &mut groups)?;
    let tools = parts(&transaction, request, &mut totals)?;
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
    })
}

/// Conditions on sessions and on the times of turns, with their values.
struct Conditions {
    session: String,
    turn: String,
    values: Vec<Value>,
}

fn conditions(request: &StatsRequest) -> Conditions {
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
        condition(request.since.map(Value::from), &|at| format!("{TIME} >= ?{at}")),
        condition(request.until.map(Value::from), &|at| format!("{TIME} < ?{at}")),
    ];
    Conditions { session: session.concat(), turn: turn.concat(), values }
}

/// The groups of the first pass.
#[derive(Default)]
struct Groups {
    day: Grouped,
    model: Grouped,
    agent: Grouped,
    project: Grouped,
}

/// Groups by name. Sessions and turns come one after the other, so the last one that a group saw
/// says whether the next is another.
#[derive(Default)]
struct Grouped {
    list: Vec<Seen>,
    by_name: FxHashMap<String, usize>,
    nameless: Option<usize>,
}

#[derive(Default)]
struct Seen {
    group: Group,
    session: Option<Row>,
    turn: Option<Row>,
}

impl Grouped {
    fn at(&mut self, name: Option<&str>) -> usize {
        let known = match name {
            Some(name) => self.by_name.get(name).copied(),
            None => self.nameless,
        };
        known.unwrap_or_else(|| {
            let new = self.list.len();
            let name = name.map(str::to_owned);
            if let Some(name) = name.clone() {
                self.by_name.insert(name, new);
            } else {
                self.nameless = Some(new);
            }
            self.list.push(Seen { group: Group { name, ..Group::default() }, ..Seen::default() });
            new
        })
    }

    fn group(&mut self, at: usize) -> &mut Group {
        &mut self.list[at].group
    }

    fn count(&mut self, at: usize, session: Row, turn: Option<Row>) {
        let seen = &mut self.list[at];
        if seen.session.replace(session) != Some(session) {
            seen.group.sessions += 1;
        }
        if turn.is_some() && seen.turn != turn {
            seen.turn = turn;
            seen.group.turns += 1;
        }
    }

    fn spend(&mut self, at: usize, used: Usage) {
        let group = self.group(at);
        group.steps += 1;
        group.usage.tokens.add(used);
    }

    /// Most tokens first.
    fn into_list(self) -> Vec<Group> {
        let mut list: Vec<Group> = self.list.into_iter().map(|seen| seen.group).collect();
        list.sort_by(|one, other| {
            let rank = |group: &Group| (group.usage.tokens.total(), group.turns, group.sessions);
            rank(other).cmp(&rank(one)).then_with(|| one.name.cmp(&other.name))
        });
        list
    }
}

/// Where the row at hand counts.
#[derive(Default)]
struct Here {
    session: Option<Row>,
    turn: Option<Row>,
    day: usize,
    agent: usize,
    project: usize,
}

/// Sessions with their turns and model calls: everything but the tools.
fn spent(
    connection: &Connection,
    request: &StatsRequest,
    totals: &mut Totals,
    groups: &mut Groups,
) -> Result<(), StoreError> {
    let Conditions { session, turn, values } = conditions(request);
    // A session without turns counts by its own time; one that has turns, only at other times,
    // does not.
    let silent = match request.has_times() {
        true => format!(" AND (turn.row IS NOT NULL OR (session.turns = 0{turn}))"),
        false => String::new(),
    };
    let sql = format!(
        "SELECT session.row, turn.row, step.model, step.input, step.output, step.cache_read,
             step.cache_write, step.reasoning, session.agent, session.project, session.sub_agent,
             session.cost_usd, session.started, {TIME}, turn.first,
             max(coalesce(turn.ended, turn.started, turn.last),
                 coalesce(turn.last, turn.ended, turn.started)),
             turn.parts, turn.tools, turn.errors
         FROM session
         LEFT JOIN turn ON turn.session = session.row{turn}
         LEFT JOIN step ON step.turn = turn.row
         WHERE 1{session}{silent}
         ORDER BY session.row, turn.number, turn.row, step.number"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut here = Here::default();
    while let Some(row) = rows.next()? {
        let (session, turn): (Row, Option<Row>) = (row.get(0)?, row.get(1)?);
        let new_session = here.session != Some(session);
        if new_session {
            here.session = Some(session);
            here.agent = groups.agent.at(row.get_ref(8)?.as_str_or_null()?);
            here.project = groups.project.at(row.get_ref(9)?.as_str_or_null()?);
            totals.sessions += 1;
            totals.sub_agents += u64::from(row.get::<_, bool>(10)?);
            bounds(totals, request, row.get(12)?, None);
        }
        if new_session || here.turn != turn {
            here.turn = turn;
            here.day = groups.day.at(day(row.get(13)?).as_deref());
            groups.day.count(here.day, session, turn);
            groups.agent.count(here.agent, session, turn);
            groups.project.count(here.project, session, turn);
            count_turn(row, request, totals)?;
        }
        if new_session && let Some(cost) = row.get::<_, Option<f64>>(11)? {
            totals.sessions_with_cost += 1;
            totals.usage.add_cost(cost);
            groups.day.group(here.day).usage.add_cost(cost);
            groups.agent.group(here.agent).usage.add_cost(cost);
            groups.project.group(here.project).usage.add_cost(cost);
        }
        // No model call: the turn has none, or there is no turn.
        if row.get_ref(3)? == rusqlite::types::ValueRef::Null {
            continue;
        }
        let used = usage(row, 3)?;
        totals.steps += 1;
        totals.usage.tokens.add(used);
        let model = groups.model.at(row.get_ref(2)?.as_str_or_null()?);
        groups.model.count(model, session, turn);
        groups.model.spend(model, used);
        groups.day.spend(here.day, used);
        groups.agent.spend(here.agent, used);
        groups.project.spend(here.project, used);
    }
    Ok(())
}

fn count_turn(
    row: &SqlRow<'_>,
    request: &StatsRequest,
    totals: &mut Totals,
) -> Result<(), StoreError> {
    let count = |at: usize| {
        row.get::<_, Option<i64>>(at).map(|count| count.unwrap_or_default().max(0) as u64)
    };
    totals.turns += u64::from(row.get::<_, Option<Row>>(1)?.is_some());
    totals.parts += count(16)?;
    totals.tool_calls += count(17)?;
    totals.errors += count(18)?;
    bounds(totals, request, row.get(13)?, row.get(15)?);
    bounds(totals, request, row.get(14)?, None);
    Ok(())
}

/// Takes in when something began and ended. What counts may have begun before it is asked about.
fn bounds(totals: &mut Totals, request: &StatsRequest, first: Option<i64>, last: Option<i64>) {
    let first = first.filter(|first| request.since.is_none_or(|since| *first >= since));
    totals.first = [totals.first, first].into_iter().flatten().min();
    totals.last = totals.last.max(last).max(first);
}

fn day(milliseconds: Option<i64>) -> Option<String> {
    let at = Timestamp::from_millisecond(milliseconds?).ok()?;
    Some(at.to_zoned(TimeZone::UTC).date().to_string())
}

/// The calls of one tool so far.
#[derive(Default)]
struct Calls {
    figures: ToolFigures,
    milliseconds: Vec<u32>,
    total_ms: u64,
}

/// Tool calls and reasoning.
fn parts(
    connection: &Connection,
    request: &StatsRequest,
    totals: &mut Totals,
) -> Result<Vec<ToolFigures>, StoreError> {
    let Conditions { session, turn, values } = conditions(request);
    // Everything is read faster in the order of the rows; a selection, along its turns.
    let from = if request.is_narrow() {
        "session CROSS JOIN turn ON turn.session = session.row
         CROSS JOIN part ON part.turn = turn.row"
    } else {
        "part"
    };
    let sql = format!(
        "SELECT part.tool, part.state, coalesce(part.duration, part.ended - part.started)
         FROM {from}
         WHERE part.kind IN ('tool', 'reasoning') AND part.role = 'assistant'
             AND NOT part.hidden{session}{turn}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut calls: Vec<Calls> = Vec::new();
    let mut by_name: FxHashMap<String, usize> = FxHashMap::default();
    while let Some(row) = rows.next()? {
        // Clocks that were set back make nonsense of a difference.
        let took = row.get::<_, Option<i64>>(2)?.and_then(|took| u64::try_from(took).ok());
        // Only calls have a state.
        let Some(state) = row.get_ref(1)?.as_str_or_null()? else {
            totals.reasoning_parts += 1;
            totals.reasoning_ms = totals.reasoning_ms.saturating_add(took.unwrap_or_default());
            continue;
        };
        let name = row.get_ref(0)?.as_str_or_null()?.unwrap_or_default();
        let at = by_name.get(name).copied().unwrap_or_else(|| {
            by_name.insert(name.to_owned(), calls.len());
            let figures = ToolFigures { name: name.to_owned(), ..ToolFigures::default() };
            calls.push(Calls { figures, ..Calls::default() });
            calls.len() - 1
        });
        calls[at].count(state, took);
    }
    let mut tools: Vec<ToolFigures> = calls.into_iter().map(Calls::finish).collect();
    tools.sort_by(|one, other| other.calls.cmp(&one.calls).then_with(|| one.name.cmp(&other.name)));
    Ok(tools)
}

impl Calls {
    fn count(&mut self, state: &str, took: Option<u64>) {
        let figures = &mut self.figures;
        figures.calls += 1;
        let counted = [
            (ToolState::Completed, &mut figures.completed),
            (ToolState::Failed, &mut figures.failed),
            (ToolState::Denied, &mut figures.denied),
            (ToolState::Interrupted, &mut figures.interrupted),
        ];
        match counted.into_iter().find(|(known, _)| known.name() == state) {
            Some((_, count)) => *count += 1,
            None => {
                figures.running += 1;
                return;
            }
        }
        if let Some(took) = took {
            self.milliseconds.push(u32::try_from(took).unwrap_or(u32::MAX));
            self.total_ms = self.total_ms.saturating_add(took);
        }
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
