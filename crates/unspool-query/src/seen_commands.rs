//! Which commands were seen running. A command that ran was granted: when its process is gone and
//! its result is not written yet, its call does not wait for a person. Only a process that keeps
//! looking knows this; one that looks once does not.

use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use unspool_model::id::{PartId, SessionId};
use unspool_view::present::activity::CommandState;

/// A child of the agent that runs this long is its command. Hooks and status lines are shorter.
const GRANTED_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// More are forgotten, the oldest first.
const MAX_COMMANDS: usize = 1_000;

static COMMANDS: Mutex<Option<SeenCommands>> = Mutex::new(None);

/// What the list of processes says about a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessMatch {
    None,
    /// The agent has a child that may be the command.
    Child,
    /// A process has the words of the command.
    Command,
}

/// A command: its session, its part, and which question about it was the newest. A call that is asked
/// about again was not granted by the answer before.
pub type CommandKey = (SessionId, PartId, u64);

#[derive(Clone, Copy, Debug)]
struct Sighting {
    first: Timestamp,
    last: Timestamp,
    has_words: bool,
}

#[derive(Debug, Default)]
pub struct SeenCommands(FxHashMap<CommandKey, Sighting>);

impl SeenCommands {
    /// The state of a command, from what its processes are now and were at earlier looks.
    pub fn look(&mut self, key: CommandKey, found: ProcessMatch, now: Timestamp) -> CommandState {
        if found == ProcessMatch::None {
            let Some(seen) = self.0.get(&key) else { return CommandState::NotSeen };
            if seen.has_words || seen.last.duration_since(seen.first) >= GRANTED_AFTER {
                return CommandState::Ran { last_seen: seen.last };
            }
            self.0.remove(&key);
            return CommandState::NotSeen;
        }
        if self.0.len() >= MAX_COMMANDS && !self.0.contains_key(&key) {
            let oldest = self.0.iter().min_by_key(|(_, seen)| seen.last).map(|(key, _)| *key);
            oldest.map(|key| self.0.remove(&key));
        }
        let seen =
            self.0.entry(key).or_insert(Sighting { first: now, last: now, has_words: false });
        seen.last = seen.last.max(now);
        seen.has_words |= found == ProcessMatch::Command;
        CommandState::Running
    }
}

/// Looks with the memory of this process.
pub fn look(key: CommandKey, found: ProcessMatch, now: Timestamp) -> CommandState {
    let mut commands = COMMANDS.lock().unwrap_or_else(PoisonError::into_inner);
    commands.get_or_insert_default().look(key, found, now)
}

#[cfg(test)]
mod tests {
    use unspool_model::id::Id;

    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn key(question: u64) -> CommandKey {
        let id = Id::derive([b"s".as_slice()]);
        (SessionId(id), PartId(id), question)
    }

    #[test]
    fn a_command_that_ran_stays_granted() {
        let mut seen = SeenCommands::default();
        assert_eq!(seen.look(key(0), ProcessMatch::None, second(0)), CommandState::NotSeen);
        assert_eq!(seen.look(key(0), ProcessMatch::Command, second(1)), CommandState::Running);
        let ran = CommandState::Ran { last_seen: second(1) };
        assert_eq!(seen.look(key(0), ProcessMatch::None, second(2)), ran);
        assert_eq!(seen.look(key(0), ProcessMatch::None, second(900)), ran);
        // The next question about the same call is open.
        assert_eq!(seen.look(key(1), ProcessMatch::None, second(2)), CommandState::NotSeen);
    }

    #[test]
    fn a_short_child_of_the_agent_grants_nothing() {
        let mut seen = SeenCommands::default();
        for start in [0, 60] {
            assert_eq!(
                seen.look(key(0), ProcessMatch::Child, second(start)),
                CommandState::Running
            );
            seen.look(key(0), ProcessMatch::Child, second(start + 9));
            let after = seen.look(key(0), ProcessMatch::None, second(start + 10));
            assert_eq!(after, CommandState::NotSeen);
        }
        seen.look(key(0), ProcessMatch::Child, second(100));
        seen.look(key(0), ProcessMatch::Child, second(110));
        let after = seen.look(key(0), ProcessMatch::None, second(111));
        assert_eq!(after, CommandState::Ran { last_seen: second(110) });
    }

    #[test]
    fn the_oldest_commands_are_forgotten() {
        let mut seen = SeenCommands::default();
        for nth in 0..=MAX_COMMANDS {
            seen.look(key(nth as u64), ProcessMatch::Command, second(nth as i64));
        }
        assert_eq!(seen.0.len(), MAX_COMMANDS);
        assert_eq!(seen.look(key(0), ProcessMatch::None, second(5)), CommandState::NotSeen);
    }
}
