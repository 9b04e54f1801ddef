//! Fingerprints: how a file is known again. Logs are appended to, cut, replaced, rotated, packed,
//! rewritten in place with the time they had before, and deleted; so a file is what is in it, and
//! its path only says where to look.
//!
//! The fingerprint of the part that was read is a digest of its first and of its last bytes.
//! Together with the `Stamp` of the file it says what to do:
//!
//! - Nothing of the stamp has changed: there is nothing to read.
//! - The file is at least as long as what was read, and the fingerprint matches: read on from
//!   there.
//! - Anything else: another file. Read it from the start; the fold ignores what it has seen.
//!
//! A byte that is changed in place, more than 4096 bytes from either end of what was read, leaves
//! the fingerprint as it is: what was taken stays as it was taken. No agent writes so.

use std::io::{self, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use unspool_core::id::digest;

/// How much of either end counts.
const REACH: u64 = 4096;

/// What the first `offset` bytes of a file look like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Fingerprint {
    /// How much of the file it stands for: up to where it was read.
    pub offset: u64,
    /// A digest of the first bytes of it, 4096 at most.
    pub head: u64,
    /// A digest of the last bytes of it, 4096 at most.
    pub tail: u64,
}

impl Fingerprint {
    /// The fingerprint of the first `offset` bytes. An error if there are fewer. Moves the place
    /// where the file is read next.
    pub fn of(mut file: impl Read + Seek, offset: u64) -> io::Result<Fingerprint> {
        let reach = REACH.min(offset);
        let mut bytes = [0; REACH as usize];
        let bytes = &mut bytes[..reach as usize];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(bytes)?;
        let head = digest(bytes);
        if offset > reach {
            file.seek(SeekFrom::Start(offset - reach))?;
            file.read_exact(bytes)?;
        }
        Ok(Fingerprint { offset, head, tail: digest(bytes) })
    }

    /// Whether a file begins with what this stands for, as far as a fingerprint can tell.
    pub fn matches(&self, file: impl Read + Seek) -> io::Result<bool> {
        match Fingerprint::of(file, self.offset) {
            Ok(found) => Ok(found == *self),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
