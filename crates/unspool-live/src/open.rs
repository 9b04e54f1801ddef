//! What surfaces ask for when they open a chat. The binary starts hosts, because it knows the archive
//! and the configuration.

use std::path::PathBuf;

use unspool_model::id::SessionId;

#[cfg(unix)]
use crate::host::folder::{ChatFolder, ChatFolders};

/// The chat to open.
#[derive(Clone, PartialEq, Debug)]
pub enum ChatRequest {
    /// A new one: an agent by its name in the local list, and the folder in which it works.
    New { agent: String, project: PathBuf },
    /// A chat that runs.
    Attach(String),
    /// The chat that runs for a session, if one does.
    Find(SessionId),
    /// Goes on with a session: in its chat, if one runs.
    Resume(SessionId),
    /// Starts the agent of a chat again that has ended.
    Restart { chat: String, session: Option<String>, id: SessionId },
}

/// Finds or starts the host of a chat.
#[cfg(unix)]
pub type ChatOpener =
    std::sync::Arc<dyn Fn(ChatRequest) -> Result<OpenedChat, String> + Send + Sync>;

/// What to connect to.
#[cfg(unix)]
pub enum OpenedChat {
    /// The chat that drives the agent.
    Chat(ChatFolders, ChatFolder),
    /// No chat drives the session: one may come, and its agent may ask from its own terminal.
    Session { folders: ChatFolders, agent: String, session: String },
}
