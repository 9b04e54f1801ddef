//! What goes into a chat, what comes out, and how it is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Exit, Policy};
use crate::outgoing::{FileLink, Outgoing};
use crate::protocol::{Command, Outcome};
use crate::wire::Message;

/// Something that happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Input {
    /// The agent's process runs.
    Started,
    /// The agent's program could not be started, or its input could not be written.
    Failed(String),
    Message(Message),
    /// Output of the agent that is not of the protocol.
    Junk {
        bytes: u64,
    },
    /// These lines are in the agent's standard input.
    Written {
        prompt: Option<u64>,
    },
    Exited(Exit),
    Client {
        client: u64,
        number: u64,
        by: String,
        command: Command,
    },
    /// A client connected or left; how many there are now.
    Clients(usize),
    /// The capture is at this path, or cannot be written for this reason.
    Capture(Result<PathBuf, String>),
    /// Time passed.
    Tick,
}

/// Something to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    Send(Outgoing),
    /// Begins the capture: the agent has said who it is.
    OpenCapture {
        agent: String,
    },
    /// A line of our own in the capture.
    Note(Value),
    Reply {
        client: u64,
        number: u64,
        outcome: Outcome,
    },
    /// Ends the agent's processes; an `Exited` follows.
    Stop,
}

/// How to start a chat.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChatSpec {
    /// The agent's name in the archive; None to take it from the agent itself.
    pub agent: Option<String>,
    pub command: Vec<String>,
    pub folder: PathBuf,
    /// The session to go on with.
    pub resume: Option<String>,
    pub mode: Option<String>,
    pub model: Option<String>,
    #[serde(default)]
    pub policy: Policy,
    /// How often each prompt stood in that session before, by its digest.
    #[serde(default)]
    pub prompts: BTreeMap<u64, u32>,
    /// The chat ends after this time without clients and without work, in milliseconds.
    pub linger: Option<u64>,
    /// The way to log in, by the agent's id of it, before the session is opened.
    #[serde(default)]
    pub log_in: Option<String>,
}

/// Finds the files of a folder that a text mentions. The host does it: it needs the disk.
pub type LinkFinder = fn(&Path, &str) -> Vec<FileLink>;
