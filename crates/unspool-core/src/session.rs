//! Sessions, turns and steps: the containers of parts. Built by `TranscriptBuilder` from changes,
//! stored as rows, read by `present`, `document` and the projections.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{AgentEnd, EndReason, ProseKind};
use crate::id::{SessionId, StepId, TurnId};
use crate::part::{Body, Part};
use crate::price::Spending;
use crate::provenance::{Evidence, Feed, Name, Positions};
use crate::rank::{Ranks, SessionField, TurnField};

/// One conversation of one agent, whole: its head and its turns in order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transcript {
    pub session: Session,
    pub turns: Vec<Turn>,
}

/// The head of a session.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Session {
    pub id: SessionId,
    /// `claude-code`, `codex`, …
    pub agent: String,
    pub agent_session_id: String,
    pub facts: Facts,
    pub state: SessionState,
    /// The reported parent, completed from the agent part of the session that started this one:
    /// not every source names the call or the right parent of a nested agent.
    pub parent: Option<Parent>,
    pub forked_from: Option<ForkedFrom>,
}

/// Session-level facts from the sources. `None` means that no source reported it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    pub project: Option<String>,
    pub branch: Option<String>,
    /// The version of the agent that wrote it, newest seen.
    pub version: Option<String>,
    pub title: Option<Title>,
    /// What the agent says the session has cost so far.
    pub cost_usd: Option<f64>,
    pub started: Option<Timestamp>,
    /// The parent that the session's own sources report.
    #[serde(default, rename = "parent", skip_serializing_if = "Option::is_none")]
    pub reported_parent: Option<Parent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// The source has only prompts and their results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcomes_only: bool,
    #[serde(default)]
    pub ranks: Ranks<SessionField>,
    /// Ends of sub-agents whose start has not been seen yet.
    #[serde(default, rename = "strangers")]
    pub orphan_agent_ends: Vec<OrphanAgentEnd>,
}

/// The end of a sub-agent that arrived before its start (R-X-04).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OrphanAgentEnd {
    pub id: Arc<str>,
    pub end: AgentEnd,
    pub at: Option<Timestamp>,
    pub evidence: Evidence,
}

/// A title and its origin. A later origin wins: a custom title replaces a generated one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Title {
    pub text: String,
    pub origin: TitleOrigin,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TitleOrigin {
    Prompt,
    Summary,
    Generated,
    Custom,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionState {
    Live,
    #[default]
    Idle,
    Ended,
}

impl SessionState {
    pub fn name(self) -> &'static str {
        match self {
            SessionState::Live => "live",
            SessionState::Idle => "idle",
            SessionState::Ended => "ended",
        }
    }
}

/// The session and the tool call that started a sub-agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Parent {
    pub session: SessionId,
    /// Not every source names the call.
    pub call_id: Option<String>,
    /// The requested kind of agent: `general-purpose`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// The session and the turn that a session branched off.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ForkedFrom {
    pub session: SessionId,
    pub turn: Option<TurnId>,
}

/// One user message, or other trigger, and the whole reply to it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Turn {
    pub id: TurnId,
    /// 0 holds the records before the first prompt.
    pub number: u32,
    pub trigger: Trigger,
    /// The user's own parts, in order.
    pub user: Vec<Body>,
    /// From the request if a source reports it, otherwise true if the turn has reasoning.
    pub thinking_mode: bool,
    pub state: TurnState,
    /// The user rewound past it. It is kept.
    pub abandoned: bool,
    /// Copied from the session that this one branched off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherited: bool,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// In their order.
    pub steps: Vec<Step>,
    /// In their order.
    pub parts: Vec<Part>,
    /// What the assembler needs to apply a late event to this turn.
    pub origin: TurnOrigin,
}

