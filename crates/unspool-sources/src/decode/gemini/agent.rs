//! Gemini CLI in the agent table.

use crate::agents::{Agent, HookForm, HookSetup};
use crate::discover::{LogLocation, SearchDepth, ends};

pub const AGENT: Agent = Agent {
    recorded: Some(("0.61.0", "0.61.0")),
    // The variable names the home folder that contains `.gemini`.
    logs: Some(LogLocation {
        variable: "GEMINI_CLI_HOME",
        home: "",
        folders: &[".gemini/tmp"],
        others: &[],
        depth: SearchDepth::Recursive,
        is_log: |path| ends(path, ".jsonl") && path.iter().any(|piece| piece == "chats"),
        in_projects: None,
    }),
    hooks: Some(HookSetup {
        file: "settings.json",
        form: HookForm::Settings { second: 1000 },
        events: &[
            "SessionStart",
            "BeforeAgent",
            "BeforeTool",
            "Notification",
            "AfterTool",
            "AfterAgent",
            "SessionEnd",
        ],
        answer_event: None,
        adapt_events: &["SessionStart"],
        payload_field: None,
        after_install: None,
    }),
    resume: Some("gemini --resume"),
    calls_come_late: true,
    ..Agent::new(
        super::NAME,
        "Gemini CLI",
        &[super::STREAM, super::LOG, super::HOOKS, crate::decode::acp::GEMINI],
    )
};
