//! Decoders turn the records of one vendor's format into events. Each agent has a folder with its
//! formats and its entry of the agent table (`crate::agents`). A decoder does no I/O and assembles
//! no turns. It keeps the state that it needs from earlier records, so a record gives the same
//! events no matter how the input is split.

pub mod acp;
pub mod ai_sdk;
pub mod aider;
pub mod atif;
mod canonical_json;
pub mod claude;
pub mod cline;
pub mod codex;
pub mod continue_dev;
pub mod copilot;
mod cost_sum;
pub mod droid;
mod emitter;
mod fields;
pub mod gemini;
mod injected;
mod json_outline;
pub mod kilo;
mod mcp_servers;
pub mod mini_swe_agent;
pub mod opencode;
mod permission;
pub mod pi;
mod prompt_names;
mod prompt_pieces;
pub mod qwen;
mod referenced_files;
pub mod rows;
mod sent_requests;
pub mod thoughtflow;
mod warning;

pub use emitter::{Emitter, Record};
pub use fields::{Fields, json_of};
pub use json_outline::JsonOutline;
pub(crate) use prompt_names::PromptNames;
pub use prompt_names::prompt_hash;
pub use unspool_model::source::{RecordCounts, RecordOutcome};
pub use warning::Warning;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use unspool_model::event::Event;
use unspool_model::provenance::{Feed, Name};

use crate::agents::AGENTS;

/// Turns the records of one feed of one session into events.
pub trait Decoder: Send {
    /// Decodes one record into events. Returns its outcome for the record counts.
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome;

    /// Validates a record before it is decoded. An error names the field and the problem; the
    /// record is decoded anyway.
    fn check(&self, _fields: &Fields<'_>) -> Result<(), String> {
        Ok(())
    }

    /// The state so far, for `Format::resume`. The cost grows with the state, so call it at the
    /// end of a batch, not per record.
    fn save(&self) -> Option<String>;

    /// The current turn, if the format names turns.
    fn turn(&self) -> Option<Name> {
        None
    }

    /// The sub-agent of a record, for logs that also hold the records of sub-agents. Called once
    /// per record, before it is decoded.
    fn side_chain(&mut self, _session: &str, _fields: &Fields<'_>) -> Option<SideChain> {
        None
    }

    /// The context of the session, for sub-agents in the same file whose records omit it.
    fn session_context(&self) -> Option<SessionContext> {
        None
    }

    /// Starts as the decoder of a sub-agent with the context of its parent session.
    fn inherit_context(&mut self, _context: SessionContext) {}

    /// Side chains that have ended: the state of their decoders can be dropped.
    fn ended_chains(&mut self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// The conversations of sub-agents that are inside a record as a whole. Each is decoded as one
    /// record of its side chain, after the record itself.
    fn nested<'a>(&self, _session: &str, _fields: &Fields<'a>) -> Vec<(SideChain, Fields<'a>)> {
        Vec::new()
    }

    /// Takes over from the state of the decoder of the text that was in the same file before. Called
    /// before the first record.
    fn replace(&mut self, _former: &str) {}

    /// Starts as the decoder of a side chain.
    fn begin_side_chain(&mut self, _chain: &SideChain) {}
}

/// Where a session runs, and the version of the program that wrote it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionContext {
    pub project: Option<String>,
    pub branch: Option<String>,
    pub version: Option<String>,
}

/// A sub-agent whose records are in the log of the session that started it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideChain {
    /// The session id of the sub-agent.
    pub id: Arc<str>,
    /// The session that started it: the log's own, or another side chain.
    pub parent: Arc<str>,
    /// The call that started it, and that call's agent type and description.
    pub call: Option<Arc<str>>,
    pub kind: Option<String>,
    pub title: Option<String>,
}

impl SideChain {
    pub fn of(id: Arc<str>, session: &str) -> SideChain {
        SideChain { id, parent: session.into(), call: None, kind: None, title: None }
    }
}

/// A supported format. Listed in `Agent::formats`, it is available to every command.
pub struct Format {
    /// The agent's name on the command line: `claude-code`.
    pub agent: &'static str,
    pub feed: Feed,
    /// How many sessions one file holds.
    pub sessions_per_file: SessionsPerFile,
    /// The display name.
    pub name: &'static str,
    /// The owner of a record, or `None` if the record is not of this format.
    pub recognise: for<'a> fn(&Fields<'a>) -> Option<RecordOwner<'a>>,
    pub decoder: fn() -> Box<dyn Decoder>,
    /// A decoder that continues from a saved state; `None` if another version saved it.
    pub resume: fn(&str) -> Option<Box<dyn Decoder>>,
    pub precedence: Precedence,
    /// Records that show the format. Tests hold all formats against them.
    pub samples: &'static [&'static str],
}

impl Format {
    /// The agent of a file that this record decides, if it is not that of the format.
    pub(crate) fn agent_of(&self, fields: &Fields<'_>) -> Option<&'static str> {
        let is_open = self.agent == acp::AGENT.name;
        is_open.then(|| acp::agent_of_record(fields)).filter(|agent| *agent != self.agent)
    }
}

/// How many sessions a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionsPerFile {
    /// One: every record belongs to it, whatever id the record names.
    One,
    /// Several: each record names its session.
    Several,
}

/// The session that a record belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordOwner<'a> {
    /// The session with this id.
    Session(Cow<'a, str>),
    /// The session of a sub-agent, with the session that started it.
    SubAgent { id: Cow<'a, str>, parent: Option<Cow<'a, str>> },
    /// The main session of the file.
    MainSession,
    /// The format matches; the record names no session.
    Format,
    /// The format matches; use this id if no record names the session.
    FallbackId(Cow<'a, str>),
    /// The session with this id, but another format begins with the same record: the next record
    /// decides. The id is empty if the record names no session.
    Ambiguous(Cow<'a, str>),
}

/// Restores a decoder whose saved state is its serialised fields.
fn resume<D: Decoder + DeserializeOwned + 'static>(saved: &str) -> Option<Box<dyn Decoder>> {
    Some(Box::new(serde_json::from_str::<D>(saved).ok()?))
}

/// How much of a record a format looks at before it claims it. Formats are tried in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Precedence {
    /// It recognises fields or values that only its agent writes.
    Specific,
    /// It also matches records of other agents: Claude Code's log and stream have any record with a
    /// session and a type, its hooks any record with an event name, and Kilo writes what OpenCode
    /// writes.
    General,
    /// It matches any record with text.
    Fallback,
}

/// The formats of all agents; the first match wins.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    static FORMATS: LazyLock<Vec<&'static Format>> = LazyLock::new(|| {
        let mut formats: Vec<_> = AGENTS.iter().flat_map(|agent| agent.formats).collect();
        formats.sort_by_key(|format| format.precedence);
        formats
    });
    FORMATS.iter().copied()
}

/// The format of a record.
pub fn recognise<'a>(fields: &Fields<'a>) -> Option<(&'static Format, RecordOwner<'a>)> {
    // A payload spooled by `unspool hook` names its agent.
    let agent = fields.text("agent").filter(|_| fields.has("payload") && fields.has("event"));
    let mut formats = formats().filter(|format| match &agent {
        Some(agent) => format.agent == agent && format.feed == Feed::Hooks,
        None => true,
    });
    formats.find_map(|format| Some((format, (format.recognise)(fields)?)))
}

#[cfg(test)]
mod event_mapping_tests;
#[cfg(test)]
mod format_registry_tests;
