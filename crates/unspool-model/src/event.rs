//! Events: one thing that happened, in one vocabulary for all sources. Decoders produce them; only
//! the assembler consumes them. Saved decoder state may contain an event, so its names are fixed.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::json::Json;
use crate::part::{Answer, Body, Question};
use crate::price::ReportedCost;
use crate::prompt::PromptRecord;
use crate::provenance::{Evidence, Feed, Name};
use crate::session::{ForkedFrom, Parent, Provenance, Title, Trigger, Usage};

/// The order in which the events of a session were ingested. Never part of a part or of an id.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Identifies an event within its source: the record, and the index of the event in that record.
/// Reading a record again yields the same key, and sources are read in order, so an event at or
/// before the cursor of its source has already been applied. A rewritten file is a new source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct EventKey {
    pub record: u64,
    pub nth: u32,
}

/// One thing that happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    pub key: EventKey,
    #[serde(rename = "telling")]
    pub feed: Feed,
    /// When it happened, by the source's clock. For display only: clocks never order anything.
    pub at: Option<Timestamp>,
    pub evidence: Evidence,
    /// The turn it belongs to, if the source names one; otherwise the feed's current turn.
    pub turn: Option<Name>,
    /// The generation of the live stream it came from, counted by its source. Events of a
    /// generation older than the source's newest are skipped (R-003-38).
    pub generation: Option<u32>,
    #[serde(rename = "what")]
    pub kind: EventKind,
}

/// The tool call that an event refers to.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallRef {
    /// The call with this id.
    Id(Arc<str>),
    /// The n-th call of the turn with this content hash, for sources that omit the id.
    #[serde(rename = "alike")]
    ByContent(u64, u32),
}

/// The sub-agent that an event refers to. Either field may be missing; an event with both links
/// the call to the agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AgentRef {
    /// The call that started it.
    pub call: Option<Arc<str>>,
    /// The agent's own id.
    pub id: Option<Arc<str>>,
}

/// The kind of a piece of prose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProseKind {
    /// Addressed to the user.
    Text,
    /// The model's own reasoning.
    Reasoning,
}

/// The result of a tool call. `None` means that the source did not report the field.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ToolOutcome {
    pub output: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::present"
    )]
    pub result: Option<Json>,
    pub exit_code: Option<i64>,
    pub duration_ms: Option<u64>,
}

/// How a tool call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolEnd {
    Completed,
    Failed,
    Denied,
    Interrupted,
    /// A person rejected it, and the source does not say whether that answered a question or
    /// interrupted the call. Treated as interrupted, or as denied if the call has a question.
    Rejected,
}

/// How a sub-agent ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentEnd {
    Completed,
    Failed,
    Interrupted,
}

/// Why a turn ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The model was done. Waits for sub-agents that still run in the foreground (R-003-36).
    Completed,
    /// It failed, with the source's message.
    Failed(Option<String>),
    /// A person stopped it.
    Interrupted,
    /// The agent went idle, or was silent for too long. Does not wait for sub-agents (R-X-13).
    Idle,
    /// The agent is gone, or was silent for so long that it must be: nobody reported an end. Only
    /// the recorder says so, and any later event of the turn takes it back.
    Lost,
    /// The next turn began before the source reported an end.
    Superseded,
    /// The source says that the end was not observed (R-002-07).
    Unseen,
}

