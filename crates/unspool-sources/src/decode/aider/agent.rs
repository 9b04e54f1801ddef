//! aider in the agent table.

use crate::agents::Agent;
use crate::decode::Fields;
use crate::discover::{LogLocation, SearchDepth};
use crate::read::own_file::{Lines, OwnFile};

use super::{history, input_history};

/// Requests and replies as text, if `--llm-history-file` asks for it. Each request repeats the one
/// before.
const LLM_HISTORY: OwnFile = OwnFile {
    is_named: |path| path.file_name().is_some_and(|name| name == ".aider.llm.history"),
    begins: None,
    lines: Lines::Whole(|_, _| Ok(Some(b"{\"aider\":\"requests\"}\n".to_vec()))),
    beside: None,
};

/// What aider writes that is not read: the names are what errors call it.
fn unread(fields: &Fields<'_>) -> Option<&'static str> {
    let is_count = ["event", "properties", "user_id", "time"].iter().all(|name| fields.has(name));
    if fields.is("aider", "requests") {
        Some("aider's history of requests")
    } else {
        is_count.then_some("aider's analytics log")
    }
}

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
    files: &[history::FILE, input_history::FILE, LLM_HISTORY],
    is_prompt_history: |fields| fields.is("aider", input_history::RECORD),
    unread,
    ..Agent::new(super::NAME, "aider", &[super::LOG])
};
