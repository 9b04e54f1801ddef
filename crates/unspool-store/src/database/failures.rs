//! The slowest calls and the repeated failures, for the statistics. Both name single calls to open.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::sql::{Connection, params_from_iter};
use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::part::{Body, ToolState};
use unspool_model::tool_time::ToolTime;
use unspool_view::finding::error_line;
use unspool_view::present::card_summary;
use unspool_view::present::format::first_line;

use super::load::Loader;
use super::stats::{Conditions, conditions};
use crate::pack::Extent;
use crate::rows::RowId;
use crate::stats::{CallLocation, RepeatedFailure, SlowCall, StatsRequest};
use crate::store::StoreError;

/// The length of each list.
pub(super) const MAX_LISTED: usize = 10;
/// A failure with this many occurrences is listed.
pub(super) const MIN_REPEATS: u64 = 3;
/// Error lines, summaries and titles are cut to this many characters.
pub(super) const MAX_LINE_CHARS: usize = 200;

/// The calls that took longest. Of equally long ones the lower id counts: the order of rows depends
/// on the order in which files were read.
#[derive(Default)]
pub struct Slowest(BinaryHeap<Reverse<SlowEntry>>);

/// How long the tool ran, the part's id and row, and how long it waited.
type SlowEntry = (u64, Reverse<String>, RowId, ToolTime);

impl Slowest {
    pub fn take(&mut self, time: ToolTime, id: &str, part: RowId) {
        let took = time.ran_ms;
        let is_shorter = |Reverse((least, Reverse(other), ..)): &Reverse<SlowEntry>| {
            took < *least || took == *least && id >= other.as_str()
        };
        if self.0.len() == MAX_LISTED && self.0.peek().is_some_and(is_shorter) {
            return;
        }
        self.0.push(Reverse((took, Reverse(id.to_owned()), part, time)));
        if self.0.len() > MAX_LISTED {
            self.0.pop();
        }
    }

    pub fn entries(self, connection: &Connection) -> Result<Vec<SlowCall>, StoreError> {
        let calls = self.0.into_sorted_vec().into_iter();
        let mut loader = Loader::new(connection);
        let mut entries = Vec::new();
        for Reverse((duration_ms, _, part, time)) in calls {
            let Some((tool, place)) = place(connection, part)? else { continue };
            let loaded = loader.part_if_readable_with(part, Extent::WithoutResult)?;
            let what = loaded.map(|loaded| summary(&loaded.part.body)).unwrap_or_default();
            let ToolTime { waited_ms, may_include_waiting, .. } = time;
            entries.push(SlowCall {
                tool,
                what,
                duration_ms,
                waited_ms,
                may_include_waiting,
                place,
            });
        }
        Ok(entries)
    }
}

/// The one-line summary of a call, as on its card.
fn summary(body: &Body) -> String {
    first_line(&card_summary(body).unwrap_or_default(), MAX_LINE_CHARS)
}

/// The tool of a call, and where it is.
pub(super) fn place(
    connection: &Connection,
    part: RowId,
) -> Result<Option<(String, CallLocation)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(part.tool, ''), session.id, part.id, turn.number,
             coalesce(session.name, session.title, session.prompt),
             coalesce(part.started, part.ended, turn.started)
         FROM part JOIN turn ON turn.row = part.turn JOIN session ON session.row = turn.session
         WHERE part.row = ?1",
    )?;
    let mut rows = statement.query([part])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let title: Option<String> = row.get(4)?;
    let place = CallLocation {
        session: row.get(1)?,
        part: row.get(2)?,
        turn: row.get(3)?,
        title: title.map(|title| first_line(&title, MAX_LINE_CHARS)),
        at: row.get(5)?,
    };
    Ok(Some((row.get(0)?, place)))
}

/// Failures of one tool with the same first error line.
#[derive(Default)]
struct FailureGroup {
    count: u64,
    sessions: FxHashSet<RowId>,
    newest: Option<(Option<i64>, RowId)>,
}

pub fn failures(
    connection: &Connection,
    request: &StatsRequest,
) -> Result<Vec<RepeatedFailure>, StoreError> {
    let Conditions { session, turn, values } = conditions(request);
    // Uses the index `part_tool` on (tool, state): few of the calls failed.
    let sql = format!(
        "SELECT part.row, part.tool, turn.session, coalesce(part.ended, part.started)
         FROM part JOIN turn ON turn.row = part.turn JOIN session ON session.row = turn.session
         WHERE part.tool IS NOT NULL AND part.state = '{}' AND part.kind = 'tool'
             AND part.role = 'assistant' AND NOT part.hidden{session}{turn}
         ORDER BY part.row",
        ToolState::Failed.name()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut loader = Loader::new(connection);
    let mut groups: FxHashMap<(String, String), FailureGroup> = FxHashMap::default();
    while let Some(row) = rows.next()? {
        let part: RowId = row.get(0)?;
        let Some(loaded) = loader.part_if_readable_with(part, Extent::WithoutResult)? else {
            continue;
        };
        let Body::Tool(tool) = &loaded.part.body else { continue };
        let Some(error) = tool.output.as_deref().and_then(error_line) else { continue };
        let failures = groups.entry((row.get(1)?, error)).or_default();
        failures.count += 1;
        failures.sessions.insert(row.get(2)?);
        failures.newest = failures.newest.max(Some((row.get(3)?, part)));
    }
    let mut repeated: Vec<_> =
        groups.into_iter().filter(|(_, group)| group.count >= MIN_REPEATS).collect();
    repeated.sort_by(|((tool, error), one), ((other_tool, other_error), other)| {
        other.count.cmp(&one.count).then_with(|| (tool, error).cmp(&(other_tool, other_error)))
    });
    repeated.truncate(MAX_LISTED);
    let mut entries = Vec::new();
    for ((tool, error), failures) in repeated {
        let Some((_, newest)) = failures.newest else { continue };
        let Some((_, last)) = place(connection, newest)? else { continue };
        let (count, sessions) = (failures.count, failures.sessions.len() as u64);
        entries.push(RepeatedFailure { tool, error, count, sessions, last });
    }
    Ok(entries)
}
