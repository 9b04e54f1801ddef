//! Server-sent events as lines: the data of each event on one line. Comments, event names and ids
//! are skipped, and so is the `[DONE]` that ends some streams.

use std::io::{self, Read};

use super::lines::{Lines, ReadPosition};

pub struct SseLines<R> {
    lines: Lines<R>,
    /// The data of the unfinished event. JSON strings hold no raw line feeds, so the data lines
    /// are joined without a separator.
    data: Vec<u8>,
    out: Vec<u8>,
    given: usize,
}

impl<R: Read> SseLines<R> {
    pub fn new(source: R) -> SseLines<R> {
        let lines = Lines::new(source, ReadPosition::default());
        SseLines { lines, data: Vec::new(), out: Vec::new(), given: 0 }
    }

    /// Reads until there is output. False at the end.
    fn fill(&mut self) -> io::Result<bool> {
        self.out.clear();
        self.given = 0;
        while self.out.is_empty() {
            let before = self.lines.position().number;
            let Some(line) = self.lines.next_line()? else {
                self.finish();
                return Ok(!self.out.is_empty());
            };
            // A blank line ends an event. `Lines` skips it, so detect it by the line number.
            let blank = line.number > before;
            let data = line.bytes.strip_prefix(b"data:").map(<[u8]>::to_vec);
            if blank {
                self.finish();
            }
            self.data.extend(data.unwrap_or_default());
        }
        Ok(true)
    }

    fn finish(&mut self) {
        let data = self.data.trim_ascii();
        if !data.is_empty() && data != b"[DONE]" {
            self.out.extend_from_slice(data);
            self.out.push(b'\n');
        }
        self.data.clear();
    }
}

impl<R: Read> Read for SseLines<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.given == self.out.len() && !self.fill()? {
            return Ok(0);
        }
        let rest = &self.out[self.given..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}
