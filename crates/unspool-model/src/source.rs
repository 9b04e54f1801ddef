//! What is recorded about a source file: how many records it has by outcome, its file system
//! metadata, and a fingerprint of the part that was read. Sources fill these in and the archive
//! stores them.

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

/// Record counts by outcome, so that nothing is lost silently (law 4). `read` is always the sum of
/// the others.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RecordCounts {
    pub read: u64,
    pub in_parts: u64,
    pub metadata: u64,
    pub left_out: BTreeMap<String, u64>,
    pub unreadable: u64,
}

impl RecordCounts {
    /// Counts one record.
    pub fn add(&mut self, outcome: &RecordOutcome) {
        self.read += 1;
        match outcome {
            RecordOutcome::InParts => self.in_parts += 1,
            RecordOutcome::Metadata => self.metadata += 1,
            RecordOutcome::LeftOut(kind) => *self.left_out.entry(kind.clone()).or_default() += 1,
            RecordOutcome::Unreadable(_) => self.unreadable += 1,
        }
    }

    /// Adds the counts of another source.
    pub fn merge(&mut self, other: &RecordCounts) {
        self.read += other.read;
        self.in_parts += other.in_parts;
        self.metadata += other.metadata;
        self.unreadable += other.unreadable;
        for (kind, count) in &other.left_out {
            *self.left_out.entry(kind.clone()).or_default() += count;
        }
    }
}

/// File system metadata of a file. An equal stamp means an unchanged file; if it differs, the
/// fingerprint decides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FileStamp {
    pub size: u64,
    /// The mtime in nanoseconds since 1970. Programs may set it.
    pub modified: i64,
    /// The ctime in nanoseconds since 1970. Programs cannot set it. 0 on systems other than Unix,
    /// as are the inode and the device.
    pub changed: i64,
    pub inode: u64,
    pub device: u64,
}

/// Identifies the first `offset` bytes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// How many bytes it covers: the position up to which the file was read.
    pub offset: u64,
    /// A digest of the first bytes, at most 4096.
    pub head: u64,
    /// A digest of the last bytes, at most 4096.
    pub tail: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law 4: `read` is the sum of the others, however counts come together.
    #[test]
    fn counts_add_up() {
        let outcomes = [
            RecordOutcome::InParts,
            RecordOutcome::Metadata,
            RecordOutcome::left_out("a"),
            RecordOutcome::left_out("b"),
            RecordOutcome::Unreadable("why".to_owned()),
        ];
        let mut one = RecordCounts::default();
        outcomes.iter().for_each(|outcome| one.add(outcome));
        let mut all = one.clone();
        all.merge(&one);
        for counts in [one, all] {
            let left_out: u64 = counts.left_out.values().sum();
            let sum = counts.in_parts + counts.metadata + left_out + counts.unreadable;
            assert_eq!(counts.read, sum);
        }
    }
}
