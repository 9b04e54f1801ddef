//! A seekable reader over generated text: decompressed, cut out of a document, or made from rows.
//! Seeking back generates the text again from its start.

use std::io::{self, Read, Seek, SeekFrom};

type Begin = Box<dyn Fn() -> io::Result<Box<dyn Read + Send>> + Send>;

/// A generated text that can be read again.
pub struct RestartableReader {
    begin: Begin,
    text: Option<Box<dyn Read + Send>>,
    /// How much of `text` has been read.
    at: u64,
    wanted: u64,
}

impl RestartableReader {
    pub fn new(
        begin: impl Fn() -> io::Result<Box<dyn Read + Send>> + Send + 'static,
    ) -> RestartableReader {
        RestartableReader { begin: Box::new(begin), text: None, at: 0, wanted: 0 }
    }

    /// The text, advanced to the wanted position.
    fn text(&mut self) -> io::Result<&mut Box<dyn Read + Send>> {
        if self.text.is_none() || self.wanted < self.at {
            self.text = Some((self.begin)()?);
            self.at = 0;
        }
        let text = self.text.get_or_insert_with(|| Box::new(io::empty()));
        if self.at < self.wanted {
            self.at += io::copy(&mut text.take(self.wanted - self.at), &mut io::sink())?;
            // A position after the end reads as the end.
            self.wanted = self.at.max(self.wanted);
        }
        Ok(text)
    }
}

impl Read for RestartableReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let text = self.text()?;
        let length = text.read(buffer)?;
        self.at += length as u64;
        self.wanted = self.wanted.max(self.at);
        Ok(length)
    }
}

impl Seek for RestartableReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let from_here = |by: i64| self.wanted.saturating_add_signed(by);
        self.wanted = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) => from_here(by),
            SeekFrom::End(by) => {
                let text = self.text()?;
                let rest = io::copy(text, &mut io::sink())?;
                self.at += rest;
                self.at.saturating_add_signed(by)
            }
        };
        Ok(self.wanted)
    }
}

#[cfg(test)]
#[path = "restartable_reader_tests.rs"]
mod tests;
