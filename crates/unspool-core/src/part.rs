//! Parts: the typed entries of a turn, each at its place in the order. The assembler creates them,
//! the store keeps them, `present` reads them; no other code interprets them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{PartId, StepId};
use crate::json::Json;
use crate::provenance::{Evidence, Origin};
use crate::rank::{AgentField, Ranks};

/// The position of a part in its turn. Larger is later; unique in the turn; not a list index.
///
/// The n-th part that the spine opens gets n strides, an agents part gets its tool's place plus
/// one, and parts seen only by another feed get the even places in between. Hence a part that the
/// spine placed is never renumbered.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Place(pub i64);

/// One entry of a turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Part {
    pub id: PartId,
    pub place: Place,
    /// The model call that produced it, if the source says so.
    pub step: Option<StepId>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// The source records it was built from, so that any part can be verified.
    pub evidence: Vec<Evidence>,
    /// What the assembler needs to apply a late event to this part.
    pub origin: Origin,
    pub body: Body,
}

/// The content of a part, by kind. Records without a kind of their own are kept unchanged as
/// [`Body::Data`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    Text(Text),
    Reasoning(Reasoning),
    Tool(Box<Tool>),
    Agent(Agents),
    Interjection(Interjection),
    TaskList(TaskList),
    SkillLoad(SkillLoad),
    McpSnapshot(McpSnapshot),
    ContextInfo(ContextInfo),
    Compaction(Compaction),
    File(File),
    Source(SourceLink),
    Patch(Patch),
    Notice(Notice),
    Error(Failure),
    Data(Data),
}

/// The kind of a part, without its data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Text,
    Reasoning,
    Tool,
    Agent,
    Interjection,
    TaskList,
    SkillLoad,
    McpSnapshot,
    ContextInfo,
    Compaction,
    File,
    Source,
    Patch,
    Notice,
    Error,
    Data,
}

impl Kind {
    pub const ALL: [Kind; 16] = [
        Kind::Text,
        Kind::Reasoning,
        Kind::Tool,
        Kind::Agent,
        Kind::Interjection,
        Kind::TaskList,
        Kind::SkillLoad,
        Kind::McpSnapshot,
        Kind::ContextInfo,
        Kind::Compaction,
        Kind::File,
        Kind::Source,
        Kind::Patch,
        Kind::Notice,
        Kind::Error,
        Kind::Data,
    ];

    pub fn of_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// True if one event describes such a part completely. Prose grows, calls have states, and
    /// agents are reported one by one.
    pub fn is_plain(self) -> bool {
        match self {
            Kind::Text | Kind::Reasoning | Kind::Tool | Kind::Agent => false,
            Kind::Interjection
            | Kind::TaskList
            | Kind::SkillLoad
            | Kind::McpSnapshot
            | Kind::ContextInfo
            | Kind::Compaction
            | Kind::File
            | Kind::Source
            | Kind::Patch
            | Kind::Notice
            | Kind::Error
            | Kind::Data => true,
        }
    }

    /// The name that every surface and every export uses.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Reasoning => "reasoning",
            Kind::Tool => "tool",
            Kind::Agent => "agent",
            Kind::Interjection => "interjection",
            Kind::TaskList => "task-list",
            Kind::SkillLoad => "skill-load",
            Kind::McpSnapshot => "mcp-snapshot",
            Kind::ContextInfo => "context-info",
            Kind::Compaction => "compaction",
            Kind::File => "file",
            Kind::Source => "source",
            Kind::Patch => "patch",
            Kind::Notice => "notice",
            Kind::Error => "error",
            Kind::Data => "data",
        }
    }
}

impl Body {
    /// The text of a text part.
    pub fn prose(&self) -> Option<&str> {
        self.text().map(|text| text.text.as_str())
    }

    pub fn text(&self) -> Option<&Text> {
        if let Body::Text(text) = self { Some(text) } else { None }
    }

    pub fn reasoning(&self) -> Option<&Reasoning> {
        if let Body::Reasoning(reasoning) = self { Some(reasoning) } else { None }
    }

    pub fn tool(&self) -> Option<&Tool> {
        if let Body::Tool(tool) = self { Some(tool) } else { None }
    }

