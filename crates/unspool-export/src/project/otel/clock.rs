//! The start and end of spans. Sources record some times; a span needs both.

use jiff::{SignedDuration, Timestamp};
use unspool_model::part::{Body, Part};
use unspool_model::session::Turn;

use crate::project::calls::start_time;

/// Nanoseconds since 1970. None before 1970, which the protocol cannot express.
pub fn nanos(at: Timestamp) -> Option<u64> {
    u64::try_from(at.as_nanosecond()).ok()
}

/// A time range, and whether it is estimated.
#[derive(Clone, Copy)]
pub struct TimeRange {
    pub start: u64,
    pub end: u64,
    pub estimated: bool,
}

impl TimeRange {
    /// The recorded times, with `fallback` where one is missing.
    fn of(start: Option<Timestamp>, end: Option<Timestamp>, fallback: u64) -> TimeRange {
        let (start, end) = (start.and_then(nanos), end.and_then(nanos));
        let from = start.or(end.map(|end| end.min(fallback))).unwrap_or(fallback);
        let to = end.unwrap_or(from);
        TimeRange {
            start: from,
            end: to.max(from),
            estimated: start.is_none() || end.is_none() || to < from,
        }
    }

    pub fn of_turn(turn: &Turn, fallback: u64) -> TimeRange {
        let first = turn.parts.iter().filter_map(start_time).min();
        let last = turn.parts.iter().filter_map(|part| part.ended.or(part.started)).max();
        // A turn spans all of its parts.
        let start = [turn.started, first].into_iter().flatten().min();
        let end = [turn.ended, last].into_iter().flatten().max();
        let observed =
            (turn.started, turn.ended) == (start, end) && start.is_some() && end.is_some();
        let range = TimeRange::of(start, end, fallback);
        TimeRange { estimated: range.estimated || !observed, ..range }
    }

    /// A model call: from the first to the last model output.
    pub fn of_call(parts: &[&Part], fallback: u64) -> TimeRange {
        // The model wrote a tool call by its start; the rest is the tool's own time.
        let written = |part: &&&Part| match &part.body {
            Body::Tool(_) => part.started,
            Body::Text(_) | Body::Reasoning(_) | Body::File(_) | Body::Source(_) => {
                part.ended.or(part.started)
            }
            Body::Agent(_)
            | Body::Interjection(_)
            | Body::TaskList(_)
            | Body::SkillLoad(_)
            | Body::McpSnapshot(_)
            | Body::ContextInfo(_)
            | Body::Compaction(_)
            | Body::Patch(_)
            | Body::Notice(_)
            | Body::Error(_)
            | Body::Data(_) => None,
        };
        let spoken = || parts.iter().filter(|part| written(part).is_some());
        let start = spoken().filter_map(|part| part.started).min();
        TimeRange::of(start, spoken().filter_map(|part| written(&part)).max(), fallback)
    }

    pub fn of_tool(part: &Part, duration_ms: Option<u64>, fallback: u64) -> TimeRange {
        let duration = duration_ms.and_then(|ms| i64::try_from(ms).ok());
        let duration = duration.map(SignedDuration::from_millis);
        // A recorded duration gives the missing time exactly.
        let start = part.started.or_else(|| part.ended?.checked_sub(duration?).ok());
        let end = part.ended.or_else(|| part.started?.checked_add(duration?).ok());
        TimeRange::of(start, end, fallback)
    }
}
