//! The encoding of the postings of a block. `segment.rs` writes them, `merge.rs` and
//! `term_postings.rs` read them. Newest first, because only the newest part of a long list is used.
//!
//! ```text
//! version, words, top, width, length of heads      (bytes and varints)
//! heads:  for each word, documents - 1; if there is more than one, the length of its rest
//! firsts: for each word, (top - newest document) << 2 | level, in `width` bytes
//! rests:  for each word, its older documents: (distance - 1) << 2 | level, varints
//! ```
//!
//! `top` is the newest document of the block. Most words occur in one document only and take
//! 1 + `width` bytes. Decoding never panics: invalid bytes give `CorruptIndex` or end a list, and
//! no decoded number determines an allocation.

use std::fmt;
use std::ops::Range;

const VERSION: u8 = 1;
const LEVEL_BITS: u32 = 2;
const LEVEL_MASK: u64 = (1 << LEVEL_BITS) - 1;

/// Invalid bytes in the index. The index can always be rebuilt from the documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CorruptIndex(&'static str);

impl CorruptIndex {
    pub(super) fn new(what: &'static str) -> Self {
        CorruptIndex(what)
    }
}

impl fmt::Display for CorruptIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "invalid data: {}", self.0)
    }
}

impl std::error::Error for CorruptIndex {}

/// A word in a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Posting {
    pub document: u64,
    /// The number of occurrences, as 0 to 3: once, 2 or 3 times, 4 to 7 times, more.
    pub level: u8,
}

// ── Writing ─────────────────────────────────────────────────────────────────────────────────

/// Writes the lists of a block, one word after the other.
#[derive(Default)]
pub(super) struct PostingsWriter {
    heads: Vec<u8>,
    firsts: Vec<Posting>,
    rests: Vec<u8>,
    top: u64,
    bottom: u64,
}

impl PostingsWriter {
    /// The approximate size in bytes.
    pub(super) fn size(&self) -> usize {
        self.heads.len() + self.rests.len() + self.firsts.len() * 3
    }

    /// Adds the list of the next word: newest first, each document once. Returns the number of
    /// documents. Skips an empty list.
    pub(super) fn add(&mut self, list: impl IntoIterator<Item = Posting>) -> u64 {
        let mut list = list.into_iter();
        let Some(first) = list.next() else { return 0 };
        let start = self.rests.len();
        let mut previous = first.document;
        let mut documents = 1;
        for posting in list {
            let distance = previous.wrapping_sub(posting.document).wrapping_sub(1);
            if distance < 1 << 5 {
                let byte = (distance as u8) << LEVEL_BITS | posting.level;
                self.rests.push(byte);
            } else {
                write(&mut self.rests, packed(distance, posting.level));
            }
            previous = posting.document;
            documents += 1;
        }
        write(&mut self.heads, documents - 1);
        if documents > 1 {
            write(&mut self.heads, (self.rests.len() - start) as u128);
        }
        if self.firsts.is_empty() {
            (self.top, self.bottom) = (first.document, first.document);
        }
        self.top = self.top.max(first.document);
        self.bottom = self.bottom.min(first.document);
        self.firsts.push(first);
        documents as u64
    }

    /// The bytes of the block. The writer is empty afterwards.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let widest = packed(self.top - self.bottom, LEVEL_MASK as u8);
        let width = (128 - widest.leading_zeros() as usize).div_ceil(8);
        let body = self.heads.len() + self.firsts.len() * width + self.rests.len();
        let mut bytes = Vec::with_capacity(32 + body);
        bytes.push(VERSION);
        write(&mut bytes, self.firsts.len() as u128);
        write(&mut bytes, u128::from(self.top));
        bytes.push(width as u8);
        write(&mut bytes, self.heads.len() as u128);
        bytes.append(&mut self.heads);
        for first in self.firsts.drain(..) {
            let packed = packed(self.top - first.document, first.level);
            bytes.extend_from_slice(&packed.to_le_bytes()[..width]);
        }
        bytes.append(&mut self.rests);
        bytes
    }
}

fn packed(distance: u64, level: u8) -> u128 {
    u128::from(distance) << LEVEL_BITS | u128::from(level)
}

fn write(bytes: &mut Vec<u8>, mut value: u128) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────

/// The read position in the postings of a block. It does not borrow the bytes, so that a reader
/// can own both.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    heads: Range<usize>,
    firsts: Range<usize>,
    rests: usize,
    width: usize,
    top: u64,
}

