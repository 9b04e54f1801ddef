//! Decides whether a text that begins with an object is lines of JSON or one document. A document
//! is an object over several lines, or a single line whose object has a list to be split
//! (`document.rs`).

use std::io::{self, Read};

use unspool_model::json::StringState;

use super::document::{MESSAGES, OBJECT_LISTS};
use super::source::read_some;

/// How much of a text is scanned. A longer first line is judged by its beginning.
const MAX_SNIFF_BYTES: usize = 64 * 1024 * 1024;

/// Reads as much of a text as is needed. `seen` gets all bytes that were consumed.
pub fn is_document(text: &mut impl Read, mut seen: impl FnMut(&[u8])) -> io::Result<bool> {
    let mut detector = DocumentDetector::default();
    let mut buffer = vec![0; 16 * 1024];
    let mut looked_at = 0;
    while looked_at < MAX_SNIFF_BYTES {
        let length = read_some(text, &mut buffer)?;
        let bytes = &buffer[..length];
        seen(bytes);
        looked_at += length;
        if length == 0 {
            return Ok(detector.over && detector.listed);
        }
        if let Some(found) = bytes.iter().find_map(|byte| detector.take(*byte)) {
            return Ok(found);
        }
    }
    Ok(detector.listed)
}

#[derive(Default)]
struct DocumentDetector {
    /// The open brackets.
    open: Vec<u8>,
    string: StringState,
    /// The last string at depth one, with the colon after it.
    held: Vec<u8>,
    /// The last byte that is not white space.
    last: u8,
    /// A line ended inside the object.
    broken: bool,
    /// A list that is split into lines has begun.
    listed: bool,
    /// The object has ended.
    over: bool,
}

impl DocumentDetector {
    /// Takes a byte. Returns the answer once it is certain: true for a document.
    fn take(&mut self, byte: u8) -> Option<bool> {
        if self.string.is_inside() {
            if self.open.len() == 1 {
                self.held.push(byte);
            }
            self.string.take(byte);
            // A string cannot span lines: the line was cut off.
            return (byte == b'\n').then_some(false);
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
        // Without such a list it is the same single record either way.
        (self.over && !self.listed).then_some(false)
    }

    /// True if a line was cut off and this byte begins the next one.
    fn is_another_line(&self, byte: u8) -> bool {
        byte == b'{' && self.last != b':' && self.open.last() == Some(&b'{')
    }

    fn enter(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.string.take(byte);
                self.held.clear();
                self.held.push(byte);
            }
            b':' => self.held.push(byte),
            b'{' | b'[' => {
                let of_object = self.open.len() == 1 && byte == b'[';
                let is_list = self.held == MESSAGES || OBJECT_LISTS.contains(&&*self.held);
                self.listed |= of_object && is_list;
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
