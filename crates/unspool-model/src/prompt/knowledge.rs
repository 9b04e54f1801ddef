//! What can be known of the prompts of each agent: the one place that says it, for the command, the
//! pages, the terminal application and `doctor`.

use serde::Serialize;

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
    #[serde(skip)]
    agent: &'static str,
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

const fn part(agent: &'static str, known: &'static str, missing: &'static str) -> PromptKnowledge {
    let (grade, since, next) = (PromptGrade::Part, None, NOTHING_MORE);
    PromptKnowledge { agent, grade, since, known, missing, next }
}

const fn conversation(agent: &'static str, missing: &'static str) -> PromptKnowledge {
    let (grade, since, next) = (PromptGrade::Conversation, None, NOTHING_MORE);
    PromptKnowledge { agent, grade, since, known: CONVERSATION, missing, next }
}

const KNOWLEDGE: &[PromptKnowledge] = &[
    PromptKnowledge {
        agent: "claude-code",
        grade: PromptGrade::Whole,
        since: Some("2.1.325"),
        known: "each request, sub-agents and failed attempts included",
        missing: "the billing header of the system prompt; calls for titles and compactions",
        next: "start it with `unspool run -- claude`, which makes it write down its requests",
    },
    PromptKnowledge {
        agent: "codex",
        grade: PromptGrade::Whole,
        since: Some("0.166"),
        known: "each call, as the items of the rollout in their order",
        missing: "tools and exact instructions of models that do not get them as items",
        next: "start it with `unspool run -- codex`, which makes it write down its requests",
    },
    PromptKnowledge {
        next: "start it with `unspool run -- copilot`, which makes it write down its instructions, \
               tools and what is new in each call",
        ..part(
            "copilot",
            "the system prompt, what the program and hooks added to the user's words, replies, \
             calls and results",
            "tool schemas",
        )
    },
    part(
        "gemini",
        "the session context, what hooks added, mentioned files, the user's words, replies, calls \
         and results",
        "the system prompt and tool schemas",
    ),
    part(
        "qwen",
        "what hooks added, mentioned files, the user's words, replies, calls and results",
        "the system prompt, the startup context and tool schemas",
    ),
    part(
        "opencode",
        "what OpenCode added to the user's words, replies, calls and results",
        "the system prompt, instruction files and tool schemas",
    ),
    part(
        "kilo",
        "what Kilo added to the user's words, replies, calls and results",
        "the system prompt, instruction files and tool schemas",
    ),
    part(
        "droid",
        "reminders, the user's words, replies, calls and results",
        "the system prompt and tool schemas",
    ),
    part(
        "pi",
        "the system prompt (since 0.87), skills, mentioned files, the user's words, replies, calls \
         and results",
        "tool schemas",
    ),
    part(
        "cline",
        "the system prompt, the user's words, replies, calls and results",
        "tool schemas and details of the environment",
    ),
    part("mini-swe-agent", "the system prompt and every message of the trajectory", "tool schemas"),
    conversation("continue", "the system prompt, instruction files and tool schemas"),
    conversation("aider", "the system prompt, the repository map and the files that were sent"),
];

const OTHERS: PromptKnowledge = conversation("", "all that the model was sent beside it");

impl PromptKnowledge {
    pub fn of(agent: &str) -> PromptKnowledge {
        let found = KNOWLEDGE.iter().find(|knowledge| knowledge.agent == agent);
        *found.unwrap_or(&OTHERS)
    }

    /// The agents that are listed.
    pub fn agents() -> impl Iterator<Item = &'static str> {
        KNOWLEDGE.iter().map(|knowledge| knowledge.agent)
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