/// What the assembler needs to know about a turn and no surface shows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TurnOrigin {
    pub names: Vec<Name>,
    /// The turn's position in each feed.
    pub at: Positions,
    pub ranks: Ranks<TurnField>,
    /// The end that each feed reports.
    pub ends: [Option<TurnEnd>; 3],
    /// Ends that wait for foreground sub-agents.
    pub deferred: [Option<TurnEnd>; 3],
    /// Whether the request enabled thinking, if a feed reports it.
    pub thinking: Option<bool>,
    /// Leading white space of prose whose first word has not arrived.
    #[serde(rename = "held")]
    pub pending_whitespace: Vec<PendingWhitespace>,
    /// Places of blocks that have begun and have no content yet.
    #[serde(default, rename = "kept", skip_serializing_if = "Vec::is_empty")]
    pub reserved_places: Vec<ReservedPlace>,
}

/// A place that one feed reserves for the block with this name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReservedPlace {
    #[serde(rename = "telling")]
    pub feed: Feed,
    pub block: Name,
    pub position: u32,
}

/// Leading white space that waits for the first word of its block.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PendingWhitespace {
    #[serde(rename = "telling")]
    pub feed: Feed,
    pub block: Option<Name>,
    #[serde(rename = "voice")]
    pub prose_kind: ProseKind,
    pub text: String,
}

/// How one feed reports the end of a turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TurnEnd {
    pub reason: EndReason,
    pub at: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    #[default]
    User,
    Command,
    Hook,
    Schedule,
    /// A background agent or command reported its result.
    Agent,
    Continuation,
}

impl Trigger {
    pub const ALL: [Trigger; 6] = [
        Trigger::User,
        Trigger::Command,
        Trigger::Hook,
        Trigger::Schedule,
        Trigger::Agent,
        Trigger::Continuation,
    ];

    pub fn of_name(name: &str) -> Option<Trigger> {
        Trigger::ALL.into_iter().find(|trigger| trigger.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Trigger::User => "user",
            Trigger::Command => "command",
            Trigger::Hook => "hook",
            Trigger::Schedule => "schedule",
            Trigger::Agent => "agent",
            Trigger::Continuation => "continuation",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnState {
    #[default]
    Running,
    Completed,
    Failed,
    Interrupted,
    /// No end was recorded, and it is unknown whether the turn still runs.
    Unknown,
}

impl TurnState {
    pub fn name(self) -> &'static str {
        match self {
            TurnState::Running => "running",
            TurnState::Completed => "completed",
            TurnState::Failed => "failed",
            TurnState::Interrupted => "interrupted",
            TurnState::Unknown => "unknown",
        }
    }
}

/// One model call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    pub id: StepId,
    pub name: Name,
    pub at: Positions,
    pub model: Option<Arc<str>>,
    pub usage: Usage,
    pub stop_reason: Option<Arc<str>>,
    /// The snapshots and spans of the prompt, if the source records them.
    pub provenance: Option<Provenance>,
}

/// Tokens by kind. `input` excludes cached tokens; `output` includes reasoning, of which
/// `reasoning` is the sub-count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Hash)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub reasoning: u64,
    /// The part of `cache_write` with a lifetime of one hour, which costs more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_1h: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Merges two reports of the same call by taking the larger figures. Sources repeat a call's
    /// usage while it grows, and some never write the last figure.
    pub fn join(&mut self, other: Usage) {
        self.input = self.input.max(other.input);
        self.output = self.output.max(other.output);
        self.cache_read = self.cache_read.max(other.cache_read);
        self.cache_write = self.cache_write.max(other.cache_write);
        self.reasoning = self.reasoning.max(other.reasoning);
        self.cache_write_1h = self.cache_write_1h.max(other.cache_write_1h);
    }

