//! Decompresses a log, up to a limit: a hundred kilobytes can unpack to gigabytes of lines, each of
//! them short enough to be read.

use std::io::{self, BufReader, Read};

use xxhash_rust::xxh3::Xxh3Default;

/// How much any file may unpack to.
const MIN_LIMIT: u64 = 256 * 1024 * 1024;
/// How much more a larger file may unpack to, per compressed byte. Logs of agents reach 30.
const MAX_RATIO: u64 = 200;

/// The text of a compressed stream. At the limit it ends with an error of the kind `FileTooLarge`.
pub struct Unpacked<R: Read> {
    text: zstd::Decoder<'static, BufReader<Counted<R>>>,
    length: u64,
    min_limit: u64,
}

impl<R: Read> Unpacked<R> {
    pub fn new(packed: R) -> io::Result<Unpacked<R>> {
        Unpacked::with_limit(packed, MIN_LIMIT)
    }

    fn with_limit(packed: R, min_limit: u64) -> io::Result<Unpacked<R>> {
        let counted = Counted { from: packed, length: 0, digest: Xxh3Default::new() };
        Ok(Unpacked { text: zstd::Decoder::new(counted)?, length: 0, min_limit })
    }

    fn limit_error(&mut self) -> io::Error {
        let counted = self.text.get_mut().get_mut();
        if let Err(error) = io::copy(counted, &mut io::sink()) {
            return error;
        }
        let (size, digest) = (counted.length, counted.digest.digest());
        let what = format!(
            "the {size} compressed bytes (xxh3 {digest:016x}) unpack to more than {} bytes; what \
             follows was left out",
            self.length
        );
        io::Error::new(io::ErrorKind::FileTooLarge, what)
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let packed = self.text.get_ref().get_ref().length;
        if self.length >= self.min_limit.max(packed.saturating_mul(MAX_RATIO)) {
            return match self.text.read(&mut [0; 1])? {
                0 => Ok(0),
                _ => Err(self.limit_error()),
            };
        }
        let length = self.text.read(buffer)?;
        self.length += length as u64;
        Ok(length)
    }
}

/// Counts and digests what is read of a stream.
struct Counted<R> {
    from: R,
    length: u64,
    digest: Xxh3Default,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(buffer)?;
        self.length += length as u64;
        self.digest.update(&buffer[..length]);
        Ok(length)
    }
}

#[cfg(test)]
#[path = "packed_tests.rs"]
mod tests;
