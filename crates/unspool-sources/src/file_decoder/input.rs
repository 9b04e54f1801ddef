//! Feeds the lines of a source to a `FileDecoder`, from a saved position to the end or until the
//! caller stops.

use std::io::{self, Read};
use std::ops::ControlFlow;

use serde::de::IgnoredAny;

use super::{FileDecoder, RecordSink};
use crate::decode::Warning;
use crate::read::lines::{Line, Lines, MAX_LINE_BYTES, OverlongLine, ReadPosition, Unfinished};

/// How to treat a last line without a line end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LastLine {
    /// Leave it: a program may still be writing it. The position stays before it.
    Leave,
    /// Decode it if it is complete JSON, otherwise leave it: the user named a file that a program
    /// may still be writing.
    TakeComplete,
    /// Decode it if it is complete JSON, because the file no longer grows or the caller wants
    /// everything. If it is cut off, report a warning instead.
    TakeWhole,
}

/// The warning for a last line that is cut off. Outdated as soon as the file is read again; the
/// store deletes it by this text.
pub const UNFINISHED_LINE_WARNING: &str = "the last line is incomplete and was not read";

/// Where decoding stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadOutcome {
    /// At the current end of the source.
    End,
    /// After a line at which the caller stopped it.
    Stop,
}

/// Decodes a source from `position`, at which it must already be, to its end. Advances `position`:
/// when this returns, even with an error, it is where to continue.
///
/// `between` is called after each line with the new position. It may save the decoder's state
/// there, and it may stop. The lines are buffered ahead of the position, so stopping a source that
/// cannot seek (a pipe) loses input.
pub fn decode_from<S: RecordSink + ?Sized>(
    source: impl Read,
    position: &mut ReadPosition,
    last: LastLine,
    file_decoder: &mut FileDecoder,
    sink: &mut S,
    mut between: impl FnMut(&FileDecoder, &mut S, ReadPosition) -> ControlFlow<()>,
) -> io::Result<ReadOutcome> {
    let mut lines = Lines::new(source, *position);
    loop {
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            // What came before the limit of a compressed file counts.
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                *position = lines.position();
                let ReadPosition { number, offset } = *position;
                let none = Line { number, offset, bytes: &[] };
                file_decoder.refuse(none, error.to_string(), sink);
                return Ok(ReadOutcome::End);
            }
            Err(error) => return Err(error),
        };
        file_decoder.take(line, sink);
        refuse_overlong(lines.take_overlong(), file_decoder, sink);
        *position = lines.position();
        if between(file_decoder, sink, *position).is_break() {
            return Ok(ReadOutcome::Stop);
        }
    }
    // Skips trailing blank lines as well.
    *position = lines.position();
    let overlong = match last {
        LastLine::Leave | LastLine::TakeComplete => lines.take_overlong(),
        LastLine::TakeWhole => lines.end_overlong(),
    };
    refuse_overlong(overlong, file_decoder, sink);
    if last != LastLine::Leave
        && let Some(unfinished) = lines.unfinished()
    {
        take_unfinished(unfinished, position, last, file_decoder, sink);
    }
    Ok(ReadOutcome::End)
}

/// Reports lines that are too long to be read.
fn refuse_overlong(
    overlong: Vec<OverlongLine>,
    file_decoder: &mut FileDecoder,
    sink: &mut (impl RecordSink + ?Sized),
) {
    for OverlongLine { number, offset, length, digest, start } in overlong {
        let what = format!(
            "the line has {length} bytes, more than the {MAX_LINE_BYTES} that are read; it was left \
             out (xxh3 {digest:016x})"
        );
        file_decoder.refuse(Line { number, offset, bytes: &start }, what, sink);
    }
}

fn take_unfinished(
    unfinished: Unfinished,
    position: &mut ReadPosition,
    last: LastLine,
    file_decoder: &mut FileDecoder,
    sink: &mut (impl RecordSink + ?Sized),
) {
    if serde_json::from_slice::<IgnoredAny>(&unfinished.bytes).is_ok() {
        file_decoder.take(unfinished.as_line(), sink);
        // The line end is still missing, so the line number does not advance.
        position.offset = unfinished.offset + unfinished.bytes.len() as u64;
    } else if last == LastLine::TakeWhole {
        let warning = Warning {
            file: file_decoder.name().to_owned(),
            line: unfinished.number,
            what: UNFINISHED_LINE_WARNING.to_owned(),
            bytes: unfinished.bytes,
        };
        sink.warn(file_decoder.current(), warning);
    }
}