/// What happened, with its data.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    // ── Session ─────────────────────────────────────────────────────────────────────────────
    /// Session-level facts: where it runs, which version wrote it, what it cost.
    SessionUpdated {
        project: Option<String>,
        branch: Option<String>,
        version: Option<String>,
        cost: Option<ReportedCost>,
    },
    /// The session has a title.
    #[serde(alias = "title-told")]
    TitleSet(Title),
    /// Another session's call started this one.
    StartedBy(Parent),
    /// The session continues from another session's history.
    BranchedOff(ForkedFrom),
    /// Whether the source has only prompts and their results, and nothing in between.
    OutcomesOnly(bool),
    /// The size of a model's context window, in tokens.
    ContextWindowReported { model: String, tokens: u64 },
    /// The agent left the session.
    SessionEnded,
    /// A process of the agent opened the session again. It may be long before the next prompt.
    SessionResumed,

    // ── Turn ────────────────────────────────────────────────────────────────────────────────
    /// A prompt or another trigger arrived. Ends the feed's previous turn if that is open.
    TurnStarted { names: Vec<Name>, trigger: Trigger, user: Vec<Body> },
    /// Another part of the user's message: a mentioned file, an image.
    UserAdded(Body),
    /// A record of the user's message or of the reply, with the source's own ids.
    MessageRecordNamed { is_reply: bool, id: String, parent: Option<String> },
    /// Whether the request enabled thinking.
    ThinkingUpdated(bool),
    /// The turn ended, and why.
    TurnEnded(EndReason),
    /// The turn was copied from the session that this one branched off. It is shown here and
    /// counted there; its usage is not repeated.
    TurnInherited,
    /// The user rewound past these turns. They are marked as abandoned and kept.
    Rewound { turns: Vec<Name> },

    // ── Step ────────────────────────────────────────────────────────────────────────────────
    /// A model call began to stream its reply. Closes prose that the previous step left open.
    StepStarted { step: Name, model: Option<String> },
    /// A model call is complete.
    StepEnded { step: Name, stop_reason: Option<String> },
    /// The token usage of a model call so far.
    UsageUpdated { step: Name, usage: Usage },
    /// What the prompt of a model call was made of.
    ProvenanceUpdated { step: Name, provenance: Provenance },
    /// The request that a model call answers, by its source's name.
    RequestNamed { step: Name, request: Arc<str> },
    /// What a model call was sent, or a message of it.
    PromptRecorded(Box<PromptRecord>),
    /// Content that prompts refer to by its digest: a system policy, tool schemas, a context.
    SnapshotTaken { kind: String, sha256: String, content: Json },

    // ── Prose ───────────────────────────────────────────────────────────────────────────────
    /// A text delta. A named delta extends its block; an unnamed one extends the feed's open part
    /// of the same kind, or opens one.
    ProseDelta { prose_kind: ProseKind, block: Option<Name>, text: String },
    /// The complete text of a block. Replaces the text accumulated from deltas if it differs.
    ProseCompleted { prose_kind: ProseKind, block: Option<Name>, text: String, detail: ProseDetail },
    /// A block begins; its content follows later. Reserves the block's place, for sources that
    /// write a block only when it is complete.
    BlockStarted { block: Name },
    /// A named block is complete.
    BlockEnded { block: Name },

    // ── Tools ───────────────────────────────────────────────────────────────────────────────
    /// A delta of a call's input, as text.
    ToolInputDelta { call: CallRef, name: String, text: String },
    /// A call was made, with its complete input.
    ToolCalled(Box<ToolCall>),
    /// A call started to run.
    ToolStarted { call: CallRef },
    /// A delta of a call's output while it runs.
    ToolOutputDelta { call: CallRef, text: String },
    /// A call ended. A result without a known call is kept where it arrived.
    ToolEnded { call: CallRef, end: ToolEnd, outcome: ToolOutcome },
    /// Further results of a call. Applies in any state and in any order.
    ToolRefined { call: CallRef, outcome: ToolOutcome },
    /// The agent asks a person about a call. `requested` means that the call waits for the answer,
    /// so a later rejection is an answer and not an interruption. `inferred` means that the source
    /// has only the answer: the words of a feed that has the question replace the decoder's.
    QuestionAsked {
        call: CallRef,
        tool: String,
        question: Question,
        requested: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inferred: bool,
    },
    /// The person answered.
    QuestionAnswered { call: CallRef, answer: Answer },

    // ── Sub-agents ──────────────────────────────────────────────────────────────────────────
    /// A call started a sub-agent.
    AgentStarted { agent: AgentRef, name: String, task: String, background: bool },
    /// The current activity of a sub-agent, or its move to the background.
    AgentProgressed { agent: AgentRef, activity: Option<String>, background: bool },
    /// A sub-agent ended.
    AgentEnded { agent: AgentRef, end: AgentEnd },

    // ── Other parts ─────────────────────────────────────────────────────────────────────────
    /// A part that one event describes completely, a plain part
    /// ([`Kind::is_plain`](crate::part::Kind::is_plain)): a notice, a file, a compaction.
    #[serde(alias = "compacted", deserialize_with = "stored_part")]
    Part(Option<Name>, Body),
}

