//! How long a tool ran. The time between a call and its result may also contain a person who
//! thought about a permission or a question, and that is no time of the tool.

use crate::part::ToolState;
use crate::tools::AsksUser;

/// How long a call took.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ToolTime {
    pub ran_ms: u64,
    /// How long the call waited before it ran: for permission, a hook or another call. `None` if
    /// the agent does not report how long the tool ran.
    pub waited_ms: Option<u64>,
    /// `ran_ms` may include waiting for permission.
    pub may_include_waiting: bool,
}

impl ToolTime {
    /// `reported_ms` is what the agent says the tool took, `elapsed_ms` the time between call and
    /// result. `None` if that is not known, or the call did not end, was denied, or asks a person.
    pub fn of(
        asks: AsksUser,
        state: ToolState,
        reported_ms: Option<u64>,
        elapsed_ms: Option<u64>,
    ) -> Option<ToolTime> {
        match state {
            ToolState::Pending | ToolState::Running | ToolState::Denied => return None,
            ToolState::Completed | ToolState::Failed | ToolState::Interrupted => {}
        }
        if asks == AsksUser::Always {
            return None;
        }
        let Some(ran_ms) = reported_ms else {
            let may_include_waiting = asks == AsksUser::Usually;
            // Some agents write a call and its result in one record, so both have one time.
            return elapsed_ms.filter(|elapsed| *elapsed > 0).map(|ran_ms| ToolTime {
                ran_ms,
                waited_ms: None,
                may_include_waiting,
            });
        };
        let waited_ms = elapsed_ms.map(|elapsed| elapsed.saturating_sub(ran_ms));
        Some(ToolTime { ran_ms, waited_ms, may_include_waiting: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_person_is_no_time_of_a_tool() {
        let shell = AsksUser::of("Bash");
        let time = |asks, state, reported, elapsed| {
            let time = ToolTime::of(asks, state, reported, elapsed)?;
            Some((time.ran_ms, time.waited_ms, time.may_include_waiting))
        };
        let completed = ToolState::Completed;
        // Figures of a recorded session: allowed after 18 seconds.
        let allowed = time(shell, completed, Some(344), Some(18_229));
        assert_eq!(allowed, Some((344, Some(17_885), false)));
        assert_eq!(time(shell, completed, None, Some(18_229)), Some((18_229, None, true)));
        assert_eq!(time(shell, ToolState::Denied, Some(5), Some(9000)), None);
        assert_eq!(time(shell, ToolState::Running, None, Some(9000)), None);
        assert_eq!(time(AsksUser::of("AskUserQuestion"), completed, Some(9000), None), None);
        assert_eq!(time(AsksUser::of("exit_plan_mode"), completed, None, Some(9000)), None);
        let read = AsksUser::of("Read");
        assert_eq!(time(read, completed, None, Some(20)), Some((20, None, false)));
        assert_eq!(time(read, completed, Some(20), Some(10)), Some((20, Some(0), false)));
        assert_eq!(time(read, completed, None, None), None);
        assert_eq!(time(read, completed, None, Some(0)), None, "one record has both");
        assert_eq!(time(read, completed, Some(0), Some(0)), Some((0, Some(0), false)));
        assert_eq!(AsksUser::of("mcp__jira__create"), AsksUser::Usually);
    }
}
