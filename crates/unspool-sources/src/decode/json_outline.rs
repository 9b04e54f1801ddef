//! The outline of a record: the start and end of every JSON value, found in one pass over the text.
//! Decoders look up nested fields many times; parsing each level again took half of the decoding
//! time.
//!
//! It accepts what `serde_json` accepts for raw values: strings may hold lone surrogates, numbers
//! may have any size, and nesting has no limit.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::Fields;

/// The capacity kept between records, so that one record with a million values does not hold its
/// memory for the rest of a long run.
const MAX_RETAINED_NODES: usize = 16 * 1024;

/// One value, or the name of a field. Its children follow it directly in the list: the values of an
/// array, or the alternating names and values of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub start: u32,
    pub end: u32,
    /// The index of the node after this one and all its children.
    pub after: u32,
    pub kind: NodeKind,
    /// The tag of a name (`tag`).
    pub tag: u8,
    /// The tags of all names in an object, one bit each. Most lookups are for absent fields; this
    /// answers them without a search.
    pub tags: u64,
}

/// The tag of a name with escapes, which may match any name.
pub(super) const ESCAPED_TAG: u8 = u8::MAX;

/// A six-bit hash of a name.
#[inline]
pub(super) fn tag(name: &[u8]) -> u8 {
    match name {
        [first, .., last] => {
            let ends = first.wrapping_mul(3).wrapping_add(last.wrapping_mul(7));
            ends.wrapping_add((name.len() as u8).wrapping_mul(5)) % 64
        }
        [only] => only % 64,
        [] => 0,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodeKind {
    Object,
    Array,
    /// A string without escapes.
    Plain,
    /// A string with escapes.
    Escaped,
    /// A number, `true`, `false` or `null`.
    Scalar,
}

/// The outline of the last record that was read. Reused between records to save allocations.
#[derive(Debug, Default)]
pub struct JsonOutline {
    nodes: Vec<Node>,
    /// The objects and arrays that are still open.
    open: Vec<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    /// The index of its node.
    at: u32,
    kind: NodeKind,
    tags: u64,
}

impl JsonOutline {
    /// Scans a record, which must be a JSON object, and returns its fields.
    pub fn read<'a>(&'a mut self, text: &'a str) -> Result<Fields<'a>, serde_json::Error> {
        let whole = self.scan(text).is_some();
        let fields = Fields::new(text, &self.nodes);
        if whole && fields.is_object() && fields.has_sound_names() {
            Ok(fields)
        } else {
            Err(error(text))
        }
    }

    /// Builds the nodes of a text. `None` if it is not JSON.
    fn scan(&mut self, text: &str) -> Option<()> {
        self.nodes.clear();
        self.nodes.shrink_to(MAX_RETAINED_NODES);
        self.open.clear();
        self.open.shrink_to(MAX_RETAINED_NODES);
        let bytes = text.as_bytes();
        u32::try_from(bytes.len()).ok()?;
        let mut at = space(bytes, 0);
        loop {
            at = match bytes.get(at)? {
                b'{' => {
                    self.open(at, NodeKind::Object);
                    at = space(bytes, at + 1);
                    if bytes.get(at) != Some(&b'}') {
                        at = self.name(bytes, at)?;
                        continue;
                    }
                    self.close(at)
                }
                b'[' => {
                    self.open(at, NodeKind::Array);
                    at = space(bytes, at + 1);
                    if bytes.get(at) != Some(&b']') {
                        continue;
                    }
                    self.close(at)
                }
                b'"' => {
                    let (end, kind) = string(bytes, at + 1)?;
                    self.leaf(at, end, kind)
                }
                b'-' | b'0'..=b'9' => self.leaf(at, number(bytes, at)?, NodeKind::Scalar),
                b't' => self.leaf(at, word(bytes, at, b"true")?, NodeKind::Scalar),
                b'f' => self.leaf(at, word(bytes, at, b"false")?, NodeKind::Scalar),
                b'n' => self.leaf(at, word(bytes, at, b"null")?, NodeKind::Scalar),
                _ => return None,
            };
            // After a value: a comma, or the end of one or more containers.
            loop {
                at = space(bytes, at);
                let Some(open) = self.open.last() else {
                    return (at == bytes.len()).then_some(());
                };
                match (bytes.get(at)?, open.kind) {
                    (b',', NodeKind::Object) => {
                        at = self.name(bytes, space(bytes, at + 1))?;
                        break;
                    }
                    (b',', _) => {
                        at = space(bytes, at + 1);
                        break;
                    }
                    (b'}', NodeKind::Object) | (b']', NodeKind::Array) => at = self.close(at),
                    _ => return None,
                }
            }
        }
    }

    fn open(&mut self, start: usize, kind: NodeKind) {
        let at = self.nodes.len() as u32;
        self.open.push(Open { at, kind, tags: 0 });
        let start = start as u32;
        self.nodes.push(Node { start, end: start, after: at + 1, kind, tag: 0, tags: 0 });
    }

    /// Closes the innermost object or array at its last byte. Returns the offset after it.
    fn close(&mut self, last: usize) -> usize {
        let after = self.nodes.len() as u32;
        if let Some(open) = self.open.pop()
            && let Some(node) = self.nodes.get_mut(open.at as usize)
        {
            (node.end, node.after, node.tags) = (last as u32 + 1, after, open.tags);
        }
        last + 1
    }

    /// Adds a value without children. Returns the offset after it.
    fn leaf(&mut self, start: usize, end: usize, kind: NodeKind) -> usize {
        let at = self.nodes.len() as u32;
        let (first, last) = (start as u32, end as u32);
        self.nodes.push(Node { start: first, end: last, after: at + 1, kind, tag: 0, tags: 0 });
        end
    }

    /// Adds the name of a field and skips its colon. Returns the offset of the value.
    fn name(&mut self, bytes: &[u8], start: usize) -> Option<usize> {
        if bytes.get(start) != Some(&b'"') {
            return None;
        }
        let (end, kind) = string(bytes, start + 1)?;
        let after = self.nodes.len() as u32 + 1;
        let object = self.open.last_mut()?;
        let tag =
            if kind == NodeKind::Plain { tag(bytes.get(start + 1..end - 1)?) } else { ESCAPED_TAG };
        object.tags |= if kind == NodeKind::Plain { 1 << tag } else { u64::MAX };
        let (first, last) = (start as u32, end as u32);
        self.nodes.push(Node { start: first, end: last, after, kind, tag, tags: 0 });
        let colon = space(bytes, end);
        (bytes.get(colon) == Some(&b':')).then(|| space(bytes, colon + 1))
    }
}

#[inline]
fn space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The end of a string, scanned from after its opening quote.
#[inline]
fn string(bytes: &[u8], mut at: usize) -> Option<(usize, NodeKind)> {
    let mut kind = NodeKind::Plain;
    loop {
        at = plain(bytes, at);
        match bytes.get(at)? {
            b'"' => return Some((at + 1, kind)),
            b'\\' => {
                kind = NodeKind::Escaped;
                at += match bytes.get(at + 1)? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                    b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
                    _ => return None,
                };
            }
            // A control character.
            _ => return None,
        }
    }
}

/// Finds the next quote, backslash or control character, eight bytes at a time.
#[inline]
fn plain(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // Sets the highest bit of each zero byte; bits above the first such byte may be wrong.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found = control | zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5c));
        let found = found & (ONES << 7);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | ..0x20)) {
        at += 1;
    }
    at
}

