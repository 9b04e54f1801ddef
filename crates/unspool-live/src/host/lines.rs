//! Lines of an agent's output. A line that is too long is skipped in pieces, never held.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use xxhash_rust::xxh3::Xxh3Default;

use super::capture::Junk;

/// A longer line is not kept.
pub const MAX_LINE: usize = 32 * 1024 * 1024;
/// How much of such a line is kept to show.
const HEAD: usize = 1000;

/// One line, or why there is none.
#[derive(PartialEq, Eq, Debug)]
pub enum Line {
    Text(String),
    /// Not text, or too long.
    Unreadable(Junk),
    End,
}

/// Reads lines. A read that is dropped and started again loses nothing.
pub struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// The size of a line that is too long, so far, and its digest.
    skipped: u64,
    digest: Xxh3Default,
    max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(reader: R) -> Lines<R> {
        Lines::with_limit(reader, MAX_LINE)
    }

    fn with_limit(reader: R, max: usize) -> Lines<R> {
        let reader = BufReader::with_capacity(64 * 1024, reader);
        Lines { reader, line: Vec::new(), skipped: 0, digest: Xxh3Default::new(), max }
    }

    pub async fn next(&mut self) -> io::Result<Line> {
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                // The end cuts a last line off.
                let whole = self.line.is_empty() && self.skipped == 0;
                return Ok(if whole { Line::End } else { self.take() });
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            if self.skipped == 0 && self.line.len() + piece.len() <= self.max {
                self.line.extend_from_slice(piece);
            } else {
                if self.skipped == 0 {
                    self.digest = Xxh3Default::new();
                    self.digest.update(&self.line);
                    self.skipped = self.line.len() as u64;
                }
                self.digest.update(piece);
                self.skipped += piece.len() as u64;
                let missing = HEAD.saturating_sub(self.line.len()).min(piece.len());
                self.line.extend_from_slice(&piece[..missing]);
                self.line.truncate(HEAD);
                self.line.shrink_to(HEAD);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_none() {
                continue;
            }
            if self.skipped > 0 || !self.line.trim_ascii().is_empty() {
                return Ok(self.take());
            }
            self.line.clear();
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        let skipped = std::mem::take(&mut self.skipped);
        let size = if skipped > 0 { skipped } else { line.len() as u64 };
        let digest = (skipped > 0).then(|| self.digest.digest());
        match String::from_utf8(line) {
            Ok(text) if skipped == 0 => Line::Text(text),
            Ok(head) => Line::Unreadable(Junk { size, digest, head }),
            Err(error) => {
                let head = String::from_utf8_lossy(error.as_bytes()).chars().take(HEAD).collect();
                Line::Unreadable(Junk { size, digest, head })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_and_long_ones_are_skipped() {
        let text = format!("one\r\n\n{}\nthree\n\u{fffd}", "x".repeat(5000)).into_bytes();
        let text: Vec<u8> = text.into_iter().chain([0xff, 0xfe]).collect();
        let mut lines = Lines::with_limit(text.as_slice(), 2000);
        assert_eq!(lines.next().await.unwrap(), Line::Text("one\r".to_owned()));
        let Line::Unreadable(junk) = lines.next().await.unwrap() else { panic!() };
        assert_eq!((junk.size, junk.head.len()), (5000, 1000));
        let digest = xxhash_rust::xxh3::xxh3_64("x".repeat(5000).as_bytes());
        assert_eq!(junk.digest, Some(digest));
        assert_eq!(lines.next().await.unwrap(), Line::Text("three".to_owned()));
        let Line::Unreadable(junk) = lines.next().await.unwrap() else { panic!() };
        assert_eq!((junk.size, junk.digest), (5, None));
        assert_eq!(lines.next().await.unwrap(), Line::End);
    }
}
