//! The messages between a remote reader and a server: one JSON text per WebSocket message.

use serde::{Deserialize, Serialize};

use super::{Query, Response};
use crate::live::{Update, WriteNotice};
use crate::request::Request;

/// Both sides must run the same version, because responses serialise the program's own types.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Maximum size of a query message.
pub const MAX_QUERY_BYTES: usize = 64 * 1024;

/// Maximum size of a response message.
pub const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;

/// The first message of a reader.
pub const READER_HELLO: &str = r#"{"read":true}"#;

/// A query from the reader. `number` is the reader's own id for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClientMessage {
    pub number: u64,
    pub query: Query,
}

/// A change that the reader asks for. The server refuses all but annotations
/// ([`Request::is_annotation`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeMessage {
    pub number: u64,
    pub change: Request,
}

/// A message from the server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ServerMessage {
    /// The server accepts queries and reports every write from now on.
    Ready { version: String },
    /// The response to the query with this number.
    Response { number: u64, response: Response },
    /// [`Update::Written`].
    Written(WriteNotice),
    /// [`Update::Lagged`].
    Lagged,
    /// The message was invalid. The server closes the connection.
    Error { detail: String },
}

impl From<Update<WriteNotice>> for ServerMessage {
    fn from(update: Update<WriteNotice>) -> ServerMessage {
        match update {
            Update::Written(write) => ServerMessage::Written(write),
            Update::Lagged => ServerMessage::Lagged,
        }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