    /// Tokens of all kinds.
    pub fn total(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Adds another call's usage.
    pub fn add(&mut self, other: Usage) {
        // Counts are external input; absurd ones must not overflow.
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cache_write_1h = self.cache_write_1h.saturating_add(other.cache_write_1h);
    }
}

/// The composition of a step's prompt: ordered pieces, the final string, and the character span of
/// each piece in it. Large content is referenced by its SHA-256.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Provenance {
    pub pieces: Vec<PromptPiece>,
    pub final_prompt: Option<String>,
    /// Digests of the snapshots in use: system policy, tool schemas, context.
    pub snapshots: Vec<SnapshotUse>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PromptPiece {
    pub kind: String,
    pub value: String,
    /// Start and end in `final_prompt`, in characters.
    pub span: Option<(u32, u32)>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnapshotUse {
    pub kind: String,
    pub sha256: String,
}

impl Turn {
    /// The text parts, joined: for model history, search and legacy views; never shown in place
    /// of the parts (R-000-16, R-000-17).
    pub fn content(&self) -> String {
        let mut content = String::new();
        for part in &self.parts {
            content.push_str(part.body.prose().unwrap_or_default());
        }
        content
    }

    /// The models of its steps, in the order of their first use.
    pub fn models(&self) -> Vec<&str> {
        models(&self.steps)
    }

    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.steps.iter().for_each(|step| usage.add(step.usage));
        usage
    }

    /// Usage by model.
    pub fn spending(&self) -> Spending {
        let calls = self.steps.iter().map(|step| (step.model.as_deref(), step.usage));
        Spending::of_session(calls, None)
    }

    /// The number of a step in this turn, counted from 1.
    pub fn step_number(&self, id: StepId) -> Option<usize> {
        self.steps.iter().position(|step| step.id == id).map(|at| at + 1)
    }
}

impl Transcript {
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.turns.iter().for_each(|turn| usage.add(turn.usage()));
        usage
    }

    /// Usage by model, and the cost that the agent reports.
    pub fn spending(&self) -> Spending {
        let steps = self.turns.iter().flat_map(|turn| &turn.steps);
        let calls = steps.map(|step| (step.model.as_deref(), step.usage));
        Spending::of_session(calls, self.session.facts.cost_usd)
    }

    /// The title set by a person or the agent, otherwise the beginning of the first prompt.
    pub fn title(&self) -> Option<String> {
        if let Some(title) = &self.session.facts.title {
            return Some(title.text.clone());
        }
        let first = self.turns.iter().find(|turn| turn.number > 0 && !turn.user.is_empty())?;
        title_of_prompt(first.user.iter().find_map(Body::prose)?)
    }

    /// The models of the steps, in the order of their first use.
    pub fn models(&self) -> Vec<&str> {
        models(self.turns.iter().flat_map(|turn| &turn.steps))
    }

    /// The sub-agents that were started here, by their own ids.
    pub fn agent_ids(&self) -> impl Iterator<Item = &str> {
        let bodies = self.turns.iter().flat_map(|turn| &turn.parts).map(|part| &part.body);
        let agents = bodies.filter_map(|body| {
            if let Body::Agent(agents) = body { Some(&agents.agents) } else { None }
        });
        agents.flatten().map(|agent| agent.id.as_str())
    }

    /// The earliest recorded time.
    pub fn started(&self) -> Option<Timestamp> {
        let parts = self.turns.iter().flat_map(|turn| &turn.parts);
        let parts = parts.filter_map(|part| part.started.or(part.ended));
        let turns = self.turns.iter().filter_map(|turn| turn.started.or(turn.ended));
        turns.chain(parts).chain(self.session.facts.started).min()
    }

    /// The latest recorded time.
    pub fn ended(&self) -> Option<Timestamp> {
        let parts = self.turns.iter().flat_map(|turn| &turn.parts);
        let parts = parts.filter_map(|part| part.ended.or(part.started));
        self.turns.iter().filter_map(|turn| turn.ended.or(turn.started)).chain(parts).max()
    }
}

/// The first line of a prompt, as the title of a session without one.
pub fn title_of_prompt(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(120).collect())
}

fn models<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Vec<&'a str> {
    let mut models: Vec<&str> = Vec::new();
    for model in steps.into_iter().filter_map(|step| step.model.as_deref()) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    models
}
