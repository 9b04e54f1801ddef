//! Continue in the agent table.

use crate::agents::Agent;
use crate::discover::{LogLocation, SearchDepth, ends};

pub const AGENT: Agent = Agent {
    recorded: Some(("1.5.47", "1.5.47")),
    // The index of sessions is in the same folder.
    logs: Some(LogLocation {
        variable: "CONTINUE_GLOBAL_DIR",
        home: ".continue",
        folders: &["sessions"],
        others: &[],
        depth: SearchDepth::TopLevel,
        is_log: |path| ends(path, ".json"),
        in_projects: None,
    }),
    // `cn --resume` takes no session: it resumes the newest. A given one can only be forked.
    resume: Some("cn --fork"),
    files: &[super::index_file::FILE],
    ..Agent::new(super::NAME, "Continue", &[super::INDEX, super::LOG])
};
