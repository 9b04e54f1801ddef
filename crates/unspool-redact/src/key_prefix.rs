//! Lines of a private key behind the prefixes of a program: the file names of `grep -n`, the services
//! and times of `docker compose logs`, the commits of `git blame`, the border of a box.

use super::key_line::{MIN_LINE_BYTES, footer_length, is_base64, key_line, line_run};
use super::value_shape::Shape;

/// Longest prefix of a line, such as the job, the step and the time of a build log.
const MAX_PREFIX_BYTES: usize = 240;
/// How much longer or shorter the prefix of one line is than that of another: line numbers grow.
const PREFIX_TOLERANCE: usize = 4;
/// Longest text behind the content of a line, without white space: `│`, `-]`, `</span>`.
const MAX_SUFFIX_BYTES: usize = 24;
/// Empty lines between the encryption headers and the key.
const MAX_EMPTY_LINES: usize = 2;

/// The length of what stands before the header at `start` on its line. `None` if that is nothing, or
/// too long for a prefix.
pub(super) fn prefix_length(bytes: &[u8], start: usize) -> Option<usize> {
    let from = start.saturating_sub(MAX_PREFIX_BYTES);
    let before = bytes.get(from..start)?;
    let ends = |at: &usize| match before[*at] {
        // A string that holds several lines begins with a quote.
        b'\n' | b'"' => true,
        b'n' => *at > 0 && before[*at - 1] == b'\\',
        _ => false,
    };
    let length = match (0..before.len()).rev().find(ends) {
        Some(end) => before.len() - end - 1,
        None if from == 0 => before.len(),
        None => return None,
    };
    (length > 0).then_some(length)
}

/// Where the content of the next key line or the footer begins, behind a prefix of about the length of
/// the header's, and the length of the content, 0 for the footer. `at` is the end of the content of the
/// line before. A line is one of a key only if it looks random: nothing else tells it from the text
/// after a header that is quoted.
pub(super) fn prefixed_line(text: &str, at: usize, prefix: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let least = prefix.saturating_sub(PREFIX_TOLERANCE);
    let mut line = line_end(bytes, at)?;
    for _ in 0..=MAX_EMPTY_LINES {
        for start in line + least..=line + prefix + PREFIX_TOLERANCE {
            if bytes.get(line..start)?.contains(&b'\n') {
                break;
            }
            let Some(rest) = text.get(start..) else { continue };
            if footer_length(rest).is_some() {
                return Some((start, 0));
            }
            // Content begins at the beginning of its word.
            if start > line && is_base64(bytes[start - 1]) {
                continue;
            }
            if let Some(length) = content_length(rest, prefix) {
                return Some((start, length));
            }
        }
        // The headers of an encrypted key end with an empty line.
        let column = line + least;
        let next = line_end(bytes, column)?;
        let words = bytes[column..next].iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
        if bytes[line..column].contains(&b'\n') || words > PREFIX_TOLERANCE {
            return None;
        }
        line = next;
    }
    None
}

/// The length of an encryption header, a full line of a key or the last one that a text begins with.
fn content_length(rest: &str, prefix: usize) -> Option<usize> {
    let run = line_run(rest.as_bytes());
    let content = rest.get(..run).filter(|content| !content.is_empty())?;
    if run >= MIN_LINE_BYTES {
        let shape = Shape::of(content);
        // A digest has no capital letters, a path no digits.
        let mixed = shape.uppercase >= 4 && shape.lowercase >= 4 && shape.digits > 0;
        return (mixed && shape.entropy >= 3.2).then_some(run);
    }
    // `Proc-Type: 4,ENCRYPTED`
    let header = key_line(rest);
    if header > run {
        return Some(header);
    }
    is_last_line(rest, run, prefix).then_some(run)
}

/// True if the line below a short one is the footer.
fn is_last_line(rest: &str, run: usize, prefix: usize) -> bool {
    let bytes = rest.as_bytes();
    line_end(bytes, run).is_some_and(|line| {
        let columns = prefix.saturating_sub(PREFIX_TOLERANCE)..=prefix + PREFIX_TOLERANCE;
        columns
            .map(|column| line + column)
            .take_while(|start| bytes.get(line..*start).is_some_and(|text| !text.contains(&b'\n')))
            .any(|start| rest.get(start..).is_some_and(|rest| footer_length(rest).is_some()))
    })
}

/// The beginning of the next line, if only white space and a suffix follow on this one.
fn line_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut suffix = 0;
    let mut last = 0;
    for (place, byte) in bytes.get(at..)?.iter().take(MAX_PREFIX_BYTES).enumerate() {
        match byte {
            b'\n' => return Some(at + place + 1),
            b'n' if last == b'\\' => return Some(at + place + 1),
            b' ' | b'\t' | b'\r' | b'\\' => {}
            _ => suffix += 1,
        }
        if suffix > MAX_SUFFIX_BYTES {
            return None;
        }
        last = *byte;
    }
    None
}
