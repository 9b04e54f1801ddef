//! Fingerprints identify a file by its content. Logs are appended to, truncated, replaced, rotated,
//! compressed, rewritten in place with their old mtime, and deleted, so a path alone does not
//! identify a log.
//!
//! The fingerprint covers the part that was read: digests of its first and its last bytes. Together
//! with the `FileStamp` of the file it decides what to do:
//!
//! - The stamp is unchanged: nothing to read.
//! - The file is at least as long as the part that was read, and the fingerprint matches: continue
//!   from there.
//! - Otherwise it is another file: read it from the start. The assembler ignores events that it has
//!   already seen.
//!
//! A byte changed in place, more than 4096 bytes from both ends of the part that was read, leaves
//! the fingerprint unchanged, and the stored events stay as they are. No agent writes that way.

use std::io::{self, Read, Seek, SeekFrom};

use unspool_model::id::digest;
use unspool_model::source::Fingerprint;

/// How many bytes of each end are digested.
const SAMPLE_BYTES: u64 = 4096;

/// The fingerprint of the first `offset` bytes. An error if there are fewer. Moves the file's read
/// position.
pub fn fingerprint(mut file: impl Read + Seek, offset: u64) -> io::Result<Fingerprint> {
    let sampled = SAMPLE_BYTES.min(offset);
    let mut bytes = [0; SAMPLE_BYTES as usize];
    let bytes = &mut bytes[..sampled as usize];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(bytes)?;
    let head = digest(bytes);
    if offset > sampled {
        file.seek(SeekFrom::Start(offset - sampled))?;
        file.read_exact(bytes)?;
    }
    Ok(Fingerprint { offset, head, tail: digest(bytes) })
}

/// True if a file begins with the same bytes, as far as the digests of both ends can tell.
pub fn matches(print: Fingerprint, file: impl Read + Seek) -> io::Result<bool> {
    match fingerprint(file, print.offset) {
        Ok(found) => Ok(found == print),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
