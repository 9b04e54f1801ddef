//! Pi in the agent table.

use crate::agents::Agent;
use crate::discover::{LogLocation, SearchDepth, ends};

pub const AGENT: Agent = Agent {
    recorded: Some(("0.73.1", "0.87.1")),
    // With a session folder of its own, files are in it without a folder for the project.
    logs: Some(LogLocation {
        variable: "PI_CODING_AGENT_DIR",
        home: ".pi/agent",
        folders: &["sessions"],
        others: &[("PI_CODING_AGENT_SESSION_DIR", &[""])],
        depth: SearchDepth::Recursive,
        is_log: |path| ends(path, ".jsonl"),
        in_projects: None,
    }),
    resume: Some("pi --session"),
    ..Agent::new(super::NAME, "Pi", &[super::LOG, super::STREAM])
};
