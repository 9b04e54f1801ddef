//! A digest of everything that was read of a file, updated per line and independent of where
//! reading was interrupted. It detects an in-place rewrite in the middle of a file of unchanged
//! length, which a fingerprint of both ends misses.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use unspool_model::id::digest;

use crate::read::lines::{Lines, ReadPosition};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FileDigest(u64);

impl FileDigest {
    /// The digest of the first `length` bytes of a text.
    pub fn of(text: impl Read, length: u64) -> io::Result<FileDigest> {
        let mut file_digest = FileDigest::default();
        let mut lines = Lines::new(text.take(length), ReadPosition::default());
        while let Some(line) = lines.next_line()? {
            file_digest.add(line.offset, digest(line.bytes));
        }
        if let Some(unfinished) = lines.unfinished() {
            let line = unfinished.as_line();
            file_digest.add(line.offset, digest(line.bytes));
        }
        Ok(file_digest)
    }

    /// The offset is mixed in so that swapped lines give another digest.
    pub(super) fn add(&mut self, offset: u64, of_line: u64) {
        self.0 = self.0.wrapping_add(of_line.wrapping_mul(offset | 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_and_so_does_the_order() {
        let of = |text: &str| FileDigest::of(text.as_bytes(), text.len() as u64).unwrap();
        let text = "{\"a\":1}\n{\"b\":2}\n\n{\"c\":3}";
        assert_eq!(of(text), FileDigest::of(format!("{text}tail").as_bytes(), 24).unwrap());
        assert_ne!(of(text), of(&text.replace('2', "4")));
        assert_ne!(of("{\"a\":1}\n{\"b\":2}\n"), of("{\"b\":2}\n{\"a\":1}\n"));
    }
}
