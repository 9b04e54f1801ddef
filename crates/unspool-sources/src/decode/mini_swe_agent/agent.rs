//! mini-swe-agent in the agent table.

use crate::agents::Agent;
use crate::discover::{LogLocation, SearchDepth, ends, holds};
use crate::read::own_file::{Lines, OwnFile};

/// Its configuration folder, where the last interactive run is. Runs of benchmarks may be anywhere.
const HOME: &str = if cfg!(target_os = "macos") {
    "Library/Application Support/mini-swe-agent"
} else {
    ".config/mini-swe-agent"
};

/// Its documents are read as any other.
const TRAJECTORY: OwnFile = OwnFile {
    is_named: |path| ends(path, ".traj.json"),
    begins: Some(("json", |text| holds(text, b"\"mini_version\""))),
    lines: Lines::AsUsual,
    beside: None,
};

pub const AGENT: Agent = Agent {
    recorded: Some(("2.4.6", "2.4.6")),
    logs: Some(LogLocation {
        variable: "MSWEA_GLOBAL_CONFIG_DIR",
        home: HOME,
        folders: &[""],
        others: &[],
        depth: SearchDepth::TopLevel,
        is_log: TRAJECTORY.is_named,
        in_projects: None,
    }),
    files: &[TRAJECTORY],
    calls_come_late: true,
    ..Agent::new(super::NAME, "mini-swe-agent", &[super::LOG])
};
