//! The table of agents of the lower crates: a row for each agent whose sessions differ from the
//! default. What reads an agent's files is in its folder in `unspool-sources`.

use super::{AgentTraits, CallIds, CallTimes, LogDetail, ModelInput, Provider, StepNames};
use crate::prompt::knowledge::{OTHERS, PromptGrade, PromptKnowledge, conversation, part};

pub(crate) struct Row {
    /// Its name in the archive.
    pub name: &'static str,
    pub traits: AgentTraits,
    pub prompts: PromptKnowledge,
}

pub(crate) fn of(agent: &str) -> Option<&'static Row> {
    AGENTS.iter().find(|row| row.name == agent)
}

const fn row(name: &'static str, traits: AgentTraits, prompts: PromptKnowledge) -> Row {
    Row { name, traits, prompts }
}

const OWN_IDS: AgentTraits = AgentTraits {
    provider: None,
    step_names: StepNames::OwnIds,
    model_input: ModelInput::Output,
    call_ids: CallIds::Own,
    log_detail: LogDetail::Complete,
    call_times: CallTimes::OfTool,
};

const fn losing(loss: &'static str) -> AgentTraits {
    AgentTraits { log_detail: LogDetail::Partial(loss), ..OWN_IDS }
}

const OPENCODE: AgentTraits = AgentTraits {
    call_ids: CallIds::WithMessage,
    call_times: CallTimes::WithPermission,
    ..OWN_IDS
};

pub(crate) static AGENTS: &[Row] = &[
    row(
        "claude-code",
        AgentTraits {
            provider: Some(Provider::Anthropic),
            step_names: StepNames::ResponseIds,
            ..OWN_IDS
        },
        PromptKnowledge {
            grade: PromptGrade::Whole,
            since: Some("2.1.325"),
            known: "each request, sub-agents and failed attempts included",
            missing: "the billing header of the system prompt; calls for titles and compactions",
            next: "start it with `unspool run -- claude`, which makes it write down its requests",
        },
    ),
    row(
        "codex",
        AgentTraits { provider: Some(Provider::OpenAi), ..OWN_IDS },
        PromptKnowledge {
            grade: PromptGrade::Whole,
            since: Some("0.166"),
            known: "each call, as the items of the rollout in their order",
            missing: "tools and exact instructions of models that do not get them as items",
            next: "start it with `unspool run -- codex`, which makes it write down its requests",
        },
    ),
    row(
        "opencode",
        OPENCODE,
        part(
            "what OpenCode added to the user's words, replies, calls and results",
            "the system prompt, instruction files and tool schemas",
        ),
    ),
    row(
        "kilo",
        OPENCODE,
        part(
            "what Kilo added to the user's words, replies, calls and results",
            "the system prompt, instruction files and tool schemas",
        ),
    ),
    row(
        "copilot",
        OWN_IDS,
        PromptKnowledge {
            next: "start it with `unspool run -- copilot`, which makes it write down its \
                   instructions, tools and what is new in each call",
            ..part(
                "the system prompt, what the program and hooks added to the user's words, \
                 replies, calls and results",
                "tool schemas",
            )
        },
    ),
    row(
        "gemini",
        AgentTraits { provider: Some(Provider::Google), ..OWN_IDS },
        part(
            "the session context, what hooks added, mentioned files, the user's words, replies, \
             calls and results",
            "the system prompt and tool schemas",
        ),
    ),
    row(
        "qwen",
        // Version 0.24.4 takes the time from when a call is validated, which is before it asks.
        AgentTraits {
            call_times: CallTimes::WithPermission,
            ..losing("text between the calls of a reply stands before them")
        },
        part(
            "what hooks added, mentioned files, the user's words, replies, calls and results",
            "the system prompt, the startup context and tool schemas",
        ),
    ),
    row(
        "pi",
        OWN_IDS,
        part(
            "the system prompt (since 0.87), skills, mentioned files, the user's words, replies, \
             calls and results",
            "tool schemas",
        ),
    ),
    row(
        "cline",
        losing("no redacted reasoning, and no place of the provider's tools"),
        part(
            "the system prompt, the user's words, replies, calls and results",
            "tool schemas and details of the environment",
        ),
    ),
    row(
        "droid",
        OWN_IDS,
        part(
            "reminders, the user's words, replies, calls and results",
            "the system prompt and tool schemas",
        ),
    ),
    row(
        "continue",
        losing(
            "no reasoning, no order within a reply, no exit codes, no tokens of a reply that was \
             cut, one time",
        ),
        conversation("the system prompt, instruction files and tool schemas"),
    ),
    row(
        "mini-swe-agent",
        OWN_IDS,
        part("the system prompt and every message of the trajectory", "tool schemas"),
    ),
    row(
        "aider",
        losing("no output of commands, and no times but those of prompts"),
        conversation("the system prompt, the repository map and the files that were sent"),
    ),
    row(
        "atif",
        // Our own exports have both in `extra`.
        AgentTraits {
            call_ids: CallIds::WithMessage,
            ..losing("no order within a reply, and no states of calls")
        },
        OTHERS,
    ),
    row("ai-sdk", AgentTraits { model_input: ModelInput::Result, ..OWN_IDS }, OTHERS),
    row("rows", OWN_IDS, OTHERS),
];
