//! Splits a file, a pipe or a growing log into lines, from chunks of any size. Complete lines come
//! out with their number and offset; decoders parse them. Buffers only the unfinished line.
//!
//! Lines end at the byte 0x0A only: agents write U+2028, U+0085 and similar raw inside a line
//! (Claude Code 2.1.325). The encoding is not checked here; the decoder reports a line that is not
//! UTF-8.

use std::io::{self, Read};
use std::path::Path;

use memchr::memchr;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use super::regular_file::open_regular;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const CHUNK_BYTES: usize = 256 * 1024;
/// The size of the first read: most files are small, and a new buffer must be zeroed.
const FIRST_CHUNK_BYTES: usize = 16 * 1024;
/// The capacity kept between lines, so that one line of 100 MB does not hold its memory for the
/// rest of a long run.
const MAX_RETAINED_BYTES: usize = 1024 * 1024;

/// The longest line that is read. A record holds a whole tool result or file, some of them of tens
/// of megabytes; without a limit, a small compressed file could fill the memory.
pub const MAX_LINE_BYTES: usize = 128 * 1024 * 1024;
/// How much of a longer line is kept, to see what it was.
const KEPT_BYTES: usize = 1024;

/// A complete line that is not blank, without its line end and without a byte order mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line<'a> {
    /// Counted from 1; blank lines count.
    pub number: u64,
    /// The offset of `bytes` in the file.
    pub offset: u64,
    pub bytes: &'a [u8],
}

/// The start of a line, from which reading can continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReadPosition {
    /// The number of the line that begins here, counted from 1.
    pub number: u64,
    pub offset: u64,
}

impl ReadPosition {
    /// The start of the line after one of this length.
    fn after(self, length: usize) -> ReadPosition {
        ReadPosition { number: self.number + 1, offset: self.offset + length as u64 + 1 }
    }
}

impl Default for ReadPosition {
    /// The start of the file.
    fn default() -> ReadPosition {
        ReadPosition { number: 1, offset: 0 }
    }
}

/// The bytes after the last line end. Not an error: a program may still be writing the line, or may
/// end its files without a line end. A caller may decode it if it is complete JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfinished {
    pub number: u64,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl Unfinished {
    /// The same bytes as a complete line.
    pub fn as_line(&self) -> Line<'_> {
        let bytes = self.bytes.strip_suffix(b"\r").unwrap_or(&self.bytes);
        Line { number: self.number, offset: self.offset, bytes }
    }
}

/// A line that was left out because of its length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverlongLine {
    pub number: u64,
    pub offset: u64,
    pub length: u64,
    /// The XXH3 digest of the whole line.
    pub digest: u64,
    /// Its first bytes.
    pub start: Vec<u8>,
}

/// A line that is being skipped.
struct Skipping {
    start: Vec<u8>,
    length: u64,
    digest: Xxh3Default,
}

/// Splits chunks into lines.
///
/// ```
/// use unspool_sources::read::lines::LineReader;
///
/// let mut reader = LineReader::new();
/// let mut lines = Vec::new();
/// for chunk in [b"{\"a\":1}\n{\"b".as_slice(), b"\":2}\n{\"c\""] {
///     reader.push(chunk, &mut |line| lines.push((line.number, line.bytes.to_vec())));
/// }
/// assert_eq!(lines, [(1, b"{\"a\":1}".to_vec()), (2, b"{\"b\":2}".to_vec())]);
/// assert_eq!(reader.finish().unwrap().bytes, b"{\"c\"");
/// ```
#[derive(Debug, Default)]
pub struct LineReader {
    /// The start of the unfinished line.
    next: ReadPosition,
    /// The bytes of it so far.
    held: Vec<u8>,
}

impl LineReader {
    pub fn new() -> LineReader {
        LineReader::default()
    }

    /// Continues from the position of another reader.
    pub fn resume(position: ReadPosition) -> LineReader {
        LineReader { next: position, held: Vec::new() }
    }

    /// The start of the first line that was not emitted: where to resume.
    pub fn position(&self) -> ReadPosition {
        self.next
    }

