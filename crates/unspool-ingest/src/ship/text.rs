//! What of a file is sent next: whole lines, redacted. A secret that a later line reveals is looked
//! for in what was sent before; if it is there, the file is sent again as another generation.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use unspool_model::id::digest;
use unspool_query::ship::{MAX_LINE_BYTES, MAX_UNIT_BYTES, SentTo, Unit, UnitHead};
use unspool_redact::{CollectedSecrets, Redactor, Rules};
use unspool_sources::fingerprint::{fingerprint, matches};
use unspool_sources::read::lines::ReadPosition;
use unspool_sources::read::source::{self, Source};

use crate::sync::file_state::{is_idle, since_write};

/// The longest time that an agent pauses in the middle of a record.
const BROKEN_AFTER: Duration = Duration::from_secs(3600);
/// How much of each end of a text is in its fingerprint.
const SAMPLE_BYTES: usize = 4096;

/// That a file has to be sent again from its start, as this generation or a later one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Resend {
    generation: u32,
    /// Because of a secret in what was sent.
    withdraws: bool,
}

/// A file that is being sent.
pub struct FileText<'r> {
    path: &'r Path,
    redactor: Redactor<'r>,
    /// The secrets of the whole file are known.
    is_collected: bool,
    pub resend: Resend,
    /// There is text that cannot be sent yet: its last line is being written.
    pub has_rest: bool,
}

impl<'r> FileText<'r> {
    /// With the secrets that are known of the part that was sent.
    pub fn new(
        path: &'r Path,
        rules: &'r Rules,
        key: &Arc<str>,
        secrets: Option<CollectedSecrets>,
        resend: Resend,
    ) -> FileText<'r> {
        let is_collected = secrets.is_some();
        let redactor = match secrets {
            Some(secrets) => Redactor::resume(Some(rules), secrets),
            None => Redactor::tagging(rules, key.clone()),
        };
        FileText { path, redactor, is_collected, resend, has_rest: false }
    }

    pub fn into_secrets(self) -> Option<CollectedSecrets> {
        self.is_collected.then(|| self.redactor.into_secrets())
    }

    /// The text after the part that was sent. None if there is nothing new, and it is not news that
    /// the file is idle. Counts what was redacted.
    pub fn next_unit(
        &mut self,
        sent: SentTo,
        secrets: &mut BTreeMap<String, u64>,
    ) -> io::Result<Option<Unit>> {
        let mut source = source::open(self.path)?;
        let mut from = match sent.generation < self.resend.generation {
            true => 0,
            false => sent.offset,
        };
        if from > 0 && !matches(sent.print(), source.text())? {
            self.resend = Resend { generation: sent.generation + 1, withdraws: false };
            (self.is_collected, from) = (false, 0);
        }
        let is_first = from == 0 && self.resend.generation > sent.generation;
        if !is_first && !self.is_collected && !self.has_news(&mut source, from, sent.idle)? {
            return Ok(None);
        }
        if !self.is_collected {
            // First what was sent: which secrets were known then?
            self.collect(&mut source, 0, from)?;
            let known = self.redactor.secrets();
            self.collect(&mut source, from, u64::MAX)?;
            self.is_collected = true;
            if self.is_outdated(&mut source, from, known)? {
                self.resend = Resend { generation: sent.generation + 1, withdraws: true };
                from = 0;
            }
        }
        let unit = loop {
            let known = self.redactor.secrets();
            self.redactor.take_report();
            let unit = self.read(&mut source, from, sent)?;
            if self.redactor.secrets() == known {
                break unit;
            }
            // Again, from the first line on with what the last one said.
            if self.is_outdated(&mut source, from, known)? {
                self.resend = Resend { generation: sent.generation + 1, withdraws: true };
                from = 0;
            }
        };
        let Some(unit) = unit else {
            self.has_rest = true;
            return Ok(None);
        };
        if from > 0 && !matches(sent.print(), source.text())? {
            // Rewritten while it was read.
            self.has_rest = true;
            return Ok(None);
        }
        let is_news = unit.head.to.offset > from
            || unit.head.to.generation > sent.generation
            || (unit.head.to.idle && !sent.idle);
        if !is_news {
            return Ok(None);
        }
        for secret in self.redactor.take_report().secrets {
            *secrets.entry(secret.kind).or_default() += secret.count;
        }
        Ok(Some(unit))
    }

    /// True if there are whole lines behind an offset, or the file has become idle: otherwise nothing
    /// has to be searched for secrets.
    fn has_news(&mut self, source: &mut Source, from: u64, was_idle: bool) -> io::Result<bool> {
        let piece = piece(source, from)?;
        let idle = is_idle(source.stamp) && !piece.has_more;
        let whole = whole_lines(&piece, source, idle);
        self.has_rest = whole < piece.bytes.len();
        Ok(whole > 0 || piece.left_out > 0 || (idle && !was_idle))
    }

    /// Finds the secrets of a part of the text, so that its first line is redacted like its last.
    fn collect(&mut self, source: &mut Source, from: u64, end: u64) -> io::Result<()> {
        self.redactor.collect(true);
        let mut at = from;
        while let Some(piece) = piece_before(source, at, end)? {
            for line in lines(&piece.bytes) {
                self.redactor.line(&String::from_utf8_lossy(line));
            }
            at = piece.end();
        }
        self.redactor.collect(false);
        Ok(())
    }

    /// True if the part that was sent holds a secret that was found since, when so many were known.
    /// Reads that part again; a log names a new secret rarely.
    fn is_outdated(&mut self, source: &mut Source, end: u64, known: usize) -> io::Result<bool> {
        if self.redactor.secrets() == known {
            return Ok(false);
        }
        let mut at = 0;
        while let Some(piece) = piece_before(source, at, end)? {
            for line in lines(&piece.bytes) {
                if self.redactor.is_outdated(&String::from_utf8_lossy(line), known) {
                    return Ok(true);
                }
            }
            at = piece.end();
        }
        Ok(false)
    }

    /// The unit that begins here. None if the text changed while it was read.
    fn read(&mut self, source: &mut Source, from: u64, sent: SentTo) -> io::Result<Option<Unit>> {
        let piece = piece(source, from)?;
        let idle = is_idle(source.stamp) && !piece.has_more;
        let whole = whole_lines(&piece, source, idle);
        self.has_rest = whole < piece.bytes.len();
        let bytes = piece.bytes.get(..whole).unwrap_or_default();
        let mut text = Vec::with_capacity(whole);
        if piece.left_out > 0 {
            text.extend_from_slice(left_out(piece.left_out).as_bytes());
        }
        for line in lines(bytes) {
            let (content, end) = match line.strip_suffix(b"\n") {
                Some(content) => (content, "\n"),
                None => (line, ""),
            };
            let content = String::from_utf8_lossy(content);
            let content = self.redactor.line(&content);
            if content.len() > MAX_LINE_BYTES {
                text.extend_from_slice(left_out(content.len() as u64).as_bytes());
                continue;
            }
            text.extend_from_slice(content.as_bytes());
            text.extend_from_slice(end.as_bytes());
        }
        let end = from + whole as u64 + piece.left_out;
        let print = fingerprint(source.text(), end)?;
        if let Some(last) = whole.checked_sub(SAMPLE_BYTES)
            && bytes.get(last..).map(digest) != Some(print.tail)
        {
            return Ok(None);
        }
        let is_first = from == 0 && self.resend.generation > sent.generation;
        let head = UnitHead {
            file: self.path.to_string_lossy().into_owned(),
            from,
            to: SentTo::new(sent.generation.max(self.resend.generation), print, idle),
            modified: source.stamp.modified,
            more: piece.has_more,
            withdraws: is_first && self.resend.withdraws,
            length: text.len(),
        };
        Ok(Some(Unit { head, text }))
    }
}

