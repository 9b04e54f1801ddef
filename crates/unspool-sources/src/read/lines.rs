//! Lines of JSON, read piece by piece: from a file, a pipe or a growing log, in chunks of any
//! size, cut anywhere. Bytes go in, whole lines come out with their number and their place in the
//! file; decoders parse them. Holds the line that is not finished yet and nothing else.
//!
//! Lines end at the byte 0x0A and nowhere else: agents write U+2028, U+0085 and the like raw
//! inside a line (Claude Code 2.1.325). Nothing here looks at the encoding, so a line that is not
//! UTF-8 reaches its decoder, which reports it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use memchr::memchr;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const CHUNK: usize = 256 * 1024;
/// What the buffer for unfinished lines may keep between lines: one line of 100 MB must not hold
/// its memory for the rest of a long run.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// A whole line that is not blank, without its line end and without a byte order mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line<'a> {
    /// Counted from 1; blank lines count.
    pub number: u64,
    /// Where `bytes` begin in the file.
    pub offset: u64,
    pub bytes: &'a [u8],
}

/// The start of a line, to read on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The number of the line that begins here, counted from 1.
    pub number: u64,
    pub offset: u64,
}

impl Default for Position {
    /// The start of the file.
    fn default() -> Position {
        Position { number: 1, offset: 0 }
    }
}

/// What stands behind the last line end. It is no error: it may still be being written, or the
/// writer ends its files without a line end. A caller who finds whole JSON in it may take it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfinished {
    pub number: u64,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl Unfinished {
    /// The same as if its line end had come.
    pub fn as_line(&self) -> Line<'_> {
        let bytes = self.bytes.strip_suffix(b"\r").unwrap_or(&self.bytes);
        Line { number: self.number, offset: self.offset, bytes }
    }
}

/// Cuts chunks into lines.
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
    /// The start of the line that is not finished.
    next: Position,
    /// As much of it as has come.
    held: Vec<u8>,
}

impl LineReader {
    pub fn new() -> LineReader {
        LineReader::default()
    }

    /// Goes on where another reader stood.
    pub fn resume(position: Position) -> LineReader {
        LineReader { next: position, held: Vec::new() }
    }

    /// The start of the first line that has not been given out: where to resume.
    pub fn position(&self) -> Position {
        self.next
    }

    /// Takes the next bytes of the file and gives out the lines that they finish.
    ///
    /// A line that lies whole in the chunk is given out as a slice of it. Other bytes are copied
    /// once, and each byte is searched once, so a line costs its length however it is cut.
    pub fn push(&mut self, chunk: &[u8], take: &mut impl FnMut(Line<'_>)) {
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            let (bytes, behind) = rest.split_at(end);
            if self.held.is_empty() {
                give(self.next, bytes, take);
                self.advance(bytes.len());
            } else {
                self.held.extend_from_slice(bytes);
                give(self.next, &self.held, take);
                self.advance(self.held.len());
                self.held.clear();
                self.held.shrink_to(KEPT_CAPACITY);
            }
            rest = &behind[1..];
        }
        self.held.extend_from_slice(rest);
    }

    /// Moves behind a line of this length and its line end.
    fn advance(&mut self, length: usize) {
        self.next.number += 1;
        self.next.offset += length as u64 + 1;
    }

    /// Ends the reading and hands over what stands behind the last line end, unless it is blank.
    pub fn finish(self) -> Option<Unfinished> {
        let mut bytes = self.held;
        let mark = mark_length(self.next, &bytes);
        bytes.drain(..mark);
        let Position { number, offset } = self.next;
        let unfinished = Unfinished { number, offset: offset + mark as u64, bytes };
        (!is_blank(&unfinished.bytes)).then_some(unfinished)
    }
}

fn give(start: Position, bytes: &[u8], take: &mut impl FnMut(Line<'_>)) {
    let mark = mark_length(start, bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let bytes = bytes.get(mark..).unwrap_or_default();
    if !is_blank(bytes) {
        take(Line { number: start.number, offset: start.offset + mark as u64, bytes });
    }
}

/// How much of the line is a byte order mark. It is one at the start of a file only.
fn mark_length(start: Position, bytes: &[u8]) -> usize {
    let marked = start.offset == 0 && bytes.starts_with(BYTE_ORDER_MARK);
    if marked { BYTE_ORDER_MARK.len() } else { 0 }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().is_empty()
}

/// Where a reading ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Where to resume: behind the last whole line.
    pub position: Position,
    pub unfinished: Option<Unfinished>,
}

/// Reads all lines of a source, through a buffer of fixed size.
pub fn read(mut source: impl Read, take: &mut impl FnMut(Line<'_>)) -> io::Result<End> {
    let mut reader = LineReader::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => {
                let position = reader.position();
                return Ok(End { position, unfinished: reader.finish() });
            }
            Ok(length) => reader.push(&buffer[..length], take),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads all lines of a file.
pub fn read_file(path: &Path, take: &mut impl FnMut(Line<'_>)) -> io::Result<End> {
    read(File::open(path)?, take)
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
