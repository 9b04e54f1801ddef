//! Kilo Code CLI in the agent table.

use crate::agents::Agent;
use crate::discover::{LogLocation, SearchDepth, ends};

pub const AGENT: Agent = Agent {
    recorded: Some(("7.7.9", "7.7.9")),
    // A channel has a database of its own: `kilo-<channel>.db`, or `opencode-<channel>.db`.
    logs: Some(LogLocation {
        variable: "XDG_DATA_HOME",
        home: ".local/share",
        folders: &["kilo"],
        others: &[("KILO_DB", &[])],
        depth: SearchDepth::TopLevel,
        is_log: |path| ends(path, ".db"),
        in_projects: None,
    }),
    database_mark: Some(("kilo_board", super::SESSION_RECORD_TYPE)),
    resume: Some("kilo -s"),
    ..Agent::new(
        super::NAME,
        "Kilo Code",
        &[super::LOG, super::EXPORT, super::EVENTS, super::RUN, crate::decode::acp::KILO],
    )
};
