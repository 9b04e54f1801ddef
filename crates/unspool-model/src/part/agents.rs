//! Sub-agents, as the source of their parent reports them. What a sub-agent did is in a session of
//! its own.

use serde::{Deserialize, Serialize};

use crate::rank::{AgentField, Ranks};

/// The sub-agents that one tool call started, as reported by the parent's source.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Agents {
    pub call_id: String,
    pub agents: Vec<Agent>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Agent {
    /// The agent's own id; `temp_<call id>` until a source names it (R-003-40).
    pub id: String,
    pub name: String,
    pub task: String,
    pub state: AgentState,
    /// Continues after its turn; only its own end event ends it.
    pub background: bool,
    /// The tool that it runs or ran last, if the parent's source reports it.
    pub activity: Option<String>,
    /// Which feed set which field.
    #[serde(default)]
    pub ranks: Ranks<AgentField>,
}

#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum AgentState {
    #[default]
    Pending,
    Running,
    Background,
    Completed,
    Failed,
    Interrupted,
}

impl AgentState {
    pub fn is_terminal(self) -> bool {
        match self {
            AgentState::Pending | AgentState::Running | AgentState::Background => false,
            AgentState::Completed | AgentState::Failed | AgentState::Interrupted => true,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            AgentState::Pending => "pending",
            AgentState::Running => "running",
            AgentState::Background => "background",
            AgentState::Completed => "completed",
            AgentState::Failed => "failed",
            AgentState::Interrupted => "interrupted",
        }
    }
}