fn left_out(bytes: u64) -> String {
    format!("[a line of {bytes} bytes was not sent]\n")
}

/// How much of a piece is whole lines. The last line of an idle file is whole if it is JSON, or if
/// nobody will finish it any more.
fn whole_lines(piece: &Piece, source: &Source, idle: bool) -> usize {
    let end = piece.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let last = piece.bytes.get(end..).unwrap_or_default();
    let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(last).is_ok();
    match idle && (is_json() || since_write(source.stamp) > BROKEN_AFTER) {
        true => piece.bytes.len(),
        false => end,
    }
}

/// A piece of a text: at least one whole line, unless the text ends before.
struct Piece {
    bytes: Vec<u8>,
    /// The text goes on behind it.
    has_more: bool,
    /// The length of a line before it that is too long.
    left_out: u64,
    start: u64,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.left_out + self.bytes.len() as u64
    }
}

/// The next piece of a part of the text. None at its end.
fn piece_before(source: &mut Source, start: u64, end: u64) -> io::Result<Option<Piece>> {
    if start >= end {
        return Ok(None);
    }
    let mut piece = piece(source, start)?;
    // Parts end where lines end.
    piece.bytes.truncate(usize::try_from(end - start).unwrap_or(usize::MAX));
    Ok(Some(piece).filter(|piece| piece.end() > start))
}

/// The text from an offset, as much as fits into a unit.
fn piece(source: &mut Source, offset: u64) -> io::Result<Piece> {
    let text = source.from(ReadPosition { offset, ..ReadPosition::default() })?;
    let mut bytes = Vec::new();
    let mut limit = MAX_UNIT_BYTES;
    loop {
        let wanted = limit - bytes.len();
        let read = Read::take(&mut *text, wanted as u64).read_to_end(&mut bytes)?;
        let has_more = read == wanted;
        if !has_more || bytes.contains(&b'\n') {
            // Only whole lines, if there are more.
            if has_more && let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
                bytes.truncate(end + 1);
            }
            return Ok(Piece { bytes, has_more, left_out: 0, start: offset });
        }
        if limit >= MAX_LINE_BYTES {
            return skip_line(text, offset, bytes.len() as u64);
        }
        limit = (2 * limit).min(MAX_LINE_BYTES);
    }
}

/// Passes over the rest of a line that is too long.
fn skip_line(text: &mut dyn Read, start: u64, begun: u64) -> io::Result<Piece> {
    let mut buffer = vec![0; 256 * 1024];
    let mut left_out = begun;
    loop {
        let read = text.read(&mut buffer)?;
        let found = buffer.get(..read).unwrap_or_default();
        if let Some(end) = found.iter().position(|byte| *byte == b'\n') {
            let left_out = left_out + end as u64 + 1;
            return Ok(Piece { bytes: Vec::new(), has_more: true, left_out, start });
        }
        left_out += read as u64;
        if read == 0 {
            // The line may still be written.
            return Ok(Piece { bytes: Vec::new(), has_more: false, left_out: 0, start });
        }
    }
}

/// The lines of a text, each with its end.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}
