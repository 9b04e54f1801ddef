//! Events: one thing that happened, in our vocabulary, whatever the source. Decoders make them;
//! the assembler alone reads them.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::part::{
    Answer, Body, Compaction, ContextInfo, Data, Failure, File, Interjection, McpSnapshot, Notice,
    Patch, Question, SkillLoad, SourceLink, TaskList,
};
use crate::session::{ForkedFrom, Parent, Provenance, Title, Trigger, Usage};
use crate::telling::{Evidence, Name, Telling};

/// What orders the events of a session as we took them in. It is never in a part nor in an id.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// What the source calls this event: its record, and which event of that record. The same record
/// gives the same key however often it is read, and that is what makes twice once: a source is
/// read in its order, so an event at or before the last one taken from it was taken already. A
/// file that is rewritten is another source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Key {
    pub record: u64,
    pub nth: u32,
}

/// One thing that happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    pub key: Key,
    pub telling: Telling,
    /// When it happened, by the source's clock. For display: clocks lie and order nothing.
    pub at: Option<Timestamp>,
    pub evidence: Evidence,
    /// The turn that it belongs to, where the source says; else the telling's current turn.
    pub turn: Option<Name>,
    /// The generation of the live stream that it came from. An event of an older stream than
    /// the telling's newest changes nothing (R-003-38).
    pub generation: Option<u32>,
    pub what: What,
}

/// Which call an event speaks of.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// The call with this id.
    Id(Arc<str>),
    /// The n-th call of the turn with this tool and input, for sources that leave the id out.
    Alike(u64, u32),
}

/// Which sub-agent an event speaks of. Either may be unknown; both together join the two.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AgentRef {
    /// The call that started it.
    pub call: Option<Arc<str>>,
    /// The agent's own id.
    pub id: Option<Arc<str>>,
}

/// Who a piece of prose is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Voice {
    /// To the user.
    Text,
    /// To itself.
    Reasoning,
}

/// What a tool call gave back. Absent fields were not told.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub output: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::told"
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
    /// A person rejected it, and the source does not say whether that was an answer to a
    /// question or an interruption. Interrupted, until a question asked about the call says
    /// denied.
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
    /// It went wrong; with what the source says of it.
    Failed(Option<String>),
    /// A person stopped it.
    Interrupted,
    /// The agent went idle, or was silent for too long: nothing is waited for (R-X-13).
    Idle,
    /// The next turn began, and the source never said how this one ended.
    Superseded,
    /// The source says that nobody saw its end (R-002-07).
    Unseen,
}

