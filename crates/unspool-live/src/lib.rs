//! Drives an agent through the Agent Client Protocol (ACP).
//!
//! A chat is one connection to one agent. `chat` decides what happens, without I/O: messages of the
//! agent and commands of clients go in, effects come out. `host` owns the agent's process, executes
//! the effects and appends both directions of the wire to a capture, which the recorder reads like
//! any other source. `client` finds, starts and attaches to hosts. `proxy` records an agent that another
//! program drives.
//!
//! What can be answered lives in the host; what happened lives in the archive.

pub mod agents;
mod answer;
#[cfg(unix)]
pub mod answer_hook;
pub mod chat;
pub mod form;
pub mod mcp;
pub mod open;
pub mod outgoing;
pub mod project_files;
pub mod protocol;
pub mod wire;

#[cfg(unix)]
pub mod client;
#[cfg(unix)]
pub mod follow;
#[cfg(unix)]
pub mod host;
pub mod opencode_question;
#[cfg(unix)]
pub mod proxy;
#[cfg(unix)]
pub mod question_host;
