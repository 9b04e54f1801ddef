//! The messages between a host and its clients, and the state of a chat that clients show.
//!
//! A client gets a greeting with the whole state, then the fields that change. It sends numbered
//! commands; each gets one reply. Messages are lines of JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod question;

pub use question::{
    AGENT_TERMINAL, ANSWERED, GivenAnswer, OpenQuestion, PermissionKind, PermissionOption,
    RequestedInput, other_surface,
};

/// Raised with every incompatible change. A client of another version may only read.
pub const SOCKET_VERSION: u32 = 2;

/// A line from the host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostMessage {
    /// The greeting: the whole state.
    Hello { version: u32, chat: String, process: u32, state: Map<String, Value> },
    /// The fields of the state that changed.
    Changed(Map<String, Value>),
    /// The reply to a command.
    Done { number: u64, outcome: Outcome },
}

/// What became of a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Accepted,
    /// Why nothing was done.
    Refused(String),
    /// Somebody else was first.
    Already {
        by: String,
        answer: String,
    },
}

/// A line from a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClientMessage {
    pub number: u64,
    /// The surface: `terminal`, `browser`, `command line`.
    pub by: String,
    #[serde(rename = "do")]
    pub command: Command,
}

/// What a client wants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Sends a message, or queues it while the agent works.
    Prompt {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<PromptImage>,
        /// While the agent works: into its turn where it can, else instead of the rest of it.
        #[serde(default)]
        at_once: bool,
    },
    Answer {
        question: String,
        answer: UserAnswer,
    },
    /// Interrupts the turn.
    Cancel,
    /// Changes a queued message.
    Edit {
        message: u64,
        text: String,
    },
    /// Takes a queued message back.
    Remove {
        message: u64,
    },
    /// Puts a queued message at this position.
    Move {
        message: u64,
        position: usize,
    },
    /// Lets a queue go on that was held after a failure.
    Release,
    /// Sets an option: mode, model, and what else the agent offers.
    Set {
        option: String,
        value: Value,
    },
    /// Keeps text that is not sent yet: of the composer, or of a question. An agent in its own
    /// terminal is told the text of its question if the answer is a refusal.
    Draft {
        question: Option<String>,
        text: String,
    },
    /// Begins a new session in the same chat.
    Clear,
    /// Ends the agent and the chat.
    End,
}

impl Command {
    /// A message of text, to be queued while the agent works.
    pub fn prompt(text: String) -> Command {
        Command::Prompt { text, images: Vec::new(), at_once: false }
    }
}

/// A picture that goes with a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PromptImage {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes in Base64.
    pub data: String,
}

/// A person's answer to a question.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserAnswer {
    /// The id of an option of a permission.
    Option(String),
    /// The values of a form, by field.
    Form(BTreeMap<String, FieldValue>),
    /// Neither yes nor no.
    Decline,
    /// No, to talk about it first: the next message is about it.
    Discuss,
}

/// The value of one field of a form.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FieldValue {
    /// The chosen options by value, or the one text that was typed.
    pub chosen: Vec<String>,
    /// The person's own words beside the options.
    pub own_words: Option<String>,
}

/// What a chat does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The agent starts.
    Starting,
    /// It waits for a message.
    Idle,
    /// It works on one.
    Running,
    /// It works, was interrupted, and has not stopped yet.
    Cancelling,
    Ended,
}

/// The state of a chat: what clients show and what a restart needs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatState {
    pub phase: Phase,
    /// The agent runs in its own terminal: its questions can be answered here, and nothing else.
    pub answers_only: bool,
    /// Why the chat ended, in a sentence.
    pub reason: Option<String>,
    /// The agent's name in the archive, such as `claude-code`.
    pub agent: String,
    /// The agent's own name and version.
    pub program: Option<String>,
    pub folder: PathBuf,
    /// The agent's id of the session.
    pub session: Option<String>,
    pub capture: Option<PathBuf>,
    pub queue: Vec<QueuedMessage>,
    /// Why the queue waits for a person.
    pub held: Option<String>,
    pub questions: Vec<OpenQuestion>,
    /// The last answers, oldest first: whoever did not answer learns who did.
    pub answers: Vec<GivenAnswer>,
    pub options: Vec<AgentOption>,
    pub commands: Vec<SlashCommand>,
    pub plan: Vec<PlanEntry>,
    /// The agent takes images.
    pub takes_images: bool,
    pub draft: String,
    /// Drafts of answers, by question.
    pub answer_drafts: BTreeMap<String, String>,
    /// Why the wire is not recorded, while it is not.
    pub unrecorded: Option<String>,
    /// The agent has written nothing since this time, though it works (milliseconds).
    pub silent_since: Option<u64>,
    /// It did not react to an interruption: only ending it helps.
    pub stuck: bool,
    /// A short message about something that went wrong, such as an option that was refused.
    pub notice: Option<String>,
    /// Lines of the agent that are not of the protocol.
    pub junk: u64,
    /// The stop reason of the last turn, or its error.
    pub last_turn: Option<TurnEnd>,
}

/// How a turn ended on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TurnEnd {
    /// The number of turns that have ended in this chat.
    pub number: u64,
    pub stop_reason: Option<String>,
    pub error: Option<String>,
}

/// A message that was not sent yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueuedMessage {
    pub id: u64,
    pub text: String,
    pub by: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<PromptImage>,
    /// It does not wait for the end of the turn.
    #[serde(default)]
    pub at_once: bool,
}

/// Something that the agent lets its user set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AgentOption {
    pub id: String,
    pub name: String,
    /// `mode`, `model`, or the agent's own word.
    pub category: String,
    pub value: Value,
    /// Empty for a switch.
    pub choices: Vec<OptionChoice>,
    /// The request that sets it.
    pub setter: Setter,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setter {
    Option,
    Mode,
    Model,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OptionChoice {
    pub value: Value,
    pub name: String,
    pub description: Option<String>,
}

/// A command of the agent, for the composer to complete.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SlashCommand {
    pub name: String,
    pub description: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlanEntry {
    pub text: String,
    pub status: String,
}

impl Default for ChatState {
    fn default() -> ChatState {
        ChatState {
            phase: Phase::Starting,
            answers_only: false,
            reason: None,
            agent: String::new(),
            program: None,
            folder: PathBuf::new(),
            session: None,
            capture: None,
            queue: Vec::new(),
            held: None,
            questions: Vec::new(),
            answers: Vec::new(),
            options: Vec::new(),
            commands: Vec::new(),
            plan: Vec::new(),
            takes_images: false,
            draft: String::new(),
            answer_drafts: BTreeMap::new(),
            unrecorded: None,
            silent_since: None,
            stuck: false,
            notice: None,
            junk: 0,
            last_turn: None,
        }
    }
}

impl ChatState {
    /// The fields as JSON, for clients.
    pub fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) | Err(_) => Map::new(),
        }
    }

    /// The state that these fields are of.
    pub fn of_fields(fields: Map<String, Value>) -> Option<ChatState> {
        serde_json::from_value(Value::Object(fields)).ok()
    }
}

/// The fields of `new` that differ from `old`.
pub fn changed(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let differs = |(name, value): &(&String, &Value)| old.get(*name) != Some(*value);
    new.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect()
}
