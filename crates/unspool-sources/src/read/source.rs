//! Opens anything that holds a session as lines of text: a log unchanged, a compressed one
//! decompressed, a document split into its elements, server-sent events as their data, database
//! rows as JSON, a file in a form of one agent as that agent's folder says. The code after this handles
//! lines only.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use unspool_model::source::FileStamp;

use super::document::DocumentLines;
use super::lines::ReadPosition;
use super::own_file::{self, Lines, Streamed};
use super::packed::Unpacked;
use super::regular_file::open_regular;
use super::restartable_reader::RestartableReader;
use super::sse::SseLines;
use super::{document_detector, rollout, rows, trace_files};
use crate::discover::file_stamp;

pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// An opened source of lines.
pub struct Source {
    /// Taken before anything was read, so that data appended meanwhile is noticed next time.
    pub stamp: FileStamp,
    /// The length of the text, if it is known without reading it.
    pub length: Option<u64>,
    text: Box<dyn ReadSeek>,
}

impl Source {
    pub fn new(stamp: FileStamp, length: Option<u64>, text: impl ReadSeek + 'static) -> Source {
        Source { stamp, length, text: Box::new(text) }
    }

    /// The text from a saved position.
    pub fn from(&mut self, position: ReadPosition) -> io::Result<&mut dyn ReadSeek> {
        self.text.seek(SeekFrom::Start(position.offset))?;
        Ok(&mut *self.text)
    }

    /// The text at its current position.
    pub fn text(&mut self) -> &mut dyn ReadSeek {
        &mut *self.text
    }
}

/// How the bytes of a file become lines.
#[derive(Clone, Copy)]
enum Form {
    Lines,
    Packed,
    DocumentLines,
    SseLines,
    /// As an agent says whose form it is.
    Own(Streamed),
}

/// How a compressed stream begins.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// How many bytes tell the form of a stream: the longest field name of server-sent events.
const LEAST_BEGINNING: usize = 6;

pub fn open(path: &Path) -> io::Result<Source> {
    if let Some((database, session)) = rows::split(path) {
        return rows::open(&database, &session);
    }
    let mut file = open_regular(path)?;
    let stamp = file_stamp(&file.metadata()?);
    match own_file::of_path(path).map(|own| own.lines) {
        Some(Lines::Whole(text)) => {
            if let Some(text) = text(path, &mut file)? {
                return Ok(Source::new(stamp, Some(text.len() as u64), Cursor::new(text)));
            }
        }
        Some(Lines::Streamed(lines)) => {
            let path = path.to_owned();
            let begin = move || Ok(lines(&path, Box::new(open_regular(&path)?)));
            return Ok(Source::new(stamp, None, RestartableReader::new(begin)));
        }
        Some(Lines::AsUsual) | None => {}
    }
    if let Some(ranges) = rollout::ranges(path) {
        let length = rollout::length(&ranges);
        return Ok(Source::new(
            stamp,
            length,
            RestartableReader::new(move || rollout::text(&ranges)),
        ));
    }
    if let Some(text) = trace_files::open(path)? {
        return Ok(Source::new(stamp, None, text));
    }
    let form = form_of(path, &mut file)?;
    if let Form::Lines = form {
        return Ok(Source::new(stamp, Some(stamp.size), file));
    }
    let path = path.to_owned();
    let begin = move || -> io::Result<Box<dyn Read + Send>> {
        let file = open_regular(&path)?;
        Ok(match form {
            Form::Lines => Box::new(file),
            Form::Packed => Box::new(Unpacked::new(file)?),
            Form::DocumentLines => Box::new(DocumentLines::new(file)),
            Form::SseLines => Box::new(SseLines::new(file)),
            Form::Own(lines) => lines(&path, Box::new(file)),
        })
    };
    Ok(Source::new(stamp, None, RestartableReader::new(begin)))
}

fn form_of(path: &Path, file: &mut File) -> io::Result<Form> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("zst") => return Ok(Form::Packed),
        Some("json") => return Ok(Form::DocumentLines),
        Some(_) | None => {}
    }
    let mut beginning = [0; 64];
    let length = read_some(file, &mut beginning)?;
    file.seek(SeekFrom::Start(0))?;
    let form = form_by(&beginning[..length]);
    // A `.jsonl` file is lines, even while its first line is incomplete.
    let is_lines = matches!(form, Form::Lines);
    if !is_lines || path.extension().is_some_and(|extension| extension == "jsonl") {
        return Ok(form);
    }
    let is_document = document_detector::is_document(file, |_| {})?;
    file.seek(SeekFrom::Start(0))?;
    Ok(if is_document { Form::DocumentLines } else { form })
}

/// A stream that cannot be rewound, such as standard input.
pub struct TextStream {
    form: Form,
    text: Box<dyn Read + Send>,
}

impl TextStream {
    /// Reads as much of a stream as it takes to see what it is.
    pub fn open(mut stream: impl Read + Send + 'static) -> io::Result<TextStream> {
        let mut beginning = begin(&mut stream)?;
        if beginning.starts_with(&ZSTD_MAGIC) {
            let text = Unpacked::new(Cursor::new(beginning).chain(stream))?;
            return Ok(TextStream { form: Form::Packed, text: Box::new(text) });
        }
        let mut form = form_by(&beginning);
        if let Form::Lines = form {
            let mut seen = Vec::new();
            let begun = std::mem::take(&mut beginning);
            let mut text = Cursor::new(begun).chain(&mut stream);
            if document_detector::is_document(&mut text, |bytes| seen.extend_from_slice(bytes))? {
                form = Form::DocumentLines;
            }
            beginning = seen;
        }
        Ok(TextStream { form, text: Box::new(Cursor::new(beginning).chain(stream)) })
    }

    /// True if it is one document, whose lines make sense only together.
    pub fn is_document(&self) -> bool {
        matches!(self.form, Form::DocumentLines)
    }

    /// The bytes of the stream.
    pub fn into_text(self) -> Box<dyn Read + Send> {
        self.text
    }

    pub fn into_lines(self) -> Box<dyn Read + Send> {
        match self.form {
            Form::Lines | Form::Packed => self.text,
            Form::DocumentLines => Box::new(DocumentLines::new(self.text)),
            Form::SseLines => Box::new(SseLines::new(self.text)),
            Form::Own(lines) => lines(Path::new(""), self.text),
        }
    }
}

/// The lines of a stream that cannot be rewound.
pub fn lines_of(stream: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    Ok(TextStream::open(stream)?.into_lines())
}

/// The first bytes of a stream, no more than it takes to tell its form: a live stream may send the
/// rest much later.
fn begin(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let (mut buffer, mut length) = ([0; 64], 0);
    while length < LEAST_BEGINNING {
        match read_some(stream, &mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(buffer[..length].to_vec())
}

/// Detects the form from the first bytes. Both lines of JSON and a document may begin with an
/// object; `document_detector.rs` distinguishes those.
fn form_by(beginning: &[u8]) -> Form {
    let mark = b"\xEF\xBB\xBF".as_slice();
    let beginning = beginning.strip_prefix(mark).unwrap_or(beginning).trim_ascii_start();
    let event = [b"data:".as_slice(), b"event:", b"id:", b"retry:", b":"];
    if beginning.starts_with(b"[") {
        Form::DocumentLines
    } else if let Some(lines) = own_file::lines_by_beginning(beginning) {
        Form::Own(lines)
    } else if event.iter().any(|field| beginning.starts_with(field)) {
        Form::SseLines
    } else {
        Form::Lines
    }
}

/// Reads at least one byte, unless the input is at its end. Retries when interrupted.
pub(super) fn read_some(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
