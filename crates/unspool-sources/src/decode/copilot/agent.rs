//! GitHub Copilot CLI in the agent table.

use crate::agents::{Agent, HookForm, HookSetup, ProcessFiles};
use crate::discover::{LogLocation, SearchDepth};

pub const AGENT: Agent = Agent {
    recorded: Some(("1.0.102", "1.0.102")),
    logs: Some(LogLocation {
        variable: "COPILOT_HOME",
        home: ".copilot",
        folders: &["session-state"],
        others: &[],
        depth: SearchDepth::Recursive,
        is_log: |path| path.file_name().is_some_and(|name| name == "events.jsonl"),
        in_projects: None,
    }),
    hooks: Some(HookSetup {
        file: "hooks/unspool.json",
        form: HookForm::OwnFile,
        events: &[
            "sessionStart",
            "userPromptSubmitted",
            "preToolUse",
            "permissionRequest",
            "postToolUse",
            "postToolUseFailure",
            "errorOccurred",
            "subagentStart",
            "subagentStop",
            "agentStop",
            "sessionEnd",
        ],
        answer_event: None,
        adapt_events: &["sessionStart"],
        payload_field: Some("sessionId"),
        after_install: None,
    }),
    resume: Some("copilot --resume"),
    process_files: Some(("session-state", ProcessFiles::SessionLocks)),
    ..Agent::new(
        super::NAME,
        "GitHub Copilot CLI",
        &[super::LOG, super::STREAM, super::HOOKS, crate::decode::acp::COPILOT],
    )
};
