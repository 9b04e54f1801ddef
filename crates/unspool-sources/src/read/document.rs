//! A JSON document as lines: each element of a list on a line of its own; or the fields of an
//! object, followed by the elements of its `messages`, or of another list of `OBJECT_LISTS` if these
//! are objects, followed by the remaining fields. Only white space and the commas between elements
//! change. Memory use is bounded by the buffer.
//!
//! ```text
//! [{"a":1}, {"b":2}]                        {"a":1}          {"id":"x"}
//!                                           {"b":2}          {"role":"user"}
//! {"id":"x", "messages":[{"role":"user"}]}             →     {}
//! ```

use std::io::{self, Read};

use unspool_model::json::StringState;

/// The lists that are split into lines; only the first one of a document is.
pub(super) const MESSAGES: &[u8] = b"\"messages\":";
/// Some applications store other values in these, such as ids; those are not split.
pub(super) const OBJECT_LISTS: [&[u8]; 3] = [b"\"conversations\":", b"\"history\":", b"\"steps\":"];

/// Rewrites a document as lines while it is read.
pub struct DocumentLines<R> {
    source: R,
    buffer: Vec<u8>,
    out: Vec<u8>,
    given: usize,
    state: State,
}

#[derive(Default)]
struct State {
    depth: usize,
    string: StringState,
    /// The depth of the elements that become lines; `None` before and after the list.
    lines: Option<usize>,
    /// The document is an object and its list was found.
    listed: bool,
    /// A string at depth one with the colon after it, held back because it may be the name of the
    /// list.
    held: Vec<u8>,
    /// A list of `OBJECT_LISTS` has begun; its first element decides whether it is split.
    perhaps: bool,
    /// This line has fields of the object.
    fields: bool,
    /// A comma followed them.
    comma: bool,
}

impl<R: Read> DocumentLines<R> {
    pub fn new(source: R) -> DocumentLines<R> {
        DocumentLines {
            source,
            buffer: vec![0; 64 * 1024],
            out: Vec::new(),
            given: 0,
            state: State::default(),
        }
    }
}

impl<R: Read> Read for DocumentLines<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() {
            self.out.clear();
            self.given = 0;
            let length = self.source.read(&mut self.buffer)?;
            if length == 0 {
                return Ok(0);
            }
            for byte in &self.buffer[..length] {
                self.state.take(*byte, &mut self.out);
            }
        }
        let rest = &self.out[self.given..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

impl State {
    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.string.is_inside() {
            let held = self.depth == 1 && self.lines.is_none();
            if held { &mut self.held } else { &mut *out }.push(byte);
            self.string.take(byte);
            return;
        }
        if self.perhaps && !byte.is_ascii_whitespace() {
            self.perhaps = false;
            if byte == b'{' {
                self.cut(out);
            } else {
                self.put(b'[', out);
                self.depth += 1;
            }
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            // A byte order mark.
            0xEF | 0xBB | 0xBF if self.depth == 0 => {}
            b'"' => {
                self.string.take(byte);
                if self.depth == 1 && self.lines.is_none() {
                    self.release(out);
                    self.held.push(byte);
                } else {
                    out.push(byte);
                }
            }
            b':' if !self.held.is_empty() => self.held.push(byte),
            b'[' if self.depth == 0 => {
                self.depth = 1;
                self.lines = Some(1);
            }
            b'[' if self.depth == 1 && !self.listed && self.held == MESSAGES => self.cut(out),
            b'[' if self.depth == 1 && !self.listed && OBJECT_LISTS.contains(&&*self.held) => {
                self.perhaps = true;
            }
            b'[' | b'{' => {
                self.put(byte, out);
                self.depth += 1;
            }
            b']' | b'}' => self.close(byte, out),
            b',' if self.lines == Some(self.depth) => out.push(b'\n'),
            b',' if self.depth == 1 && self.lines.is_none() => {
                self.release(out);
                self.comma = self.fields;
            }
            _ => self.put(byte, out),
        }
    }

    /// Starts splitting this list; the fields so far become the first line.
    fn cut(&mut self, out: &mut Vec<u8>) {
        self.held.clear();
        out.extend_from_slice(b"}\n");
        (self.fields, self.comma, self.listed) = (false, false, true);
        self.depth = 2;
        self.lines = Some(2);
    }

    fn put(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.release(out);
        if self.depth == 1 && self.lines.is_none() {
            self.field(out);
        }
        out.push(byte);
    }

    /// Writes the bytes that were held back.
    fn release(&mut self, out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            self.field(out);
            out.append(&mut self.held);
        }
    }

    /// Writes the comma before a further field.
    fn field(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.comma) {
            out.push(b',');
        }
        self.fields = true;
    }

    fn close(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.depth == 1 && self.lines.is_none() {
            self.release(out);
        }
        self.depth = self.depth.saturating_sub(1);
        match (self.depth, self.lines) {
            // The end of the list ends the last line.
            (0, Some(1)) => out.push(b'\n'),
            (1, Some(2)) => {
                // More fields of the object follow.
                out.extend_from_slice(b"\n{");
                self.lines = None;
            }
            (0, _) => out.extend_from_slice(&[byte, b'\n']),
            (_, _) => out.push(byte),
        }
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
