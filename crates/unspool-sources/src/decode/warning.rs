//! Warnings about files.

use serde::{Deserialize, Serialize};

/// A problem in a file, to be shown to the user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Warning {
    pub file: String,
    pub line: u64,
    pub what: String,
    /// The bytes of an unreadable line; the store keeps them.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}
