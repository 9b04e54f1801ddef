//! The messages between a host and its clients, and the state of a chat that clients show.
//!
//! A client gets a greeting with the whole state, then the fields that change. It sends numbered
//! commands; each gets one reply. Messages are lines of JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use unspool_model::agent::own_call_id;
use unspool_sources::decode::acp::form_request;

use crate::form::FormField;
use crate::wire::RequestId;

/// Raised with every incompatible change. A client of another version may only read.
pub const SOCKET_VERSION: u32 = 1;

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
}

/// A question of the agent that nobody has answered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Our number of the question. The agent's ids may come again, and an answer must not be taken
    /// for another question.
    pub id: String,
    /// The agent's request.
    pub request: RequestId,
    pub session: String,
    /// The call that it is about, by the agent's id.
    pub call: Option<String>,
    pub text: String,
    pub kind: RequestedInput,
    /// What it is about, as the agent describes it: command, diff, file.
    pub subject: Value,
    /// When it came, in milliseconds.
    pub since: u64,
}

impl OpenQuestion {
    /// True if it is about a call of the archive.
    pub fn is_about(&self, agent: &str, call: &str) -> bool {
        match &self.call {
            Some(own) => own_call_id(agent, call) == own,
            None => {
                form_request(call).is_some_and(|id| id == self.request.as_json().trim_matches('"'))
            }
        }
    }
}

/// Who answers in the dialog of the agent itself, as `by` of an answer.
pub const AGENT_TERMINAL: &str = "agent's terminal";
/// What such an answer is, where nothing more is known.
pub const ANSWERED: &str = "answered";

/// An answer that was given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GivenAnswer {
    /// Counts the answers of the chat.
    pub number: u64,
    pub question: String,
    pub text: String,
    /// A surface, or `rule`.
    pub by: String,
    pub answer: String,
}

impl GivenAnswer {
    /// Who answered what, for those who did not.
    pub fn sentence(&self) -> String {
        let place = if self.by == AGENT_TERMINAL { "in" } else { "by" };
        let answer = Some(&self.answer).filter(|answer| *answer != ANSWERED);
        let answer = answer.map(|answer| format!(": {answer}")).unwrap_or_default();
        format!("answered {place} the {}{answer}", self.by)
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestedInput {
    Permission(Vec<PermissionOption>),
    Form(Vec<FormField>),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PermissionOption {
    pub id: String,
    /// The agent's label.
    pub label: String,
    /// What the agent says it does. The person sees our word for it.
    pub kind: PermissionKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// The agent names no kind that we know: neither yes nor no.
    Other,
}

impl PermissionKind {
    pub fn allows(self) -> bool {
        matches!(self, PermissionKind::AllowOnce | PermissionKind::AllowAlways)
    }

    pub fn refuses(self) -> bool {
        matches!(self, PermissionKind::RejectOnce | PermissionKind::RejectAlways)
    }

    /// Our word for it.
    pub fn word(self) -> &'static str {
        match self {
            PermissionKind::AllowOnce => "allow once",
            PermissionKind::AllowAlways => "always allow",
            PermissionKind::RejectOnce => "refuse",
            PermissionKind::RejectAlways => "always refuse",
            PermissionKind::Other => "other",
        }
    }
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
