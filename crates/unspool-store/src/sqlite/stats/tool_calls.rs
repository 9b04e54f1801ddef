//! The second pass: parts. Counts and durations of tool calls and reasoning.

use rusqlite::{Connection, params_from_iter};
use rustc_hash::FxHashMap;
use unspool_model::part::ToolState;

use super::{Conditions, conditions};
use crate::sqlite::failures::Slowest;
use crate::stats::{DurationFigures, StatsRequest, ToolFigures, Totals, share};
use crate::store::StoreError;

/// The calls of one tool so far.
#[derive(Default)]
struct ToolCalls {
    figures: ToolFigures,
    milliseconds: Vec<u32>,
    total_ms: u64,
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
    let sql = format!(
        "SELECT part.tool, part.state, coalesce(part.duration, part.ended - part.started),
             part.row, part.id
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
            slowest.take(took, row.get_ref(4)?.as_str()?, row.get(3)?);
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
