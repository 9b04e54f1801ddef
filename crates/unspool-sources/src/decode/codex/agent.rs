//! Codex in the agent table.

use crate::agents::{Agent, HookForm, HookSetup, TraceValue, TraceVariable};
use crate::discover::{LogLocation, SearchDepth, ends};

pub const AGENT: Agent = Agent {
    recorded: Some(("0.166.0", "0.166.0")),
    // Old rollouts may be compressed.
    logs: Some(LogLocation {
        variable: "CODEX_HOME",
        home: ".codex",
        folders: &["sessions", "archived_sessions"],
        others: &[],
        depth: SearchDepth::Recursive,
        is_log: |path| ends(path, ".jsonl") || ends(path, ".jsonl.zst"),
        in_projects: None,
    }),
    hooks: Some(HookSetup {
        file: "hooks.json",
        form: HookForm::Settings { second: 1 },
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PermissionRequest",
            "PostToolUse",
            "SubagentStart",
            "SubagentStop",
            "Stop",
        ],
        answer_event: None,
        adapt_events: &["SessionStart"],
        payload_field: None,
        after_install: Some(
            "Codex runs the hooks only after you allow them: start `codex` and confirm. Until then \
             `codex exec` silently skips them",
        ),
    }),
    resume: Some("codex resume"),
    prompts: Some("in its rollouts"),
    trace_variables: &[TraceVariable {
        name: "CODEX_ROLLOUT_TRACE_ROOT",
        value: TraceValue::Folder,
    }],
    ..Agent::new(
        super::NAME,
        "Codex",
        &[
            super::HOOKS,
            super::LOG,
            super::EXEC,
            super::SERVER,
            super::TRACE,
            crate::decode::acp::CODEX,
        ],
    )
};
