//! Tool calls and their states. The questions about a call are in `question`, the sub-agents that
//! it starts are in `agents`.

use serde::{Deserialize, Serialize};

use super::{Answer, EarlierQuestion, Question};
use crate::json::Json;

/// A tool call with its input, state, result and question.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tool {
    pub call_id: String,
    /// The call inside which this call was made.
    pub parent_call_id: Option<String>,
    pub name: String,
    /// The complete input. `None` while it streams, or if no feed has it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::present"
    )]
    pub input: Option<Json>,
    /// The input streamed so far; empty once it is complete.
    pub input_text: String,
    /// A command with an exit code other than 0 has failed, whatever its agent calls it (C-25).
    pub state: ToolState,
    /// What the agent called it, where that may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_state: Option<ToolState>,
    /// The result text returned to the model.
    pub output: Option<String>,
    /// The structured result, as the source has it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::present"
    )]
    pub result: Option<Json>,
    pub exit_code: Option<i64>,
    pub duration_ms: Option<u64>,
    /// The newest question, and its answer.
    pub question: Option<Question>,
    pub answer: Option<Answer>,
    /// The questions before it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierQuestion>,
    /// Run by the model's provider rather than by the agent.
    pub provider_executed: bool,
    pub title: Option<String>,
}

/// The state of a tool call. It never moves backward.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ToolState {
    /// The input is still being written.
    #[default]
    Pending,
    Running,
    Completed,
    Failed,
    /// A person, a rule or a hook denied it.
    Denied,
    Interrupted,
}

impl ToolState {
    pub const ALL: [ToolState; 6] = [
        ToolState::Pending,
        ToolState::Running,
        ToolState::Completed,
        ToolState::Failed,
        ToolState::Denied,
        ToolState::Interrupted,
    ];

    pub fn of_name(name: &str) -> Option<ToolState> {
        ToolState::ALL.into_iter().find(|state| state.name() == name)
    }

    pub fn is_terminal(self) -> bool {
        match self {
            ToolState::Pending | ToolState::Running => false,
            ToolState::Completed
            | ToolState::Failed
            | ToolState::Denied
            | ToolState::Interrupted => true,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            ToolState::Pending => "pending",
            ToolState::Running => "running",
            ToolState::Completed => "completed",
            ToolState::Failed => "failed",
            ToolState::Denied => "denied",
            ToolState::Interrupted => "interrupted",
        }
    }
}
