//! Reading on: from where a file was left to its end, or until the caller has enough.

use std::io::{self, Read};
use std::ops::ControlFlow;

use serde::de::IgnoredAny;

use super::{Reading, Sink};
use crate::decode::Warning;
use crate::read::lines::{Lines, Position, Unfinished};

/// What to do with a last line that has no end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LastLine {
    /// Leave it: it may still be being written. The position stays before it.
    Leave,
    /// Take it if it is whole JSON: nobody writes here any more, or somebody wants to see all
    /// that there is. Cut, it is no record yet, and is said to be there.
    TakeWhole,
}

/// What is said of a last line that is cut. It is true until the file is looked at again.
pub const UNFINISHED: &str = "the last line is not finished, and was not read";

/// How far a reading came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// The end of the source, as far as it was written.
    End,
    /// The line behind which the caller stopped it.
    Stop,
}

/// Reads a source that stands at `position` to its end, and moves `position` along: whenever this
/// returns, with an error too, it is where to read on.
///
/// `between` is called behind each line with the position reached. It may save the reading there,
/// and it may stop. What was read ahead of the position is lost to a source that cannot seek, so a
/// pipe is better not stopped.
pub fn read_on<S: Sink + ?Sized>(
    source: impl Read,
    position: &mut Position,
    last: LastLine,
    reading: &mut Reading,
    sink: &mut S,
    mut between: impl FnMut(&Reading, &mut S, Position) -> ControlFlow<()>,
) -> io::Result<Reached> {
    let mut lines = Lines::new(source, *position);
    while let Some(line) = lines.next_line()? {
        reading.take(line, sink);
        *position = lines.position();
        if between(reading, sink, *position).is_break() {
            return Ok(Reached::Stop);
        }
    }
    // Behind blank lines as well.
    *position = lines.position();
    if let (LastLine::TakeWhole, Some(unfinished)) = (last, lines.unfinished()) {
        take_unfinished(unfinished, position, reading, sink);
    }
    Ok(Reached::End)
}

fn take_unfinished(
    unfinished: Unfinished,
    position: &mut Position,
    reading: &mut Reading,
    sink: &mut (impl Sink + ?Sized),
) {
    if serde_json::from_slice::<IgnoredAny>(&unfinished.bytes).is_ok() {
        reading.take(unfinished.as_line(), sink);
        // Its line end is still to come, so the line that begins here has the same number.
        position.offset = unfinished.offset + unfinished.bytes.len() as u64;
    } else {
        let warning = Warning {
            file: reading.name().to_owned(),
            line: unfinished.number,
            what: UNFINISHED.to_owned(),
            bytes: unfinished.bytes,
        };
        sink.warn(reading.current(), warning);
    }
}