fn number(bytes: &[u8], start: usize) -> Option<usize> {
    let digits = |mut at: usize| {
        let first = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        (at > first).then_some(at)
    };
    let first = if bytes.get(start) == Some(&b'-') { start + 1 } else { start };
    // JSON has no leading zeros.
    let mut at = if bytes.get(first) == Some(&b'0') { first + 1 } else { digits(first)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits(if sign { at + 2 } else { at + 1 })?;
    }
    Some(at)
}

fn word(bytes: &[u8], start: usize, word: &[u8]) -> Option<usize> {
    let end = start + word.len();
    (bytes.get(start..end)? == word).then_some(end)
}

/// The parser's error for a text that is not a JSON object. Slow path: parses again.
fn error(text: &str) -> serde_json::Error {
    struct Object;

    #[derive(Deserialize)]
    struct Borrowed<'a>(
        #[serde(borrow)]
        #[expect(dead_code, reason = "it is read for its errors only")]
        Cow<'a, str>,
    );

    impl<'de> Visitor<'de> for Object {
        type Value = ();

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while map.next_entry::<Borrowed<'de>, &'de RawValue>()?.is_some() {}
            Ok(())
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = deserializer.deserialize_map(Object).and_then(|()| deserializer.end());
    found.err().unwrap_or_else(|| serde_json::Error::custom("it is too long"))
}

#[cfg(test)]
#[path = "json_outline_tests.rs"]
mod tests;
