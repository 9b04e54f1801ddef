//! The consolidated ThoughtFlow document of a session. It is written from turns, and it is the only
//! input of diagrams (R-002-20).

use rustc_hash::FxHashSet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unspool_model::json::Json;

/// A session: one conversation for each of its runs.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
pub struct Document {
    #[serde(flatten)]
    pub head: Head,
    #[serde(default)]
    pub conversations: Vec<Conversation>,
}

/// The session fields before the first run.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
pub struct Head {
    pub session_id: String,
    #[serde(default)]
    pub started_at: Option<String>,
    #[serde(default)]
    pub ended_at: Option<String>,
}

/// A run: a user message or another trigger, and everything that followed.
#[derive(Deserialize, Clone, PartialEq, Debug, Default)]
pub struct Conversation {
    pub conversation_id: String,
    #[serde(default)]
    pub channel: String,
    #[serde(default)]
    pub status: Status,
    #[serde(default)]
    pub started_at: Option<String>,
    #[serde(default)]
    pub ended_at: Option<String>,
    #[serde(default)]
    pub duration_ms: Option<u64>,
    #[serde(default)]
    pub steps: Vec<FlowStep>,
    /// The whole conversation as another program wrote it, with fields that are not read here.
    #[serde(skip)]
    pub source: Option<Json>,
}

/// How a run ended. Without an observed end it is `unknown`, never `completed` (R-002-07).
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Completed,
    Aborted,
    Error,
    #[default]
    #[serde(other)]
    Unknown,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::Aborted => "aborted",
            Status::Error => "error",
            Status::Unknown => "unknown",
        }
    }
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
pub struct FlowStep {
    pub step_id: String,
    /// A name of `Label`, or a foreign label (R-002-43).
    pub label: String,
    #[serde(default, skip_serializing_if = "Depends::is_empty")]
    pub depends_on: Depends,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_started: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_completed: Option<Json>,
}

/// The kind of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Label {
    UserMessage,
    AssistantMessage,
    ToolCall,
    ToolOutput,
    ToolError,
    Generic,
    AssistantCall,
    PolicySnapshot,
    ToolSchemasSnapshot,
    ContextPreamble,
    ChannelPreamble,
    PromptAdaptations,
}

impl Label {
    pub const ALL: [Label; 12] = [
        Label::UserMessage,
        Label::AssistantMessage,
        Label::ToolCall,
        Label::ToolOutput,
        Label::ToolError,
        Label::Generic,
        Label::AssistantCall,
        Label::PolicySnapshot,
        Label::ToolSchemasSnapshot,
        Label::ContextPreamble,
        Label::ChannelPreamble,
        Label::PromptAdaptations,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Label::UserMessage => "user_message",
            Label::AssistantMessage => "assistant_message",
            Label::ToolCall => "tool_call",
            Label::ToolOutput => "tool_output",
            Label::ToolError => "tool_error",
            Label::Generic => "generic",
            Label::AssistantCall => "assistant_call",
            Label::PolicySnapshot => "policy.snapshot",
            Label::ToolSchemasSnapshot => "tool.schemas.snapshot",
            Label::ContextPreamble => "context.preamble",
            Label::ChannelPreamble => "channel.preamble",
            Label::PromptAdaptations => "prompt.adaptations",
        }
    }

    /// Foreign labels map to `Generic`.
    pub fn of_name(name: &str) -> Label {
        Label::ALL.into_iter().find(|label| label.name() == name).unwrap_or(Label::Generic)
    }
}

/// The dependencies of a step: one is written as a string, several as a list; both are read
/// (R-002-03).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Depends(pub Vec<String>);

impl Depends {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a step id if it is not present.
    pub fn add(&mut self, id: &str) {
        if !self.0.iter().any(|existing| existing == id) {
            self.0.push(id.to_owned());
        }
    }
}

impl Serialize for Depends {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => serializer.serialize_str(one),
            several => several.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Depends {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Depends, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum OneOrMany {
            None(()),
            One(String),
            Several(Vec<String>),
        }
        Ok(Depends(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::None(()) => Vec::new(),
            OneOrMany::One(id) => vec![id],
            OneOrMany::Several(ids) => ids,
        }))
    }
}

/// A dependency on a step that the run does not have: reported, not an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownStep<'a> {
    pub step: &'a str,
    pub depends_on: &'a str,
}

impl Conversation {
    pub fn unknown_steps(&self) -> Vec<UnknownStep<'_>> {
        let existing: FxHashSet<&str> =
            self.steps.iter().map(|step| step.step_id.as_str()).collect();
        let all = self.steps.iter().flat_map(|step| {
            step.depends_on.0.iter().map(|on| UnknownStep { step: &step.step_id, depends_on: on })
        });
        all.filter(|unknown| !existing.contains(unknown.depends_on)).collect()
    }
}

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        if let Some(source) = &self.source {
            return source.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("conversation_id", &self.conversation_id)?;
        map.serialize_entry("channel", &self.channel)?;
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("started_at", &self.started_at)?;
        map.serialize_entry("ended_at", &self.ended_at)?;
        // R-002-06: absent where one of the two times is.
        if let Some(duration) = self.duration_ms {
            map.serialize_entry("duration_ms", &duration)?;
        }
        map.serialize_entry("steps", &self.steps)?;
        map.end()
    }
}
