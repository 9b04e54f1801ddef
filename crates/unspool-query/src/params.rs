//! Query parameters shared by the command line and the REST API: part kinds and tool states.

use unspool_model::part::{Kind, ToolState};
use unspool_view::finding::Rule;

/// Every kind of part.
pub const PART_KINDS: &[&str] = &{
    let mut names = [""; Kind::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = Kind::ALL[at].name();
        at += 1;
    }
    names
};

/// What a search can be limited to: user messages, titles, notes, and every kind of part.
pub const SEARCH_KINDS: &[&str] = &{
    let mut names = [""; Kind::ALL.len() + 3];
    (names[0], names[1], names[2]) = ("user", "title", "note");
    let mut at = 0;
    while at < PART_KINDS.len() {
        names[at + 3] = PART_KINDS[at];
        at += 1;
    }
    names
};

/// The rules that find something.
pub const RULES: &[&str] = &{
    let mut names = [""; Rule::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = Rule::ALL[at].name();
        at += 1;
    }
    names
};

/// The states of a tool call.
pub const TOOL_STATES: &[&str] = &{
    let mut names = [""; ToolState::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ToolState::ALL[at].name();
        at += 1;
    }
    names
};
