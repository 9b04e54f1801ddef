//! Write requests: what a surface or a command wants changed in the archive. Surfaces do not write;
//! they hand a request to a handler that the binary provides. `unspool-ingest` executes it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use unspool_model::id::SessionId;

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
    /// Imports the agents of an application's database.
    ReadAgents {
        database: PathBuf,
        reason: ReadReason,
    },
}

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
