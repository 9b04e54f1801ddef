//! What can be known of the prompts of an agent, for the command, the pages, the terminal application
//! and `doctor`. Each agent's row of the table has it.

use serde::Serialize;

use crate::agent::table;

/// How much of a prompt an agent's own files have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptGrade {
    /// Each call, but for what is named.
    Whole,
    /// The conversation and some of what the agent adds to it; not which call was sent what.
    Part,
    /// The conversation alone.
    Conversation,
}

/// What is known of an agent's prompts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PromptKnowledge {
    pub grade: PromptGrade,
    /// The first recorded version of which this is so; older ones have the conversation alone.
    pub since: Option<&'static str>,
    pub known: &'static str,
    pub missing: &'static str,
    /// How to get the rest.
    pub next: &'static str,
}

const CONVERSATION: &str = "the user's words, replies, calls and results";
const NOTHING_MORE: &str =
    "this agent has no switch that writes down its requests and that Unspool reads";

pub(crate) const fn part(known: &'static str, missing: &'static str) -> PromptKnowledge {
    let (grade, since, next) = (PromptGrade::Part, None, NOTHING_MORE);
    PromptKnowledge { grade, since, known, missing, next }
}

pub(crate) const fn conversation(missing: &'static str) -> PromptKnowledge {
    let (grade, since, next) = (PromptGrade::Conversation, None, NOTHING_MORE);
    PromptKnowledge { grade, since, known: CONVERSATION, missing, next }
}

pub(crate) const OTHERS: PromptKnowledge = conversation("all that the model was sent beside it");

impl PromptKnowledge {
    pub fn of(agent: &str) -> PromptKnowledge {
        table::of(agent).map_or(OTHERS, |row| row.prompts)
    }

    /// The agents of which more is known than of any program.
    pub fn agents() -> impl Iterator<Item = &'static str> {
        table::AGENTS.iter().filter(|row| row.prompts != OTHERS).map(|row| row.name)
    }

    /// The same for one version of the agent.
    pub fn of_version(agent: &str, version: &str) -> PromptKnowledge {
        let knowledge = PromptKnowledge::of(agent);
        match knowledge.since {
            Some(since) if numbers(version) < numbers(since) => PromptKnowledge {
                grade: PromptGrade::Conversation,
                known: CONVERSATION,
                missing: "the system prompt, what the program added, and tool schemas",
                ..knowledge
            },
            Some(_) | None => knowledge,
        }
    }

    /// What a session says that has no prompts of single calls, in sentences for people: what is
    /// known, what is not, and what to do next.
    pub fn sentences(&self) -> [String; 3] {
        let PromptKnowledge { known, missing, next, .. } = self;
        let known = match self.grade {
            PromptGrade::Whole => {
                "Nothing is known about the prompts of this session: its agent did not write them \
                 down in that version, or an earlier build of Unspool has read it \
                 (`unspool db rebuild --prompts` reads it again)."
                    .to_owned()
            }
            PromptGrade::Part => format!(
                "The prompts of this session are known in part: {known}. Which call was sent what \
                 is not in the log."
            ),
            PromptGrade::Conversation => format!(
                "Nothing is known about the prompts of this session but the conversation: {known}."
            ),
        };
        let missing = format!("Not in the log: {missing}.");
        let next = match self.grade {
            PromptGrade::Whole => format!("To get the next ones: {next}."),
            PromptGrade::Part if *next != NOTHING_MORE => format!(
                "What is known stands in the transcript (`unspool show SESSION`). To get more of the \
                 next ones: {next}."
            ),
            PromptGrade::Part | PromptGrade::Conversation => format!(
                "What is known stands in the transcript (`unspool show SESSION`); the rest cannot \
                 be had: {next}."
            ),
        };
        [known, missing, next]
    }
}

/// The numeric components of a version.
fn numbers(version: &str) -> Vec<u64> {
    let digits = |piece: &str| piece.chars().take_while(char::is_ascii_digit).collect::<String>();
    version.split('.').map(|piece| digits(piece).parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_before_the_first_with_prompts_has_the_conversation_alone() {
        let of = |agent, version| PromptKnowledge::of_version(agent, version).grade;
        assert_eq!(of("claude-code", "2.1.325"), PromptGrade::Whole);
        assert_eq!(of("claude-code", "2.1.197"), PromptGrade::Conversation);
        assert_eq!(of("codex", "0.166.0"), PromptGrade::Whole);
        assert_eq!(of("gemini", "0.61.0"), PromptGrade::Part);
        assert_eq!(of("nobody", "1"), PromptGrade::Conversation);
    }

    #[test]
    fn a_gap_is_named_with_the_next_step() {
        for agent in PromptKnowledge::agents() {
            let knowledge = PromptKnowledge::of(agent);
            let text = knowledge.sentences().join("\n");
            assert!(text.contains(knowledge.missing) && text.contains(knowledge.next), "{text}");
        }
    }
}
