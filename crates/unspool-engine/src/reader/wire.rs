//! What a reader and a server that is elsewhere say to each other, one JSON text after the other.

use serde::{Deserialize, Serialize};
use unspool_core::id::SessionId;

use super::{Answer, Growth, Wish};

/// Both sides are of this version, or do not understand each other: what is answered is made of the
/// program's own types.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// No wish is longer than this, in bytes.
pub const LONGEST_WISH: usize = 64 * 1024;

/// No answer is longer than this, in bytes.
pub const LONGEST_ANSWER: usize = 32 * 1024 * 1024;

/// What a reader says first.
pub const READ: &str = r#"{"read":true}"#;

/// What a reader says after that: a wish, under a number of its own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Wished {
    pub number: u64,
    pub wish: Wish,
}

/// What a server says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Said {
    /// From now on wishes are heard, and everything that is written is told.
    Ready { version: String },
    /// What is answered to the wish of this number.
    Answer { number: u64, answer: Answer },
    /// Something was written into this session.
    Written { session: SessionId, growth: Growth },
    /// Something was left out: look again.
    Missed,
    /// What was said makes no sense, and nothing follows.
    Error { detail: String },
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
