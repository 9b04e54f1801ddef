//! Turns: one trigger and the whole reply to it, with what the assembler keeps to apply a late
//! event (`TurnOrigin`).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::message_record::MessageRecords;
use super::step::{Step, Usage, models};
use crate::event::{EndReason, ProseKind};
use crate::id::{StepId, TurnId};
use crate::part::{Body, Part};
use crate::price::Spending;
use crate::provenance::{Feed, Name, Positions};
use crate::rank::{Ranks, TurnField};

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

impl Turn {
    /// False if no source reports how the turn ended: the next turn began, or its agent is gone.
    /// The state then follows from the turn's parts (R-X-18).
    pub fn is_end_observed(&self) -> bool {
        let reports = |end: &TurnEnd| match end.reason {
            EndReason::Completed
            | EndReason::Failed(_)
            | EndReason::Interrupted
            | EndReason::Idle => true,
            EndReason::Superseded | EndReason::Lost | EndReason::Unseen => false,
        };
        match self.state {
            TurnState::Running | TurnState::Unknown => true,
            TurnState::Completed | TurnState::Failed | TurnState::Interrupted => {
                self.number == 0
                    || self.origin.ends.iter().all(Option::is_none)
                    || self.origin.ends.iter().flatten().any(reports)
            }
        }
    }

    /// True for a preamble without content: it is no turn to a person, so it is neither shown nor
    /// counted. A feed that names no turns has its calls there until another feed says which turns
    /// they belong to, and an agent that reports tokens per session has a step there
    /// (`Name::Session`), which counts in the session's usage.
    pub fn is_blank(&self) -> bool {
        self.number == 0 && self.user.is_empty() && self.parts.is_empty()
    }

    /// A copy without its parts and its steps, which may be many and large.
    pub fn head(&self) -> Turn {
        Turn {
            id: self.id,
            number: self.number,
            trigger: self.trigger,
            user: self.user.clone(),
            thinking_mode: self.thinking_mode,
            state: self.state,
            abandoned: self.abandoned,
            inherited: self.inherited,
            started: self.started,
            ended: self.ended,
            steps: Vec::new(),
            parts: Vec::new(),
            origin: self.origin.clone(),
        }
    }

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

/// What the assembler needs to know about a turn and no surface shows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TurnOrigin {
    pub names: Vec<Name>,
    /// The turn's position in each feed.
    pub at: Positions,
    /// For each feed, the time of the first turn in the file or stream that placed this one, in
    /// milliseconds. Files of one feed follow each other in this order, whichever is read first.
    #[serde(default, skip_serializing_if = "has_no_start")]
    pub source_starts: [Option<i64>; 3],
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
    /// For each feed, the position after the last part that it has here and that a stronger feed
    /// has in another turn. Later parts get the same positions whichever feed came first.
    #[serde(default, skip_serializing_if = "has_no_position")]
    pub next_positions: [u32; 3],
    /// The records of the source that the turn's messages begin with.
    #[serde(default, skip_serializing_if = "MessageRecords::is_empty")]
    pub records: MessageRecords,
}

fn has_no_position(positions: &[u32; 3]) -> bool {
    *positions == [0; 3]
}

fn has_no_start(starts: &[Option<i64>; 3]) -> bool {
    starts.iter().all(Option::is_none)
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
    pub const ALL: [TurnState; 5] = [
        TurnState::Running,
        TurnState::Completed,
        TurnState::Failed,
        TurnState::Interrupted,
        TurnState::Unknown,
    ];

    pub fn of_name(name: &str) -> Option<TurnState> {
        TurnState::ALL.into_iter().find(|state| state.name() == name)
    }

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
