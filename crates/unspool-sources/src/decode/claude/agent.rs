//! Claude Code in the agent table.

use crate::agents::{Agent, HookForm, HookSetup, ProcessFiles, TraceValue, TraceVariable};
use crate::discover::{LogLocation, SearchDepth, ends};
use crate::read::agent_meta;

pub const AGENT: Agent = Agent {
    recorded: Some(("1.0.100", "2.1.325")),
    // Logs of sub-agents are next to the sessions (2.0.30) or in `<session>/subagents` (since
    // 2.1.20), each with a metadata file. `history.jsonl` holds typed prompts and is one level up.
    logs: Some(LogLocation {
        variable: "CLAUDE_CONFIG_DIR",
        home: ".claude",
        folders: &["projects"],
        others: &[],
        depth: SearchDepth::Recursive,
        is_log: |path| ends(path, ".jsonl") || agent_meta::is_agent_meta(path),
        in_projects: None,
    }),
    files: &[agent_meta::FILE],
    hooks: Some(HookSetup {
        file: "settings.json",
        form: HookForm::Settings { second: 1 },
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "SubagentStart",
            "SubagentStop",
            "Stop",
            "StopFailure",
            "SessionEnd",
        ],
        answer_event: Some("PermissionRequest"),
        adapt_events: &["SessionStart", "SubagentStart"],
        payload_field: Some("hook_event_name"),
        after_install: None,
    }),
    resume: Some("claude --resume"),
    process_files: Some(("sessions", ProcessFiles::Entries)),
    is_prompt_history: |fields| fields.has("display") && fields.has("pastedContents"),
    prompts: Some("in logs of 2.1.325, and not in those of 2.1.197"),
    trace_variables: &[TraceVariable {
        name: "OTEL_LOG_RAW_API_BODIES",
        value: TraceValue::FolderAfter("file:"),
    }],
    ..Agent::new(
        super::NAME,
        "Claude Code",
        &[super::LOG, super::STREAM, super::HOOKS, super::BODIES, crate::decode::acp::CLAUDE],
    )
};
