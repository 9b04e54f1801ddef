//! The tree of a log's records, as far as it matters: which turn a record stands in. A prompt that
//! hangs on a record of an earlier turn leaves the turns between behind.
//!
//! It is the one thing in a decoder that grows with every record, for as long as the log is read:
//! eight bytes in memory, eleven when it is saved. A prompt may hang on any record of before
//! (`--resume-session-at`), so none can be let go.

use serde::{Deserialize, Serialize};
use unspool_core::id::digest;
use unspool_core::telling::Name;

/// The records and turns of a log, in their order.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tree {
    /// Digests of the uuids of all records.
    #[serde(with = "packed")]
    records: Vec<u64>,
    /// How many records came before each turn.
    turns: Vec<usize>,
    /// The turns on the live branch: which one of `turns` it is, from 1, and its name.
    live: Vec<(usize, Name)>,
}

impl Tree {
    /// Begins a turn.
    pub fn begin(&mut self, name: Name) {
        self.turns.push(self.records.len());
        self.live.push((self.turns.len(), name));
    }

    /// The name of the latest turn.
    pub fn current(&self) -> Option<&Name> {
        self.live.last().map(|(_, name)| name)
    }

    /// Notes a record of the current turn, by a digest of its uuid.
    pub fn note(&mut self, record: u64) {
        self.records.push(record);
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.turns.is_empty()
    }

    pub fn contains(&self, record: u64) -> bool {
        self.records.contains(&record)
    }

    /// Goes back to the turn of this record. Gives the turns that are left behind.
    pub fn rewind(&mut self, uuid: &str) -> Vec<Name> {
        let record = digest(uuid.as_bytes());
        // From the end: nearly every prompt hangs on one of the last records.
        let Some(at) = self.records.iter().rposition(|held| *held == record) else {
            return Vec::new();
        };
        let turn = self.turns.partition_point(|before| *before <= at);
        let kept = self.live.partition_point(|(live, _)| *live <= turn);
        self.live.drain(kept..).map(|(_, name)| name).collect()
    }
}

/// Digests as one string: eleven characters of six bits for each.
mod packed {
    use std::borrow::Cow;

    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    const WIDTH: usize = 11;
    /// The characters from `0` on, of which none has to be escaped but one, which `z` stands for.
    const FIRST: u8 = b'0';

    pub fn serialize<S: Serializer>(digests: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(WIDTH * digests.len());
        for digest in digests {
            for at in 0..WIDTH {
                text.push(char::from(letter((digest >> (6 * at)) as u8 & 63)));
            }
        }
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let whole = text.as_bytes().chunks_exact(WIDTH);
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
        let letter = FIRST + value;
        if letter == b'\\' { b'z' } else { letter }
    }

    fn value(letter: u8) -> u8 {
        let letter = if letter == b'z' { b'\\' } else { letter };
        letter.wrapping_sub(FIRST) & 63
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
