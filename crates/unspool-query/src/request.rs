//! Write requests: what a surface or a command wants changed in the archive. Surfaces do not write;
//! they hand a request to a handler that the binary provides. `unspool-ingest` executes it.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::id::SessionId;
use unspool_model::note::NoteTarget;

/// A write request. Paths are absolute, because the recorder may have another working directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    Tag {
        session: SessionId,
        add: Vec<String>,
        remove: Vec<String>,
    },
    Rename {
        session: SessionId,
        /// None restores the agent's own title.
        name: Option<String>,
    },
    /// Writes the one note that a target has, or removes it.
    Note {
        session: SessionId,
        target: NoteTarget,
        /// Empty for a bookmark. None removes the note.
        text: Option<String>,
    },
    Delete {
        session: SessionId,
    },
    /// Reads files.
    ReadFiles {
        paths: Vec<PathBuf>,
        reason: ReadReason,
    },
    /// Reads input that was not a file; the sender has copied it into one.
    ReadText {
        name: String,
        text_file: PathBuf,
        reason: ReadReason,
    },
    /// Takes units of files of another machine (`ship`), which the sender has copied into a file.
    Receive {
        /// Who sent them. Files of different senders have different names.
        sender: Sender,
        units: PathBuf,
    },
    /// Imports the agents of an application's database.
    ReadAgents {
        database: PathBuf,
        reason: ReadReason,
    },
}

impl Request {
    /// True if it changes what the user keeps beside a transcript: a name, tags or a note. Other
    /// machines may ask for these and for nothing else.
    pub fn is_annotation(&self) -> bool {
        match self {
            Request::Tag { .. } | Request::Rename { .. } | Request::Note { .. } => true,
            Request::Delete { .. }
            | Request::ReadFiles { .. }
            | Request::ReadText { .. }
            | Request::Receive { .. }
            | Request::ReadAgents { .. } => false,
        }
    }
}

/// A member and one of the member's machines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sender {
    pub member: String,
    pub machine: String,
}

/// Executes a request and returns a message for the user. It waits for the process that records.
pub type ChangeHandler = Arc<dyn Fn(Request) -> Result<String, String> + Send + Sync>;

/// Why files are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadReason {
    /// A scan found them.
    Scan,
    /// The user named them: read them completely, without waiting for more data.
    Named,
    /// Like `Named`, and deleted sessions are restored.
    Restore,
}
