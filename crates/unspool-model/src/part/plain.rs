//! The parts that one event describes completely (`Kind::is_plain`). They do not grow: a later
//! event with the same name replaces the whole body, or nothing.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// What the user typed while the turn ran.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Interjection {
    pub text: String,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TaskList {
    pub items: Vec<TaskItem>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TaskItem {
    pub id: Option<String>,
    pub text: String,
    pub state: TaskState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    #[default]
    Pending,
    Running,
    Completed,
    Cancelled,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SkillLoad {
    pub name: String,
    /// The call that loaded it.
    pub call_id: Option<String>,
    /// The skill text given to the model.
    pub text: String,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct McpSnapshot {
    pub servers: Vec<McpServer>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct McpServer {
    pub name: String,
    pub status: Option<String>,
    pub tools: Vec<String>,
}

/// Text added to the model's context that is not from the user.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ContextInfo {
    pub title: String,
    pub text: String,
}

/// The conversation so far was replaced by a summary.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Compaction {
    /// `manual` or `auto`, as the source says.
    pub trigger: Option<String>,
    pub tokens_before: Option<u64>,
    pub tokens_after: Option<u64>,
    pub duration_ms: Option<u64>,
    pub summary: String,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct File {
    pub name: Option<String>,
    pub media_type: Option<String>,
    /// A path, an address or a data URL.
    pub url: Option<String>,
    /// The attached text, if the source keeps it.
    pub text: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SourceLink {
    pub url: Option<String>,
    pub title: Option<String>,
    pub quote: Option<String>,
}

/// A file change reported by the agent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Patch {
    pub path: Option<String>,
    /// A unified diff.
    pub diff: String,
    pub call_id: Option<String>,
}

/// A notice that did not come from the model.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Notice {
    /// What kind of notice: `interrupted`, `hook-feedback`, `mode-change`, `retry`, `no-reply`,
    /// `informational`, `command-output`, …
    pub code: String,
    pub text: String,
}

/// An error. Identified by a flag in the source, never by its wording.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Failure {
    pub code: Option<String>,
    pub status: Option<u64>,
    pub text: String,
}

/// A source record without a kind of its own. Round-trips unchanged (R-000-24).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Data {
    pub kind: String,
    pub payload: Json,
}