    /// Takes the next bytes of the file and emits the lines that they complete.
    ///
    /// A line entirely inside the chunk is emitted as a slice of it. Other bytes are copied once,
    /// and each byte is searched once, so the cost is linear however the input is split.
    pub fn push(&mut self, chunk: &[u8], take: &mut impl FnMut(Line<'_>)) {
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            let (bytes, after) = rest.split_at(end);
            if self.held.is_empty() {
                cut(self.next, bytes).into_iter().for_each(&mut *take);
                self.next = self.next.after(bytes.len());
            } else {
                self.held.extend_from_slice(bytes);
                cut(self.next, &self.held).into_iter().for_each(&mut *take);
                self.next = self.next.after(self.held.len());
                self.held.clear();
                self.held.shrink_to(MAX_RETAINED_BYTES);
            }
            rest = &after[1..];
        }
        self.held.extend_from_slice(rest);
    }

    /// Ends reading. Returns the bytes after the last line end, unless they are blank.
    pub fn finish(self) -> Option<Unfinished> {
        unfinished(self.next, &self.held)
    }
}

/// The line that begins at `start`, unless it is blank.
fn cut(start: ReadPosition, bytes: &[u8]) -> Option<Line<'_>> {
    let mark = mark_length(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let bytes = bytes.get(mark..).unwrap_or_default();
    let line = Line { number: start.number, offset: start.offset + mark as u64, bytes };
    (!is_blank(bytes)).then_some(line)
}

fn unfinished(start: ReadPosition, bytes: &[u8]) -> Option<Unfinished> {
    let mark = mark_length(bytes);
    let bytes = bytes[mark..].to_vec();
    let ReadPosition { number, offset } = start;
    (!is_blank(&bytes)).then_some(Unfinished { number, offset: offset + mark as u64, bytes })
}

/// The length of a byte order mark. No record begins with one, so a line in the middle of a file has
/// it where two files were joined.
fn mark_length(bytes: &[u8]) -> usize {
    if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().is_empty()
}

/// The lines of a source, one at a time, so that the caller can stop after any of them and knows
/// the position.
///
/// ```
/// use unspool_sources::read::lines::{Lines, ReadPosition};
///
/// let mut lines = Lines::new(b"one\ntwo\nthr".as_slice(), ReadPosition::default());
/// assert_eq!(lines.next_line().unwrap().unwrap().bytes, b"one");
/// assert_eq!(lines.position(), ReadPosition { number: 2, offset: 4 });
/// assert_eq!(lines.next_line().unwrap().unwrap().bytes, b"two");
/// assert!(lines.next_line().unwrap().is_none());
/// assert_eq!(lines.unfinished().unwrap().bytes, b"thr");
/// ```
pub struct Lines<R> {
    source: R,
    /// A longer line is left out.
    limit: usize,
    skipping: Option<Box<Skipping>>,
    overlong: Vec<OverlongLine>,
    buffer: Vec<u8>,
    /// `start..end` was read and not yet emitted; `start..searched` holds no line end.
    start: usize,
    searched: usize,
    end: usize,
    /// The position of `start` in the file.
    next: ReadPosition,
}

impl<R: Read> Lines<R> {
    /// `source` must already be at `from`.
    pub fn new(source: R, from: ReadPosition) -> Lines<R> {
        Lines::with_limit(source, from, MAX_LINE_BYTES)
    }

    fn with_limit(source: R, from: ReadPosition, limit: usize) -> Lines<R> {
        Lines {
            source,
            limit,
            skipping: None,
            overlong: Vec::new(),
            buffer: vec![0; FIRST_CHUNK_BYTES],
            start: 0,
            searched: 0,
            end: 0,
            next: from,
        }
    }

    /// Where to continue: after the last emitted line and the blank lines that follow it.
    pub fn position(&self) -> ReadPosition {
        self.next
    }