impl Layout {
    pub(super) fn of(bytes: &[u8]) -> Result<Self, CorruptIndex> {
        let truncated = CorruptIndex::new("truncated postings");
        let (version, mut behind) = bytes.split_first().ok_or(truncated)?;
        if *version != VERSION {
            return Err(CorruptIndex::new("postings of an unknown version"));
        }
        let words = read_size(&mut behind).ok_or(truncated)?;
        let top = read_small(&mut behind).ok_or(truncated)?;
        let (width, mut behind) = behind.split_first().ok_or(truncated)?;
        let width = usize::from(*width);
        if !(1..=9).contains(&width) {
            return Err(CorruptIndex::new("postings of an invalid width"));
        }
        let heads = read_size(&mut behind).ok_or(truncated)?;
        let start = bytes.len() - behind.len();
        let firsts = start.checked_add(heads).ok_or(truncated)?;
        let rests =
            words.checked_mul(width).and_then(|it| it.checked_add(firsts)).ok_or(truncated)?;
        if rests > bytes.len() {
            return Err(truncated);
        }
        Ok(Layout { heads: start..firsts, firsts: firsts..rests, rests, width, top })
    }

    /// The list of the next word. `bytes` must be those passed to `of`.
    #[inline]
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8]) -> Option<PostingsList<'a>> {
        let mut heads = bytes.get(self.heads.clone())?;
        let first = bytes.get(self.firsts.clone())?.get(..self.width)?;
        let documents = read_small(&mut heads)?;
        let mut rest: &[u8] = &[];
        if documents > 0 {
            let length = read_size(&mut heads)?;
            rest = bytes.get(self.rests..)?.get(..length)?;
        }
        self.heads.start = self.heads.end - heads.len();
        self.firsts.start += self.width;
        self.rests += rest.len();
        let packed = first.iter().rev().fold(0u128, |packed, byte| packed << 8 | u128::from(*byte));
        let distance = u64::try_from(packed >> LEVEL_BITS).ok()?;
        let first = Posting {
            document: self.top.checked_sub(distance)?,
            level: (packed as u64 & LEVEL_MASK) as u8,
        };
        Some(PostingsList { first, rest, documents: documents.min(rest.len() as u64) + 1 })
    }

    /// The list of the word `index` words after the next one.
    pub(super) fn nth<'a>(&mut self, bytes: &'a [u8], index: usize) -> Option<PostingsList<'a>> {
        for _ in 0..index {
            self.next(bytes)?;
        }
        self.next(bytes)
    }
}

/// The documents of a word in a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostingsList<'a> {
    pub(super) first: Posting,
    pub(super) rest: &'a [u8],
    /// The number of documents.
    pub(super) documents: u64,
}

impl<'a> IntoIterator for PostingsList<'a> {
    type Item = Posting;
    type IntoIter = Postings<'a>;

    fn into_iter(self) -> Postings<'a> {
        Postings { next: Some(self.first), rest: self.rest }
    }
}

/// The documents of a list, newest first.
#[derive(Clone, Debug)]
pub(super) struct Postings<'a> {
    next: Option<Posting>,
    rest: &'a [u8],
}

impl Iterator for Postings<'_> {
    type Item = Posting;

    #[inline]
    fn next(&mut self) -> Option<Posting> {
        let current = self.next?;
        self.next = next_posting(current.document, &mut self.rest);
        Some(current)
    }
}

#[inline]
pub(super) fn next_posting(document: u64, rest: &mut &[u8]) -> Option<Posting> {
    let (byte, behind) = rest.split_first()?;
    let (distance, level) = if *byte < 0x80 {
        *rest = behind;
        (u64::from(*byte) >> LEVEL_BITS, u64::from(*byte) & LEVEL_MASK)
    } else {
        let packed = read(rest)?;
        (u64::try_from(packed >> LEVEL_BITS).ok()?, packed as u64 & LEVEL_MASK)
    };
    Some(Posting { document: document.checked_sub(distance)?.checked_sub(1)?, level: level as u8 })
}

#[inline]
fn read_size(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(read_small(bytes)?).ok()
}

#[inline]
fn read_small(bytes: &mut &[u8]) -> Option<u64> {
    let (byte, behind) = bytes.split_first()?;
    if *byte < 0x80 {
        *bytes = behind;
        return Some(u64::from(*byte));
    }
    u64::try_from(read(bytes)?).ok()
}

fn read(bytes: &mut &[u8]) -> Option<u128> {
    if let [low, high @ 0..0x80, behind @ ..] = *bytes {
        *bytes = behind;
        return Some(u128::from(*low & 0x7f) | u128::from(*high) << 7);
    }
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u128::from(*byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Some(value);
        }
    }
    None
}
