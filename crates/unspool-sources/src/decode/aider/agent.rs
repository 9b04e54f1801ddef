//! aider in the agent table.

use crate::agents::Agent;
use crate::discover::{LogLocation, SearchDepth};

use super::history;

pub const AGENT: Agent = Agent {
    recorded: Some(("0.86.2", "0.86.2")),
    // The history is in the folder of each project, and nothing lists these. Found are the one of a
    // chat in the home folder itself, the one that the variable names, and those in the projects of
    // other sessions; others are imported by their path.
    logs: Some(LogLocation {
        variable: "",
        home: "",
        folders: &[""],
        others: &[("AIDER_CHAT_HISTORY_FILE", &[])],
        depth: SearchDepth::TopLevel,
        is_log: |path| path.file_name().is_some_and(|name| name == history::FILE_NAME),
        in_projects: Some(history::FILE_NAME),
    }),
    files: &[history::FILE],
    ..Agent::new(super::NAME, "aider", &[super::LOG])
};
