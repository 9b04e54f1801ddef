//! How long a tool ran. The time between a call and its result may also contain a person who
//! thought about a permission or a question, and that is no time of the tool.

use crate::agent::CallTimes;
use crate::part::ToolState;
use crate::tools::AsksUser;

/// Calls that read a file or look for one take less. One that takes longer may have waited for the
/// permission that agents ask for outside of the project.
const LONG_FOR_READING_MS: u64 = 5_000;

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
    /// `reported_ms` is what the agent says the call took, `elapsed_ms` the time between call and
    /// result. `None` if that is not known, or the call did not end, was denied, or asks a person.
    pub fn of(
        times: CallTimes,
        asks: AsksUser,
        state: ToolState,
        reported_ms: Option<u64>,
        elapsed_ms: Option<u64>,
    ) -> Option<ToolTime> {
        let (reported_ms, elapsed_ms) = match times {
            CallTimes::OfTool => (reported_ms, elapsed_ms),
            CallTimes::WithPermission => (None, reported_ms.or(elapsed_ms)),
        };
        match state {
            ToolState::Pending | ToolState::Running | ToolState::Denied => return None,
            ToolState::Completed | ToolState::Failed | ToolState::Interrupted => {}
        }
        if asks == AsksUser::Always {
            return None;
        }
        let Some(ran_ms) = reported_ms else {
            // Some agents write a call and its result in one record, so both have one time.
            return elapsed_ms.filter(|elapsed| *elapsed > 0).map(|ran_ms| ToolTime {
                ran_ms,
                waited_ms: None,
                may_include_waiting: match asks {
                    AsksUser::Always | AsksUser::Usually => true,
                    AsksUser::Sometimes => ran_ms > LONG_FOR_READING_MS,
                    AsksUser::Rarely => false,
                },
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
            let time = ToolTime::of(CallTimes::OfTool, asks, state, reported, elapsed)?;
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
        // A file outside of the project: nobody reads a file for twenty seconds.
        assert_eq!(time(read, completed, None, Some(20_000)), Some((20_000, None, true)));
        let agent = AsksUser::of("Task");
        assert_eq!(time(agent, completed, None, Some(20_000)), Some((20_000, None, false)));
    }

    /// Figures of recorded sessions: OpenCode 1.18.33 and Qwen Code 0.24.4 take the time from the
    /// call on, so an edit that stood at its permission for seconds "took" them.
    #[test]
    fn a_reported_time_with_the_permission_in_it_is_marked() {
        let of = |agent: &str, tool: &str, reported, elapsed| {
            let times = crate::agent::AgentTraits::of(agent).call_times;
            let state = ToolState::Completed;
            let time = ToolTime::of(times, AsksUser::of(tool), state, reported, elapsed)?;
            Some((time.ran_ms, time.waited_ms, time.may_include_waiting))
        };
        for agent in ["opencode", "kilo", "qwen"] {
            assert_eq!(of(agent, "edit", Some(7_275), Some(7_300)), Some((7_275, None, true)));
            assert_eq!(of(agent, "read", Some(31), None), Some((31, None, false)), "{agent}");
            assert_eq!(of(agent, "read", Some(9_000), None), Some((9_000, None, true)));
        }
        assert_eq!(of("codex", "shell", Some(344), Some(9_000)), Some((344, Some(8_656), false)));
    }
}
