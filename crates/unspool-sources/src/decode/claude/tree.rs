//! The tree of a log's records, reduced to the turn of each record. A prompt whose parent is a
//! record of an earlier turn is a rewind: it abandons the turns between.
//!
//! This is the only decoder state that grows with every record: eight bytes in memory, eleven when
//! saved. A prompt may refer to any earlier record (`--resume-session-at`), so none can be dropped.

use serde::{Deserialize, Serialize};
use unspool_model::id::digest;
use unspool_model::provenance::Name;

/// The records and turns of a log, in order.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::decode) struct Tree {
    /// Digests of the uuids of all records.
    #[serde(with = "packed")]
    records: Vec<u64>,
    /// The number of records before each turn.
    turns: Vec<usize>,
    /// The turns on the live branch: the number in `turns`, from 1, and the name.
    live: Vec<(usize, Name)>,
}

impl Tree {
    /// Starts a turn.
    pub fn begin(&mut self, name: Name) {
        self.turns.push(self.records.len());
        self.live.push((self.turns.len(), name));
    }

    /// The name of the latest turn.
    pub fn current(&self) -> Option<&Name> {
        self.live.last().map(|(_, name)| name)
    }

    /// Adds a record to the current turn, by a digest of its uuid.
    pub fn note(&mut self, record: u64) {
        self.records.push(record);
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.turns.is_empty()
    }

    pub fn contains(&self, record: u64) -> bool {
        self.records.contains(&record)
    }

    /// Goes back to the turn of this record. Returns the abandoned turns.
    pub fn rewind(&mut self, uuid: &str) -> Vec<Name> {
        let record = digest(uuid.as_bytes());
        // From the end: the parent of nearly every prompt is one of the last records.
        let Some(at) = self.records.iter().rposition(|held| *held == record) else {
            return Vec::new();
        };
        let turn = self.turns.partition_point(|before| *before <= at);
        let kept = self.live.partition_point(|(live, _)| *live <= turn);
        self.live.drain(kept..).map(|(_, name)| name).collect()
    }
}

/// Stores digests as one string: eleven characters of six bits each.
mod packed {
    use std::borrow::Cow;

    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    const DIGEST_CHARS: usize = 11;
    /// The first of 64 consecutive characters. Only the backslash would need an escape; `z`
    /// replaces it.
    const FIRST_CHAR: u8 = b'0';

    pub fn serialize<S: Serializer>(digests: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(DIGEST_CHARS * digests.len());
        for digest in digests {
            for at in 0..DIGEST_CHARS {
                text.push(char::from(letter((digest >> (6 * at)) as u8 & 63)));
            }
        }
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let whole = text.as_bytes().chunks_exact(DIGEST_CHARS);
        if !whole.remainder().is_empty() {
            return Err(D::Error::custom("not a list of digests"));
        }
        let digest = |letters: &[u8]| {
            letters
                .iter()
                .rev()
                .fold(0_u64, |digest, letter| digest << 6 | u64::from(value(*letter)))
        };
        Ok(whole.map(digest).collect())
    }

    fn letter(value: u8) -> u8 {
        let letter = FIRST_CHAR + value;
        if letter == b'\\' { b'z' } else { letter }
    }

    fn value(letter: u8) -> u8 {
        let letter = if letter == b'z' { b'\\' } else { letter };
        letter.wrapping_sub(FIRST_CHAR) & 63
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
