//! The messages between a remote reader and a server: one JSON text per WebSocket message.

use serde::{Deserialize, Serialize};
use unspool_core::id::SessionId;

use super::{Answer, Growth, Wish};

/// Both sides must run the same version, because responses serialise the program's own types.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Maximum size of a query message.
pub const LONGEST_WISH: usize = 64 * 1024;

/// Maximum size of a response message.
pub const LONGEST_ANSWER: usize = 32 * 1024 * 1024;

/// The first message of a reader.
pub const READ: &str = r#"{"read":true}"#;

/// A query from the reader. `number` is the reader's own id for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Wished {
    pub number: u64,
    pub wish: Wish,
}

/// A message from the server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Said {
    /// The server accepts queries and reports every write from now on.
    Ready { version: String },
    /// The response to the query with this number.
    Answer { number: u64, answer: Answer },
    /// This session was written to.
    Written { session: SessionId, growth: Growth },
    /// Updates were dropped; the reader must reload.
    Missed,
    /// The message was invalid. The server closes the connection.
    Error { detail: String },
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
