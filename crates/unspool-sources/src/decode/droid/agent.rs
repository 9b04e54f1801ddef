//! Factory Droid in the agent table.

use crate::agents::{Agent, HookForm, HookSetup};
use crate::discover::{LogLocation, SearchDepth, ends};

use super::settings_file;

pub const AGENT: Agent = Agent {
    recorded: Some(("0.215.0", "0.215.0")),
    // The variable names the home folder that contains `.factory`. Sub-agents and forks are files
    // beside the session, and each file has its settings beside it.
    logs: Some(LogLocation {
        variable: "FACTORY_HOME_OVERRIDE",
        home: "",
        folders: &[".factory/sessions"],
        others: &[],
        depth: SearchDepth::Recursive,
        is_log: |path| ends(path, ".jsonl") || settings_file::is_settings(path),
        in_projects: None,
    }),
    files: &[settings_file::FILE],
    hooks: Some(HookSetup {
        file: "settings.json",
        form: HookForm::Settings { second: 1 },
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "Notification",
            "Stop",
            "SessionEnd",
        ],
        answer_event: None,
        adapt_events: &[],
        payload_field: None,
        after_install: None,
    }),
    resume: Some("droid --resume"),
    ..Agent::new(
        super::NAME,
        "Factory Droid",
        &[super::LOG, super::STREAM, super::HOOKS, crate::decode::acp::DROID],
    )
};
