//! Qwen Code in the agent table.

use crate::agents::{Agent, HookForm, HookSetup, ProcessFiles};
use crate::discover::{LogLocation, SearchDepth, ends};
use crate::read::agent_meta;

pub const AGENT: Agent = Agent {
    recorded: Some(("0.24.4", "0.24.4")),
    // Archived sessions are in `chats/archive`, sub-agents in `subagents/<session>`, each with a
    // metadata file. While a fork is written its file ends in `.tmp`.
    logs: Some(LogLocation {
        variable: "QWEN_HOME",
        home: ".qwen",
        folders: &["projects"],
        others: &[("QWEN_RUNTIME_DIR", &["projects"])],
        depth: SearchDepth::Recursive,
        is_log: |path| {
            let in_logs = |piece| piece == "chats" || piece == "subagents";
            (ends(path, ".jsonl") || agent_meta::is_agent_meta(path)) && path.iter().any(in_logs)
        },
        in_projects: None,
    }),
    files: &[agent_meta::FILE],
    hooks: Some(HookSetup {
        file: "settings.json",
        form: HookForm::Settings { second: 1000 },
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "SubagentStop",
            "Stop",
            "SessionEnd",
        ],
        answer_event: None,
        adapt_events: &[],
        payload_field: None,
        after_install: None,
    }),
    resume: Some("qwen --resume"),
    process_files: Some(("projects", ProcessFiles::ChatRuntimes)),
    ..Agent::new(
        super::NAME,
        "Qwen Code",
        &[super::STREAM, super::LOG, super::HOOKS, crate::decode::acp::QWEN],
    )
};