impl EventKind {
    /// True if the agent must be there for this to happen in its turn.
    pub fn is_activity(&self) -> bool {
        match self {
            EventKind::StepStarted { .. }
            | EventKind::StepEnded { .. }
            | EventKind::UsageUpdated { .. }
            | EventKind::ProseDelta { .. }
            | EventKind::ProseCompleted { .. }
            | EventKind::BlockStarted { .. }
            | EventKind::BlockEnded { .. }
            | EventKind::ToolInputDelta { .. }
            | EventKind::ToolCalled(_)
            | EventKind::ToolStarted { .. }
            | EventKind::ToolOutputDelta { .. }
            | EventKind::ToolEnded { .. }
            | EventKind::QuestionAsked { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::AgentStarted { .. }
            | EventKind::AgentProgressed { .. }
            | EventKind::AgentEnded { .. }
            | EventKind::Part(..) => true,
            EventKind::SessionUpdated { .. }
            | EventKind::TitleSet(_)
            | EventKind::StartedBy(_)
            | EventKind::BranchedOff(_)
            | EventKind::OutcomesOnly(_)
            | EventKind::ContextWindowReported { .. }
            | EventKind::SessionEnded
            | EventKind::SessionResumed
            | EventKind::TurnStarted { .. }
            | EventKind::UserAdded(_)
            | EventKind::MessageRecordNamed { .. }
            | EventKind::ThinkingUpdated(_)
            | EventKind::TurnEnded(_)
            | EventKind::TurnInherited
            | EventKind::Rewound { .. }
            | EventKind::ProvenanceUpdated { .. }
            | EventKind::RequestNamed { .. }
            | EventKind::PromptRecorded(_)
            | EventKind::SnapshotTaken { .. }
            | EventKind::ToolRefined { .. } => false,
        }
    }
}

/// Reads a part event. Decoder states of earlier versions hold compactions without their kind, as
/// `{"compacted": [name, compaction]}`.
fn stored_part<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<(Option<Name>, Body), D::Error> {
    let (name, body) = <(Option<Name>, Json)>::deserialize(deserializer)?;
    let body = body.read().or_else(|| body.read().map(Body::Compaction));
    Ok((name, body.ok_or_else(|| de::Error::custom("no body of a part"))?))
}

/// What a completed block carries in addition to its text.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProseDetail {
    pub citations: Vec<Json>,
    pub signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    pub redacted: bool,
    pub duration_ms: Option<u64>,
}

/// A call with its input.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ToolCall {
    pub call: CallRef,
    pub parent_call_id: Option<String>,
    pub name: String,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::present"
    )]
    pub input: Option<Json>,
    /// A hash of the tool and its input, independent of whitespace and key order. It matches the
    /// call in feeds that omit the id.
    pub content_hash: u64,
    pub provider_executed: bool,
    pub title: Option<String>,
    /// True if the source writes the record when the call runs, not when the model requests it.
    pub running: bool,
}

impl EventKind {
    /// The names of earlier turns, steps and parts that this event refers to. A caller that has
    /// released closed turns must restore the ones these names lead to first.
    pub fn names(&self) -> Vec<Name> {
        let of_call = |call: &CallRef| match call {
            CallRef::Id(id) => vec![Name::Call(id.clone())],
            CallRef::ByContent(..) => vec![],
        };
        let of_agent = |agent: &AgentRef| {
            let call = agent.call.iter().map(|id| Name::Call(id.clone()));
            call.chain(agent.id.iter().map(|id| Name::Agent(id.clone()))).collect()
        };
        match self {
            EventKind::TurnStarted { names, .. } => names.clone(),
            EventKind::Rewound { turns } => turns.clone(),
            EventKind::StepStarted { step, .. }
            | EventKind::StepEnded { step, .. }
            | EventKind::UsageUpdated { step, .. }
            | EventKind::RequestNamed { step, .. }
            | EventKind::ProvenanceUpdated { step, .. } => vec![step.clone()],
            EventKind::ProseDelta { block, .. } | EventKind::ProseCompleted { block, .. } => {
                block.iter().cloned().collect()
            }
            EventKind::BlockStarted { block } | EventKind::BlockEnded { block } => {
                vec![block.clone()]
            }
            EventKind::ToolInputDelta { call, .. }
            | EventKind::ToolStarted { call }
            | EventKind::ToolOutputDelta { call, .. }
            | EventKind::ToolEnded { call, .. }
            | EventKind::ToolRefined { call, .. }
            | EventKind::QuestionAsked { call, .. }
            | EventKind::QuestionAnswered { call, .. } => of_call(call),
            EventKind::ToolCalled(call) => of_call(&call.call),
            EventKind::AgentStarted { agent, .. }
            | EventKind::AgentProgressed { agent, .. }
            | EventKind::AgentEnded { agent, .. } => of_agent(agent),
            EventKind::Part(name, _) => name.iter().cloned().collect(),
            EventKind::SessionUpdated { .. }
            | EventKind::TitleSet(_)
            | EventKind::StartedBy(_)
            | EventKind::BranchedOff(_)
            | EventKind::OutcomesOnly(_)
            | EventKind::ContextWindowReported { .. }
            | EventKind::SessionEnded
            | EventKind::SessionResumed
            | EventKind::TurnInherited
            | EventKind::UserAdded(_)
            | EventKind::MessageRecordNamed { .. }
            | EventKind::ThinkingUpdated(_)
            | EventKind::TurnEnded(_)
            | EventKind::PromptRecorded(_)
            | EventKind::SnapshotTaken { .. } => vec![],
        }
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