/// The vocabulary.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    // ── Session ─────────────────────────────────────────────────────────────────────────────
    /// Something about the session as a whole: where it runs, what wrote it, what it cost.
    SessionTold {
        project: Option<String>,
        branch: Option<String>,
        version: Option<String>,
        cost_usd: Option<f64>,
    },
    /// The session has a title.
    TitleTold(Title),
    /// Another session's call started this one.
    StartedBy(Parent),
    /// The session goes on from another one's history.
    BranchedOff(ForkedFrom),
    /// Whether only prompts and their results are known of the session, and nothing between.
    OutcomesOnly(bool),
    /// The agent left the session.
    SessionEnded,

    // ── Turn ────────────────────────────────────────────────────────────────────────────────
    /// A prompt or another trigger arrived. Ends the telling's previous turn if it is open.
    TurnStarted { names: Vec<Name>, trigger: Trigger, user: Vec<Body> },
    /// One more piece of the user's message: a mentioned file, an image.
    UserAdded(Body),
    /// The request said whether the model should think.
    ThinkingTold(bool),
    /// The turn ended, and why.
    TurnEnded(EndReason),
    /// The turn happened in the session that this one branched off: it is shown here, and counts
    /// there. Its usage is not told again.
    TurnInherited,
    /// The user went back behind these turns: they are abandoned, and kept.
    Rewound { turns: Vec<Name> },

    // ── Step ────────────────────────────────────────────────────────────────────────────────
    /// A model call began to answer. Closes what the step before left open.
    StepStarted { step: Name, model: Option<String> },
    /// A model call is answered.
    StepEnded { step: Name, stop_reason: Option<String> },
    /// What a model call used, so far.
    UsageTold { step: Name, usage: Usage },
    /// What the prompt of a model call was made of.
    ProvenanceTold { step: Name, provenance: Provenance },
    /// Content that prompts refer to by its digest: a system policy, tool schemas, a context.
    SnapshotTaken { kind: String, sha256: String, content: Json },

    // ── Prose ───────────────────────────────────────────────────────────────────────────────
    /// Prose grew. With a block name it goes to that block; without one the kind rule decides.
    Grew { voice: Voice, block: Option<Name>, text: String },
    /// A piece of prose, whole. Reconciles with what grew before it.
    Said { voice: Voice, block: Option<Name>, text: String, detail: SaidDetail },
    /// Something begins that goes by this name, and nothing is said of it yet: it stands here,
    /// whenever it is told. Sources that write a block when it is whole say so when it begins.
    BlockStarted { block: Name },
    /// A named block will grow no more.
    BlockEnded { block: Name },

    // ── Tools ───────────────────────────────────────────────────────────────────────────────
    /// The input of a call is being written, as text.
    ToolInputGrew { call: Call, name: String, text: String },
    /// A call was made, with its input whole.
    ToolCalled(Box<ToolCall>),
    /// A call runs.
    ToolStarted { call: Call },
    /// Output arrived while the call runs.
    ToolOutputGrew { call: Call, text: String },
    /// A call ended. A result whose call nobody saw is kept where it arrived.
    ToolEnded { call: Call, end: ToolEnd, outcome: Outcome },
    /// More is known of a call, whatever its state: applies at any time and in any order.
    ToolRefined { call: Call, outcome: Outcome },
    /// The agent asks a person about a call. `requested` says that the call waits for the
    /// answer, so that a rejection which follows is an answer and no interruption.
    QuestionAsked { call: Call, tool: String, question: Question, requested: bool },
    /// The person answered.
    QuestionAnswered { call: Call, answer: Answer },

    // ── Sub-agents ──────────────────────────────────────────────────────────────────────────
    /// A call started a sub-agent.
    AgentStarted { agent: AgentRef, name: String, task: String, background: bool },
    /// What a sub-agent is doing now, or that it went on in the background.
    AgentProgressed { agent: AgentRef, activity: Option<String>, background: bool },
    /// A sub-agent ended.
    AgentEnded { agent: AgentRef, end: AgentEnd },

    // ── Everything else that has a place ────────────────────────────────────────────────────
    /// The user typed something while the turn ran.
    Interjected(Option<Name>, Interjection),
    /// The agent's list of tasks, as it now is.
    TasksListed(Option<Name>, TaskList),
    /// A skill's text was given to the model.
    SkillLoaded(Option<Name>, SkillLoad),
    /// The MCP servers and their tools, as they now are.
    McpListed(Option<Name>, McpSnapshot),
    /// Something was added to the model's context.
    ContextAdded(Option<Name>, ContextInfo),
    /// The conversation was compacted.
    Compacted(Option<Name>, Compaction),
    /// A file, an image or another attachment of the reply.
    FileGiven(Option<Name>, File),
    /// A source that the reply cites.
    SourceCited(Option<Name>, SourceLink),
    /// Files changed on disk.
    Patched(Option<Name>, Patch),
    /// Something worth knowing that is not the model's words.
    Noticed(Option<Name>, Notice),
    /// Something went wrong.
    Failed(Option<Name>, Failure),
    /// Something for which we have no kind.
    DataGiven(Option<Name>, Data),
}

/// What a whole piece of prose carries beside its text.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SaidDetail {
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
    pub call: Call,
    pub parent_call_id: Option<String>,
    pub name: String,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::told"
    )]
    pub input: Option<Json>,
    /// A digest of the tool and its input that does not depend on spaces or on the order of
    /// keys. It finds the call again in tellings that leave the id out.
    pub likeness: u64,
    pub provider_executed: bool,
    pub title: Option<String>,
    /// Whether the source writes it when the call runs, rather than when it is asked for.
    pub running: bool,
}

