//! Groups of calls that a model made at once: computed for display from the skeletons of a turn's
//! parts, like the reasoning blocks of `segment`, and never stored. A group is a range of the turn's
//! parts, so nothing moves. A group may begin inside a reasoning block and continue after it.
//!
//! Calls were made at once if one model call made them and their times overlap, or if no source has
//! times: a model reads no result before it has made all its calls. Where a log does not tell, calls
//! are not grouped: calls that are made inside another call, and calls that the provider runs while
//! the model still writes.

use std::ops::Range;

use unspool_model::id::StepId;
use unspool_model::part::{Kind, ToolState};
use unspool_model::skeleton::PartSkeleton;
use unspool_model::tools::{is_run_by_provider, makes_other_calls};

use crate::present::format;

/// Calls that a model made at once, before it read a result. There are at least two. An agent may
/// still run them one after another: not every log has the times of each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallGroup {
    /// From the first call to the last one with its agents. Notices, task lists and other parts in
    /// between are inside.
    pub range: Range<usize>,
    pub calls: usize,
    /// Calls that have ended, whatever their result.
    pub done: usize,
    pub failed: usize,
    /// From the first start to the last end, once all calls have ended. `None` if the times of a
    /// call are not known.
    pub elapsed_ms: Option<u64>,
}

impl CallGroup {
    /// `3 calls at once · 1.2 s · 1 failed`, or `· 2 of 3 done` while a call runs.
    pub fn title(&self) -> String {
        let mut title = format!("{} at once", format::count(self.calls, "call"));
        if self.done < self.calls {
            title.push_str(&format!(" · {} of {} done", self.done, self.calls));
        } else if let Some(elapsed) = self.elapsed_ms {
            title.push_str(&format!(" · {}", format::duration(elapsed)));
        }
        if self.failed > 0 {
            title.push_str(&format!(" · {} failed", self.failed));
        }
        title
    }
}

/// The groups of a turn, in order. Takes time in proportion to the number of parts.
pub fn call_groups(part_skeletons: &[PartSkeleton]) -> Vec<CallGroup> {
    let mut found = Vec::new();
    let mut open: Option<OpenGroup> = None;
    // The calls that follow in this step may have been made inside one of its calls.
    let mut nesting_step: Option<StepId> = None;
    for (at, part_skeleton) in part_skeletons.iter().enumerate() {
        match role(part_skeleton.kind) {
            GroupRole::Call => {
                let name = part_skeleton.tool.as_deref().unwrap_or_default();
                if makes_other_calls(name) {
                    nesting_step = part_skeleton.step;
                }
                let step = part_skeleton.step.filter(|step| Some(*step) != nesting_step);
                let step = step.filter(|_| !is_run_by_provider(name));
                let times = Times::of(part_skeleton);
                if let Some(group) = &mut open
                    && Some(group.step) == step
                    && group.times.overlap(&times)
                {
                    group.add(at, &times, part_skeleton);
                } else {
                    found.extend(open.take().and_then(OpenGroup::close));
                    open = step.map(|step| OpenGroup::new(step, at, times, part_skeleton));
                }
            }
            GroupRole::Agents => {
                // The agents of a call directly follow it.
                if let Some(group) = open.as_mut().filter(|group| group.end == at) {
                    group.end = at + 1;
                }
            }
            GroupRole::Between => {}
            GroupRole::End => found.extend(open.take().and_then(OpenGroup::close)),
        }
    }
    found.extend(open.and_then(OpenGroup::close));
    found
}

/// How a part affects a group.
enum GroupRole {
    Call,
    Agents,
    /// May stand between two calls.
    Between,
    End,
}

fn role(kind: Kind) -> GroupRole {
    match kind {
        Kind::Tool => GroupRole::Call,
        Kind::Agent => GroupRole::Agents,
        Kind::TaskList
        | Kind::SkillLoad
        | Kind::McpSnapshot
        | Kind::ContextInfo
        | Kind::File
        | Kind::Source
        | Kind::Patch
        | Kind::Notice
        | Kind::Data => GroupRole::Between,
        Kind::Text | Kind::Reasoning | Kind::Interjection | Kind::Compaction | Kind::Error => {
            GroupRole::End
        }
    }
}

/// When calls ran, in milliseconds.
enum Times {
    Unknown,
    Known {
        first_start: i64,
        /// `i64::MAX` while one runs.
        last_end: i64,
    },
}

impl Times {
    fn of(part_skeleton: &PartSkeleton) -> Times {
        let Some(start) = part_skeleton.started_ms else { return Times::Unknown };
        let is_going = part_skeleton.state.is_some_and(|state| !state.is_terminal());
        let end = part_skeleton.ended_ms.unwrap_or(if is_going { i64::MAX } else { start });
        Times::Known { first_start: start, last_end: end }
    }

    /// True if a further call ran beside these. Logs with one time for all calls of a message give
    /// equal times, and a message without any times is made before its results are read.
    fn overlap(&self, other: &Times) -> bool {
        match (self, other) {
            (
                Times::Known { first_start, last_end },
                Times::Known { first_start: start, last_end: end },
            ) => start <= last_end && first_start <= end,
            (Times::Unknown, Times::Unknown) => true,
            (Times::Known { .. }, Times::Unknown) | (Times::Unknown, Times::Known { .. }) => false,
        }
    }

    /// The times of both, which are both known or both unknown.
    fn join(&mut self, other: &Times) {
        if let Times::Known { first_start, last_end } = self
            && let Times::Known { first_start: start, last_end: end } = other
        {
            *first_start = (*first_start).min(*start);
            *last_end = (*last_end).max(*end);
        }
    }

    fn elapsed_ms(&self) -> Option<u64> {
        let Times::Known { first_start, last_end } = self else { return None };
        // A log with one time for a whole message does not have the times of its calls.
        let elapsed = u64::try_from(last_end.checked_sub(*first_start)?).ok()?;
        (elapsed > 0 && *last_end != i64::MAX).then_some(elapsed)
    }
}

/// A group that may still get calls.
struct OpenGroup {
    step: StepId,
    start: usize,
    end: usize,
    times: Times,
    calls: usize,
    done: usize,
    failed: usize,
    /// Calls with a start and an end.
    timed: usize,
}

impl OpenGroup {
    fn new(step: StepId, at: usize, times: Times, call: &PartSkeleton) -> OpenGroup {
        let (start, end) = (at, at + 1);
        let mut group =
            OpenGroup { step, start, end, times, calls: 0, done: 0, failed: 0, timed: 0 };
        group.count(call);
        group
    }

    fn add(&mut self, at: usize, times: &Times, call: &PartSkeleton) {
        self.end = at + 1;
        self.times.join(times);
        self.count(call);
    }

    fn count(&mut self, call: &PartSkeleton) {
        self.calls += 1;
        self.done += usize::from(call.state.is_some_and(ToolState::is_terminal));
        self.failed += usize::from(call.state == Some(ToolState::Failed));
        self.timed += usize::from(call.started_ms.is_some() && call.ended_ms.is_some());
    }

    /// The group, if it has more than one call.
    fn close(self) -> Option<CallGroup> {
        let OpenGroup { start, end, times, calls, done, failed, timed, .. } = self;
        let elapsed_ms = times.elapsed_ms().filter(|_| done == calls && timed == calls);
        let group = CallGroup { range: start..end, calls, done, failed, elapsed_ms };
        (group.calls > 1).then_some(group)
    }
}

#[cfg(test)]
#[path = "call_groups_tests.rs"]
mod tests;
