//! The second pass: parts. Counts and durations of tool calls and reasoning.

use crate::sql::{Connection, params_from_iter};
use rustc_hash::FxHashMap;
use unspool_model::agent::{AgentTraits, CallTimes};
use unspool_model::part::ToolState;
use unspool_model::tool_time::ToolTime;
use unspool_model::tools::AsksUser;

use super::{Conditions, conditions};
use crate::database::failures::Slowest;
use crate::stats::{DurationFigures, StatsRequest, ToolFigures, Totals, share};
use crate::store::StoreError;

/// The calls of one tool so far.
struct ToolCalls {
    figures: ToolFigures,
    asks: AsksUser,
    milliseconds: Vec<u32>,
    total_ms: u64,
    with_waiting: u64,
}

/// Tool calls and reasoning.
pub(super) fn parts(
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
    // What a reported duration is depends on the agent. Most archives have none to look up.
    let agent = match reports_with_permission(connection)? {
        true => {
            "CASE WHEN part.duration IS NOT NULL THEN
                 (SELECT of_call.agent FROM turn AS call_turn
                  JOIN session AS of_call ON of_call.row = call_turn.session
                  WHERE call_turn.row = part.turn) END"
        }
        false => "NULL",
    };
    let sql = format!(
        "SELECT part.tool, part.state, part.duration, part.ended - part.started,
             part.row, part.id, {agent}
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
        let time = |at: usize| -> Result<Option<u64>, StoreError> {
            Ok(row.get::<_, Option<i64>>(at)?.and_then(|took| u64::try_from(took).ok()))
        };
        let (reported, elapsed) = (time(2)?, time(3)?);
        // Only tool calls have a state.
        let Some(state) = row.get_ref(1)?.as_str_or_null()? else {
            totals.reasoning_parts += 1;
            let took = reported.or(elapsed).unwrap_or_default();
            totals.reasoning_ms = totals.reasoning_ms.saturating_add(took);
            continue;
        };
        let name = row.get_ref(0)?.as_str_or_null()?.unwrap_or_default();
        let at = by_name.get(name).copied().unwrap_or_else(|| {
            by_name.insert(name.to_owned(), calls.len());
            calls.push(ToolCalls::of(name));
            calls.len() - 1
        });
        let agent = row.get_ref(6)?.as_str_or_null()?;
        let times = agent.map(AgentTraits::of).unwrap_or_default().call_times;
        if let Some(time) = calls[at].count(times, state, reported, elapsed) {
            slowest.take(time, row.get_ref(5)?.as_str()?, row.get(4)?);
        }
    }
    let mut tools: Vec<ToolFigures> = calls.into_iter().map(ToolCalls::finish).collect();
    tools.sort_by(|one, other| other.calls.cmp(&one.calls).then_with(|| one.name.cmp(&other.name)));
    Ok(tools)
}

/// Whether the archive has an agent whose durations include permissions.
fn reports_with_permission(connection: &Connection) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT DISTINCT agent FROM session")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let traits = AgentTraits::of(row.get_ref(0)?.as_str_or_null()?.unwrap_or_default());
        if traits.call_times == CallTimes::WithPermission {
            return Ok(true);
        }
    }
    Ok(false)
}

impl ToolCalls {
    fn of(name: &str) -> ToolCalls {
        ToolCalls {
            figures: ToolFigures { name: name.to_owned(), ..ToolFigures::default() },
            asks: AsksUser::of(name),
            milliseconds: Vec::new(),
            total_ms: 0,
            with_waiting: 0,
        }
    }

    /// Counts one call. Returns how long it took, if that is a time of the tool.
    fn count(
        &mut self,
        times: CallTimes,
        state: &str,
        reported_ms: Option<u64>,
        elapsed_ms: Option<u64>,
    ) -> Option<ToolTime> {
        let figures = &mut self.figures;
        figures.calls += 1;
        let state = ToolState::of_name(state).unwrap_or(ToolState::Running);
        let count = match state {
            ToolState::Completed => &mut figures.completed,
            ToolState::Failed => &mut figures.failed,
            ToolState::Denied => &mut figures.denied,
            ToolState::Interrupted => &mut figures.interrupted,
            ToolState::Pending | ToolState::Running => &mut figures.running,
        };
        *count += 1;
        let time = ToolTime::of(times, self.asks, state, reported_ms, elapsed_ms)?;
        self.milliseconds.push(u32::try_from(time.ran_ms).unwrap_or(u32::MAX));
        self.total_ms = self.total_ms.saturating_add(time.ran_ms);
        self.with_waiting += u64::from(time.may_include_waiting);
        Some(time)
    }

    fn finish(mut self) -> ToolFigures {
        let figures = &self.figures;
        ToolFigures {
            error_rate: share(figures.failed, figures.calls - figures.running),
            duration: DurationFigures::of(&mut self.milliseconds, self.total_ms, self.with_waiting),
            ..self.figures
        }
    }
}