    /// True if more of it may follow: prose that grows, a call or an agent that runs.
    pub fn is_open(&self) -> bool {
        match self {
            Body::Text(text) => text.open,
            Body::Reasoning(reasoning) => reasoning.open,
            Body::Tool(tool) => !tool.state.is_terminal(),
            Body::Agent(agents) => agents.agents.iter().any(|agent| !agent.state.is_terminal()),
            Body::Interjection(_)
            | Body::TaskList(_)
            | Body::SkillLoad(_)
            | Body::McpSnapshot(_)
            | Body::ContextInfo(_)
            | Body::Compaction(_)
            | Body::File(_)
            | Body::Source(_)
            | Body::Patch(_)
            | Body::Notice(_)
            | Body::Error(_)
            | Body::Data(_) => false,
        }
    }

    /// The text of a part that consists of text only and is written piece by piece.
    pub fn streamed_text(&self) -> Option<&str> {
        match self {
            Body::Text(text) => Some(&text.text),
            Body::Reasoning(reasoning) => Some(&reasoning.text),
            Body::Tool(_)
            | Body::Agent(_)
            | Body::Interjection(_)
            | Body::TaskList(_)
            | Body::SkillLoad(_)
            | Body::McpSnapshot(_)
            | Body::ContextInfo(_)
            | Body::Compaction(_)
            | Body::File(_)
            | Body::Source(_)
            | Body::Patch(_)
            | Body::Notice(_)
            | Body::Error(_)
            | Body::Data(_) => None,
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Body::Text(_) => Kind::Text,
            Body::Reasoning(_) => Kind::Reasoning,
            Body::Tool(_) => Kind::Tool,
            Body::Agent(_) => Kind::Agent,
            Body::Interjection(_) => Kind::Interjection,
            Body::TaskList(_) => Kind::TaskList,
            Body::SkillLoad(_) => Kind::SkillLoad,
            Body::McpSnapshot(_) => Kind::McpSnapshot,
            Body::ContextInfo(_) => Kind::ContextInfo,
            Body::Compaction(_) => Kind::Compaction,
            Body::File(_) => Kind::File,
            Body::Source(_) => Kind::Source,
            Body::Patch(_) => Kind::Patch,
            Body::Notice(_) => Kind::Notice,
            Body::Error(_) => Kind::Error,
            Body::Data(_) => Kind::Data,
        }
    }
}

/// Text from the model to the user.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Text {
    pub text: String,
    /// Still growing.
    pub open: bool,
    /// Citations as the source gave them.
    pub citations: Vec<Json>,
}

/// The model's reasoning. A redacted block has no text and `redacted` set.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Reasoning {
    pub text: String,
    /// Still growing.
    pub open: bool,
    pub redacted: bool,
    /// The vendor's signature, or the encrypted content of a redacted block.
    pub signature: Option<String>,
    /// The provider that signed it, if the source names one (`openai`). Otherwise inferred from
    /// the agent: most agents run the models of one provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    pub duration_ms: Option<u64>,
}

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
    pub state: ToolState,
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
    pub question: Option<Question>,
    pub answer: Option<Answer>,
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

/// A question to a person about a call. It belongs to the tool part and is not a part itself. It
/// is open while the tool has no [`Answer`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Question {
    pub request_id: Option<String>,
    pub kind: QuestionKind,
    /// Several questions in one request get one combined answer (R-X-09).
    pub items: Vec<QuestionItem>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// May this call run?
    Permission,
    /// One or more of the options, or free text.
    Choice,
    Text,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct QuestionItem {
    pub header: Option<String>,
    pub question: String,
    pub options: Vec<QuestionOption>,
    pub multi_select: bool,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct QuestionOption {
    pub label: String,
    pub description: Option<String>,
}

/// The answer to a question.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub decision: Decision,
    /// What to show: "allowed once", "Celsius (Recommended)", the person's own words.
    pub text: String,
    /// The answer to each question of the request, by the question's text.
    pub choices: Vec<(String, String)>,
    /// False if no source reported the answer and it was inferred from later events (R-X-18).
    pub observed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    Allowed,
    Denied,
    Answered,
    /// Dismissed, cancelled, or still open when the turn ended.
    Declined,
}

impl Decision {
    pub fn name(self) -> &'static str {
        match self {
            Decision::Allowed => "allowed",
            Decision::Denied => "denied",
            Decision::Answered => "answered",
            Decision::Declined => "declined",
        }
    }
}

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

#[cfg(test)]
#[path = "part_tests.rs"]
mod tests;
