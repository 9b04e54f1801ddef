//! Quotes around names and values, escaped or not.

use super::line::spaces;
use super::verdict::MAX_VALUE_BYTES;

/// Quotes in HTML that shows JSON or source code.
const QUOTE_ENTITIES: &[&str] = &["&quot;", "&#34;", "&#x22;", "&apos;", "&#39;", "&#x27;"];

/// A quote at any escape depth.
pub(super) struct Quote<'t> {
    /// Number of backslashes.
    depth: usize,
    /// Length with the backslashes.
    pub(super) length: usize,
    /// The quote itself, or its HTML entity.
    mark: &'t [u8],
}

impl Quote<'_> {
    /// Where the content begins that follows this quote at an offset.
    pub(super) fn content(&self, bytes: &[u8], at: usize) -> usize {
        let start = at + self.length;
        match bytes.get(start) {
            // A string of several lines may begin on the line below.
            Some(b'\n') if self.mark.len() == 3 => spaces(bytes, start + 1),
            _ => start,
        }
    }
}

/// The quote at an offset.
pub(super) fn quote(bytes: &[u8], at: usize) -> Option<Quote<'_>> {
    let depth = bytes.get(at..)?.iter().take(16).take_while(|byte| **byte == b'\\').count();
    let rest = bytes.get(at + depth..)?;
    let length = match rest.first()? {
        // A string of several lines in Python and TOML.
        b'"' | b'\'' if matches!(rest, [a, b, c, ..] if a == b && b == c) => 3,
        b'"' | b'\'' | b'`' => 1,
        b'&' => {
            let starts = |entity: &&&str| rest.starts_with(entity.as_bytes());
            QUOTE_ENTITIES.iter().find(starts)?.len()
        }
        _ => return None,
    };
    Some(Quote { depth, length: depth + length, mark: rest.get(..length)? })
}

/// The end of a quoted value: the closing quote at the same escape depth.
pub(super) fn closing(bytes: &[u8], start: usize, quote: &Quote<'_>) -> usize {
    let most = bytes.len().min(start + 2 * MAX_VALUE_BYTES);
    let mut slashes = 0;
    for (at, byte) in bytes.iter().enumerate().take(most).skip(start) {
        if slashes <= quote.depth && bytes[at..].starts_with(quote.mark) {
            return at - slashes;
        }
        if *byte == b'\n' {
            return at;
        }
        slashes = if *byte == b'\\' { slashes + 1 } else { 0 };
    }
    most
}