impl What {
    /// The name and the body of an event that is one part all by itself; the event back
    /// otherwise.
    #[expect(clippy::result_large_err, reason = "the event is taken apart right behind the call")]
    pub(crate) fn into_part(self) -> Result<(Option<Name>, Body), What> {
        Ok(match self {
            What::Interjected(name, data) => (name, Body::Interjection(data)),
            What::TasksListed(name, data) => (name, Body::TaskList(data)),
            What::SkillLoaded(name, data) => (name, Body::SkillLoad(data)),
            What::McpListed(name, data) => (name, Body::McpSnapshot(data)),
            What::ContextAdded(name, data) => (name, Body::ContextInfo(data)),
            What::Compacted(name, data) => (name, Body::Compaction(data)),
            What::FileGiven(name, data) => (name, Body::File(data)),
            What::SourceCited(name, data) => (name, Body::Source(data)),
            What::Patched(name, data) => (name, Body::Patch(data)),
            What::Noticed(name, data) => (name, Body::Notice(data)),
            What::Failed(name, data) => (name, Body::Error(data)),
            What::DataGiven(name, data) => (name, Body::Data(data)),
            other @ (What::SessionTold { .. }
            | What::TitleTold(_)
            | What::StartedBy(_)
            | What::BranchedOff(_)
            | What::OutcomesOnly(_)
            | What::SessionEnded
            | What::TurnInherited
            | What::TurnStarted { .. }
            | What::UserAdded(_)
            | What::ThinkingTold(_)
            | What::TurnEnded(_)
            | What::Rewound { .. }
            | What::StepStarted { .. }
            | What::StepEnded { .. }
            | What::UsageTold { .. }
            | What::ProvenanceTold { .. }
            | What::SnapshotTaken { .. }
            | What::Grew { .. }
            | What::Said { .. }
            | What::BlockStarted { .. }
            | What::BlockEnded { .. }
            | What::ToolInputGrew { .. }
            | What::ToolCalled(_)
            | What::ToolStarted { .. }
            | What::ToolOutputGrew { .. }
            | What::ToolEnded { .. }
            | What::ToolRefined { .. }
            | What::QuestionAsked { .. }
            | What::QuestionAnswered { .. }
            | What::AgentStarted { .. }
            | What::AgentProgressed { .. }
            | What::AgentEnded { .. }) => return Err(other),
        })
    }

    /// The names by which this event finds a turn, a step or a part of before. A caller that
    /// has let closed turns go looks these up and restores their turns first.
    pub fn names(&self) -> Vec<Name> {
        let of_call = |call: &Call| match call {
            Call::Id(id) => vec![Name::Call(id.clone())],
            Call::Alike(..) => vec![],
        };
        let of_agent = |agent: &AgentRef| {
            let call = agent.call.iter().map(|id| Name::Call(id.clone()));
            call.chain(agent.id.iter().map(|id| Name::Agent(id.clone()))).collect()
        };
        match self {
            What::TurnStarted { names, .. } => names.clone(),
            What::Rewound { turns } => turns.clone(),
            What::StepStarted { step, .. }
            | What::StepEnded { step, .. }
            | What::UsageTold { step, .. }
            | What::ProvenanceTold { step, .. } => vec![step.clone()],
            What::Grew { block, .. } | What::Said { block, .. } => block.iter().cloned().collect(),
            What::BlockStarted { block } | What::BlockEnded { block } => vec![block.clone()],
            What::ToolInputGrew { call, .. }
            | What::ToolStarted { call }
            | What::ToolOutputGrew { call, .. }
            | What::ToolEnded { call, .. }
            | What::ToolRefined { call, .. }
            | What::QuestionAsked { call, .. }
            | What::QuestionAnswered { call, .. } => of_call(call),
            What::ToolCalled(call) => of_call(&call.call),
            What::AgentStarted { agent, .. }
            | What::AgentProgressed { agent, .. }
            | What::AgentEnded { agent, .. } => of_agent(agent),
            What::Interjected(name, _)
            | What::TasksListed(name, _)
            | What::SkillLoaded(name, _)
            | What::McpListed(name, _)
            | What::ContextAdded(name, _)
            | What::Compacted(name, _)
            | What::FileGiven(name, _)
            | What::SourceCited(name, _)
            | What::Patched(name, _)
            | What::Noticed(name, _)
            | What::Failed(name, _)
            | What::DataGiven(name, _) => name.iter().cloned().collect(),
            What::SessionTold { .. }
            | What::TitleTold(_)
            | What::StartedBy(_)
            | What::BranchedOff(_)
            | What::OutcomesOnly(_)
            | What::SessionEnded
            | What::TurnInherited
            | What::UserAdded(_)
            | What::ThinkingTold(_)
            | What::TurnEnded(_)
            | What::SnapshotTaken { .. } => vec![],
        }
    }
}
