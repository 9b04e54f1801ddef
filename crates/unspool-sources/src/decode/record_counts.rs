//! Counts every record of a source by its outcome, so that nothing is lost silently (law 4), and
//! defines the warnings about files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a decoder did with one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordOutcome {
    /// Its content is in a part or in the user's message.
    InParts,
    /// Its content is in the metadata of the session, a turn or a step.
    Metadata,
    /// Deliberately left out, with its kind.
    LeftOut(String),
    /// Not readable, with the reason.
    Unreadable(String),
}

impl RecordOutcome {
    pub fn left_out(kind: impl Into<String>) -> RecordOutcome {
        RecordOutcome::LeftOut(kind.into())
    }
}

/// Record counts by outcome. `read` is always the sum of the others.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RecordCounts {
    pub read: u64,
    pub in_parts: u64,
    pub metadata: u64,
    pub left_out: BTreeMap<String, u64>,
    pub unreadable: u64,
}

impl RecordCounts {
    pub fn add(&mut self, outcome: &RecordOutcome) {
        self.read += 1;
        match outcome {
            RecordOutcome::InParts => self.in_parts += 1,
            RecordOutcome::Metadata => self.metadata += 1,
            RecordOutcome::LeftOut(kind) => *self.left_out.entry(kind.clone()).or_default() += 1,
            RecordOutcome::Unreadable(_) => self.unreadable += 1,
        }
    }
}

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