    /// The next complete line that is not blank. `None` at the end of the source; call again if
    /// the source has grown.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let (start, bytes) = loop {
            match memchr(b'\n', &self.buffer[self.searched..self.end]) {
                Some(found) => {
                    let bytes = self.start..self.searched + found;
                    if self.skipping.is_some() || bytes.len() > self.limit {
                        self.skip_to(bytes.end);
                        self.end_skipped_line(1);
                        continue;
                    }
                    let start = self.next;
                    self.next = start.after(bytes.len());
                    (self.start, self.searched) = (bytes.end + 1, bytes.end + 1);
                    if cut(start, &self.buffer[bytes.clone()]).is_some() {
                        break (start, bytes);
                    }
                }
                None => {
                    self.searched = self.end;
                    if self.skipping.is_some() || self.end - self.start > self.limit {
                        self.skip_to(self.end);
                    }
                    if self.fill()? == 0 {
                        return Ok(None);
                    }
                }
            }
        };
        Ok(cut(start, &self.buffer[bytes]))
    }

    /// Drops bytes of a line that is too long.
    fn skip_to(&mut self, end: usize) {
        let bytes = &self.buffer[self.start..end];
        let skipping = self.skipping.get_or_insert_with(|| {
            let start = bytes[..bytes.len().min(KEPT_BYTES)].to_vec();
            Box::new(Skipping { start, length: 0, digest: Xxh3Default::new() })
        });
        skipping.length += bytes.len() as u64;
        skipping.digest.update(bytes);
        (self.start, self.searched) = (end, end);
    }

    /// Goes on behind a skipped line and its line end, which has no bytes at the end of the source.
    fn end_skipped_line(&mut self, line_end: usize) {
        let Some(skipped) = self.skipping.take() else { return };
        let ReadPosition { number, offset } = self.next;
        let Skipping { start, length, digest } = *skipped;
        self.overlong.push(OverlongLine { number, offset, length, digest: digest.digest(), start });
        self.next = ReadPosition { number: number + 1, offset: offset + length + line_end as u64 };
        (self.start, self.searched) = (self.start + line_end, self.start + line_end);
    }

    /// The lines left out since the last call because of their length.
    pub fn take_overlong(&mut self) -> Vec<OverlongLine> {
        std::mem::take(&mut self.overlong)
    }

    /// Ends a last line that is too long and has no line end.
    pub fn end_overlong(&mut self) -> Vec<OverlongLine> {
        if self.skipping.is_some() {
            self.end_skipped_line(0);
        }
        self.take_overlong()
    }

    /// Reads more into the buffer: the unfinished line is moved to the front, and the buffer grows
    /// for a line that is longer than it.
    fn fill(&mut self) -> io::Result<usize> {
        let held = self.end - self.start;
        let full = self.end == self.buffer.len();
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.searched, self.end) = (0, self.searched - self.start, held);
        }
        if held == self.buffer.len() {
            self.buffer.resize(2 * held, 0);
        } else if full && self.buffer.len() < CHUNK_BYTES {
            self.buffer.resize(CHUNK_BYTES, 0);
        } else if self.buffer.len() > MAX_RETAINED_BYTES && held < CHUNK_BYTES {
            self.buffer.truncate(CHUNK_BYTES);
            self.buffer.shrink_to_fit();
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(length) => {
                    self.end += length;
                    return Ok(length);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The bytes after the last line end, unless they are blank.
    pub fn unfinished(&self) -> Option<Unfinished> {
        unfinished(self.next, &self.buffer[self.start..self.end])
    }
}

/// Where reading ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinesEnd {
    /// Where to resume: after the last complete line.
    pub position: ReadPosition,
    pub unfinished: Option<Unfinished>,
}

/// Reads all lines of a source, through a buffer of fixed size.
pub fn read(source: impl Read, take: &mut impl FnMut(Line<'_>)) -> io::Result<LinesEnd> {
    let mut lines = Lines::new(source, ReadPosition::default());
    while let Some(line) = lines.next_line()? {
        take(line);
    }
    Ok(LinesEnd { position: lines.position(), unfinished: lines.unfinished() })
}

/// Reads all lines of a file.
pub fn read_file(path: &Path, take: &mut impl FnMut(Line<'_>)) -> io::Result<LinesEnd> {
    read(open_regular(path)?, take)
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
