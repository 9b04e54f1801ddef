//! Whether a text that begins with an object is lines of JSON or a document. A document is an object
//! over several lines, or one line that is all there is and has a list that becomes lines.

use std::io::{self, Read};

use super::document::{CONVERSATIONS, MESSAGES};
use super::source::read_some;

/// How much of a text is looked at. A line that is longer than this is judged by its beginning.
const LIMIT: usize = 64 * 1024 * 1024;

/// Looks at as much of a text as is needed, and gives away what it has looked at.
pub fn is_document(text: &mut impl Read, mut seen: impl FnMut(&[u8])) -> io::Result<bool> {
    let mut look = Look::default();
    let mut buffer = vec![0; 16 * 1024];
    let mut looked_at = 0;
    while looked_at < LIMIT {
        let length = read_some(text, &mut buffer)?;
        let bytes = &buffer[..length];
        seen(bytes);
        looked_at += length;
        if length == 0 {
            return Ok(look.over && look.listed);
        }
        if let Some(found) = bytes.iter().find_map(|byte| look.take(*byte)) {
            return Ok(found);
        }
    }
    Ok(look.listed)
}

#[derive(Default)]
struct Look {
    /// What is open, by its first byte.
    open: Vec<u8>,
    in_string: bool,
    escaped: bool,
    /// The last string of the object itself and the colon behind it.
    held: Vec<u8>,
    /// The last byte that says something.
    last: u8,
    /// A line has ended in the middle of the object.
    broken: bool,
    /// A list that becomes lines has begun.
    listed: bool,
    /// The object is over.
    over: bool,
}

impl Look {
    /// Takes a byte, and says what the text is once that is certain.
    fn take(&mut self, byte: u8) -> Option<bool> {
        if self.in_string {
            if self.open.len() == 1 {
                self.held.push(byte);
            }
            match byte {
                // No string goes on behind the end of its line: the line was cut.
                b'\n' => return Some(false),
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return None;
        }
        match byte {
            b'\n' => self.broken = !self.open.is_empty(),
            b' ' | b'\t' | b'\r' => {}
            // A byte order mark.
            0xEF | 0xBB | 0xBF if self.last == 0 => {}
            // More than one object.
            _ if self.over => return Some(false),
            _ if self.open.is_empty() && byte != b'{' => return Some(false),
            _ if self.broken => return Some(!self.is_another_line(byte)),
            _ => self.enter(byte),
        }
        // What has no such list is the same record in any case.
        (self.over && !self.listed).then_some(false)
    }

    /// Whether a line was cut, and this begins the next one.
    fn is_another_line(&self, byte: u8) -> bool {
        byte == b'{' && self.last != b':' && self.open.last() == Some(&b'{')
    }

    fn enter(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.in_string = true;
                self.held.clear();
                self.held.push(byte);
            }
            b':' => self.held.push(byte),
            b'{' | b'[' => {
                let of_object = self.open.len() == 1 && byte == b'[';
                self.listed |= of_object && (self.held == MESSAGES || self.held == CONVERSATIONS);
                self.open.push(byte);
                self.held.clear();
            }
            b'}' | b']' => {
                self.open.pop();
                self.over = self.open.is_empty();
            }
            _ => {}
        }
        self.last = byte;
    }
}
