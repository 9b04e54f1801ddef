//! Cline in the agent table.

use crate::agents::Agent;
use crate::discover::{LogLocation, SearchDepth, ends};
use crate::read::event_table::EventTable;

use super::files;

/// The event log of its hub. Old rows are removed by Cline. Rows that carry a whole conversation are
/// nearly all of the bytes, and repeat what the conversation's own file has.
const EVENTS: EventTable = EventTable {
    name: "hub_events",
    sequence: "sequence",
    session: "session_id",
    created: "created_at",
    kind: "event",
    event: "envelope_json",
    left_out: "capability.",
};

pub const AGENT: Agent = Agent {
    recorded: Some(("3.0.65", "3.0.65")),
    logs: Some(LogLocation {
        variable: "CLINE_DIR",
        home: ".cline",
        folders: &["data/sessions", "data/db"],
        others: &[
            ("CLINE_DATA_DIR", &["sessions", "db"]),
            ("CLINE_SESSION_DATA_DIR", &[""]),
            ("CLINE_DB_DATA_DIR", &[""]),
        ],
        depth: SearchDepth::Recursive,
        is_log: |path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_event_log = name.starts_with("hub-events-") && ends(path, ".db");
            is_event_log || files::is_session_file(path)
        },
        in_projects: None,
    }),
    files: &[files::CONVERSATION, files::SIDE],
    event_table: Some(&EVENTS),
    resume: Some("cline -i --id"),
    ..Agent::new(super::NAME, "Cline", &[super::LOG, super::LIVE, super::PRINTED])
};
