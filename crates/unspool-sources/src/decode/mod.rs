//! Decoders: named pieces of input in, events out. A decoder knows its vendor's format and
//! nothing else: it does no I/O and assembles no turns. What it needs to remember of earlier
//! records it keeps itself, so that any record gives the same events however it arrives.

mod ai_sdk;
mod canonical;
pub mod claude;
pub mod codex;
pub mod copilot;
mod emit;
mod fields;
pub mod gemini;
mod ledger;
pub mod opencode;
mod outline;
pub mod rows;
pub mod thoughtflow;

pub use emit::{Emit, Record};
pub use fields::{Fields, json_of};
pub use ledger::{Fate, Ledger, Warning};
pub use outline::Outline;

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use unspool_core::event::Event;
use unspool_core::telling::{Name, Telling};

/// Turns the records of one telling of one session into events.
pub trait Decoder: Send {
    /// Decodes one record. Says what became of it.
    fn decode(&mut self, record: &Record<'_>, fields: &Fields<'_>, out: &mut Vec<Event>) -> Fate;

    /// What is wrong with a record that is read all the same: where, and what. Asked before it is
    /// decoded.
    fn check(&self, _fields: &Fields<'_>) -> Result<(), String> {
        Ok(())
    }

    /// What it remembers of the records so far, for `Format::resume`. It costs what it holds, so
    /// it is for the end of a batch and not for every record.
    fn save(&self) -> Option<String>;

    /// The turn that it is at, where it names turns itself.
    fn turn(&self) -> Option<Name> {
        None
    }

    /// The sub-agent whose record this is, where a session's log holds those of its sub-agents as
    /// well. Asked once for each record, before anybody decodes it.
    fn side_chain(&mut self, _session: &str, _fields: &Fields<'_>) -> Option<SideChain> {
        None
    }

    /// Where the session runs, for its sub-agents in the same file, whose records do not say it.
    fn surroundings(&self) -> Option<Surroundings> {
        None
    }

    /// Begins as the decoder of a sub-agent of a session that runs there.
    fn begin_in(&mut self, _surroundings: Surroundings) {}

    /// Side chains of which nothing more will come: what their decoders remember can be let go.
    fn ended_chains(&mut self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// Begins as the decoder of a side chain.
    fn follow(&mut self, _chain: &SideChain) {}
}

/// Where a session runs, and what wrote it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Surroundings {
    pub project: Option<String>,
    pub branch: Option<String>,
    pub version: Option<String>,
}

/// A sub-agent whose records stand in the log of the session that started it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideChain {
    /// What it goes by.
    pub id: Arc<str>,
    /// The session that it works for: the log's own, or another side chain.
    pub parent: Arc<str>,
    /// The call that started it, as which kind of agent and what for.
    pub call: Option<Arc<str>>,
    pub kind: Option<String>,
    pub title: Option<String>,
}

impl SideChain {
    pub fn of(id: Arc<str>, session: &str) -> SideChain {
        SideChain { id, parent: session.into(), call: None, kind: None, title: None }
    }
}

/// A format that we read: one line in the registry makes it known to every command.
pub struct Format {
    /// The agent's name on the command line: `claude-code`.
    pub agent: &'static str,
    pub telling: Telling,
    /// How many sessions one file of it tells of.
    pub tells: Tells,
    /// What a person would call it.
    pub name: &'static str,
    /// The session that a record of this format belongs to, or `None` if it is no such record.
    pub recognise: for<'a> fn(&Fields<'a>) -> Option<Recognised<'a>>,
    pub decoder: fn() -> Box<dyn Decoder>,
    /// A decoder that goes on where another one was saved; nothing if that was another version's.
    pub resume: fn(&str) -> Option<Box<dyn Decoder>>,
}

/// How many sessions a file tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tells {
    /// One, and all that is in the file belongs to it, whatever a record says.
    One,
    /// Several: each record says whose it is.
    Several,
}

/// What a record says of where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recognised<'a> {
    /// To the session with this id.
    Session(Cow<'a, str>),
    /// To the session of a sub-agent, which works for another.
    SubAgent { id: Cow<'a, str>, parent: Option<Cow<'a, str>> },
    /// To the session that the file told of first.
    Own,
    /// To this format; the session is not said here.
    Format,
    /// To this format; the session is called so if nobody says it.
    Named(Cow<'a, str>),
    /// To the session with this id; but what comes before this record and behind it looks alike
    /// in another format, and the next record decides.
    Perhaps(Cow<'a, str>),
}

/// A decoder whose fields are all that it remembers.
fn resume<D: Decoder + DeserializeOwned + 'static>(saved: &str) -> Option<Box<dyn Decoder>> {
    Some(Box::new(serde_json::from_str::<D>(saved).ok()?))
}

/// Every format that we read. Claude Code's stream takes whatever names a session and a type, and
/// its hooks whatever names an event: what looks like them and says more stands before them.
pub static FORMATS: &[Format] = &[
    thoughtflow::DOCUMENT,
    gemini::STREAM,
    claude::LOG,
    claude::STREAM,
    codex::HOOKS,
    claude::HOOKS,
    codex::LOG,
    codex::EXEC,
    codex::SERVER,
    copilot::LOG,
    copilot::STREAM,
    copilot::HOOKS,
    gemini::LOG,
    gemini::HOOKS,
    opencode::LOG,
    opencode::EXPORT,
    opencode::EVENTS,
    opencode::RUN,
    ai_sdk::DOCUMENT,
    ai_sdk::STREAM,
    // The least certain last.
    rows::ROWS,
];

/// The format of a record.
pub fn recognise<'a>(fields: &Fields<'a>) -> Option<(&'static Format, Recognised<'a>)> {
    // What `unspool hook` took down says whose payload it is.
    let agent = fields.text("agent").filter(|_| fields.has("payload") && fields.has("event"));
    let formats = FORMATS.iter().filter(|format| match &agent {
        Some(agent) => format.agent == agent && format.telling == Telling::Hooks,
        None => true,
    });
    formats.into_iter().find_map(|format| Some((format, (format.recognise)(fields)?)))
}

#[cfg(test)]
mod declared_tests;
#[cfg(test)]
mod normalised_tests;
