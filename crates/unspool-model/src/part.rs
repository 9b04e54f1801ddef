//! Parts: the typed entries of a turn, each at its place in the order. The assembler creates them and
//! the store keeps them. Surfaces show what `present` of `unspool-view` makes of them, and exports
//! write them in other formats.
//!
//! This file has what all parts share and the list of kinds. The data of each kind is in a file
//! below it: what the model writes in `prose`, calls in `tool` and `question`, sub-agents in
//! `agents`, all other kinds in `plain`.

mod agents;
mod plain;
mod prose;
mod question;
mod tool;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{PartId, StepId};
use crate::provenance::{Evidence, Origin};
use crate::rank::PartField;

pub use agents::{Agent, AgentState, Agents};
pub use plain::{
    Compaction, ContextInfo, Data, Failure, File, Interjection, McpServer, McpSnapshot, Notice,
    Patch, SkillLoad, SourceLink, TaskItem, TaskList, TaskState,
};
pub use prose::{Reasoning, Text};
pub use question::{
    Answer, Decision, EarlierQuestion, Question, QuestionItem, QuestionKind, QuestionOption,
};
pub use tool::{Tool, ToolState};

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

impl Part {
    /// False for a call whose end no source reports: the end of its turn interrupted it (R-X-18).
    pub fn is_end_observed(&self) -> bool {
        let cut = self.body.tool().is_some_and(|tool| tool.state == ToolState::Interrupted);
        !cut || self.origin.ranks.holder(PartField::State).is_some()
    }
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

/// The kind of a data part with a number of tool calls, of a source that counts them and does not
/// list them (R-001-12).
pub const COUNTED_CALLS_KIND: &str = "tool-calls";

impl Body {
    /// The tool calls that it stands for: a call for itself, a count for as many.
    pub fn tool_calls(&self) -> u64 {
        match self.counted_calls() {
            Some(count) => count,
            None => u64::from(self.kind() == Kind::Tool),
        }
    }

    /// The number of tool calls that its source counts and does not list.
    pub fn counted_calls(&self) -> Option<u64> {
        if let Body::Data(data) = self
            && data.kind == COUNTED_CALLS_KIND
        {
            // Absurd counts must not overflow a sum.
            data.payload.read::<u64>().map(|count| count.min(u32::MAX.into()))
        } else {
            None
        }
    }

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

#[cfg(test)]
#[path = "part_tests.rs"]
mod tests;
