//! OpenCode in the agent table.

use crate::agents::{Agent, ProcessFiles};
use crate::discover::{LogLocation, SearchDepth, ends};

pub const AGENT: Agent = Agent {
    recorded: Some(("1.18.33", "1.18.33")),
    // Not recursive: next to the database are the many objects of its snapshots.
    logs: Some(LogLocation {
        variable: "XDG_DATA_HOME",
        home: ".local/share",
        folders: &["opencode"],
        others: &[],
        depth: SearchDepth::TopLevel,
        is_log: |path| ends(path, ".db"),
        in_projects: None,
    }),
    resume: Some("opencode --session"),
    process_files: Some(("opencode/log/opencode.log", ProcessFiles::RunLog)),
    ..Agent::new(
        super::NAME,
        "OpenCode",
        &[super::LOG, super::EXPORT, super::EVENTS, super::RUN, crate::decode::acp::OPENCODE],
    )
};
