//! What is drawn above all screens, and the input line.

use unspool_live::protocol::AgentOption;
use unspool_model::id::SessionId;
use unspool_model::note::NoteTarget;
use unspool_query::findings::FindingEntry;

use crate::text_field::TextField;

/// What is drawn above all screens.
pub enum Overlay {
    Help {
        top: usize,
    },
    Input(Input),
    /// Asks whether to delete this session; its title.
    Delete(SessionId, String),
    /// The choices of an option of the agent.
    Option {
        option: AgentOption,
        at: usize,
    },
    /// A choice of sub-agents to open.
    Agents {
        of: Vec<(String, SessionId)>,
        at: usize,
    },
    /// The findings of a session.
    Findings {
        of: SessionId,
        found: Vec<FindingEntry>,
        at: usize,
    },
}

/// The input line.
pub struct Input {
    pub what: InputPurpose,
    pub field: TextField,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputPurpose {
    Filter,
    Find,
    /// In a prompt, or for the calls that had a text.
    PromptFind,
    Search,
    Tag(SessionId),
    Rename(SessionId),
    Note(SessionId, NoteTarget),
}
