//! GitHub Copilot CLI in the agent table.

use crate::agents::{Agent, HookForm, HookSetup, ProcessFiles, TraceValue, TraceVariable};
use crate::discover::{LogLocation, SearchDepth};
use crate::read::trace_files;

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
    trace_variables: &[
        TraceVariable {
            name: "COPILOT_OTEL_FILE_EXPORTER_PATH",
            value: TraceValue::File(trace_files::SPANS),
        },
        TraceVariable {
            name: "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
            value: TraceValue::Text("true"),
        },
    ],
    ..Agent::new(
        super::NAME,
        "GitHub Copilot CLI",
        &[super::LOG, super::STREAM, super::HOOKS, super::SPANS, crate::decode::acp::COPILOT],
    )
};
