//! What became of every record: nothing is lost without being counted (law 4).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What became of one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is in a part, or in what the user said.
    InParts,
    /// It is in what is known of the session, a turn or a step.
    Metadata,
    /// Deliberately left out, by its kind.
    LeftOut(String),
    /// It could not be read, and why.
    Unreadable(String),
}

impl Fate {
    pub fn left_out(kind: impl Into<String>) -> Fate {
        Fate::LeftOut(kind.into())
    }
}

/// The count of records by what became of them. `read` is always the sum of the others.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Ledger {
    pub read: u64,
    pub in_parts: u64,
    pub metadata: u64,
    pub left_out: BTreeMap<String, u64>,
    pub unreadable: u64,
}

impl Ledger {
    pub fn enter(&mut self, fate: &Fate) {
        self.read += 1;
        match fate {
            Fate::InParts => self.in_parts += 1,
            Fate::Metadata => self.metadata += 1,
            Fate::LeftOut(kind) => *self.left_out.entry(kind.clone()).or_default() += 1,
            Fate::Unreadable(_) => self.unreadable += 1,
        }
    }
}

/// Something a person should know about a file that was read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Warning {
    pub file: String,
    pub line: u64,
    pub what: String,
    /// The bytes of a line that could not be read: they are kept.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}
