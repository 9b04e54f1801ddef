//! Front coding of the words of a block. Each word is stored as the length of the prefix it shares
//! with the word before it, and its own suffix:
//!
//! ```text
//! version
//! shared << 4 | length, the rest of the word        shared and length up to 15
//! shared << 4, length, the rest of the word         longer
//! ```
//!
//! Unpacked, words are separated by line feeds, with one before the first and one after the last.
//! One byte search then finds a whole word (`\nword\n`), a prefix (`\nword`), a suffix (`word\n`)
//! or an infix (`word`).
//!
//! An infix search may unpack every word of the index, so speed matters more than size: zstd made
//! the words a fifth smaller but took twice as long to unpack and four times as long to pack.

use super::postings::CorruptIndex;
use super::tokens::MAX_WORD_BYTES;

/// Version 1 was zstd.
const VERSION: u8 = 2;
/// A block is closed at this many bytes of unpacked words.
pub(super) const BLOCK_BYTES: usize = 48 << 10;
/// Unpacking copies this many bytes at a time.
const COPY_BYTES: usize = 16;
const MAX_SHARED_BYTES: usize = 15;
/// The most that unpacking one word may write: shared prefix, word, line feed, and one copy too
/// many.
const WORD_CAPACITY: usize = MAX_SHARED_BYTES + MAX_WORD_BYTES + 1 + COPY_BYTES;
const BUFFER_BYTES: usize = BLOCK_BYTES + 2 * WORD_CAPACITY;

/// Packs words, in order.
#[derive(Default)]
pub(super) struct WordPacker {
    packed: Vec<u8>,
    first: Vec<u8>,
    last: Vec<u8>,
    length: usize,
}

/// Words that were packed.
pub(super) struct PackedWords {
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
    pub(super) words: Vec<u8>,
}

impl WordPacker {
    pub(super) fn add(&mut self, word: &[u8]) {
        // The tokeniser emits no longer word, but a merge may read one from a corrupt block.
        let word = word.get(..MAX_WORD_BYTES).unwrap_or(word);
        if self.packed.is_empty() {
            self.packed.push(VERSION);
            self.first = word.to_vec();
        }
        let same = self.last.iter().zip(word).take(MAX_SHARED_BYTES);
        let shared = same.take_while(|(one, other)| one == other).count();
        let rest = word.get(shared..).unwrap_or_default();
        if rest.len() < COPY_BYTES {
            self.packed.push((shared << 4 | rest.len()) as u8);
        } else {
            self.packed.extend([(shared << 4) as u8, rest.len() as u8]);
        }
        self.packed.extend_from_slice(rest);
        self.last.clear();
        self.last.extend_from_slice(word);
        self.length += word.len() + 1;
    }

    /// The unpacked length of the words in bytes.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The packed words, if any. The packer is empty afterwards.
    pub(super) fn finish(&mut self) -> Option<PackedWords> {
        let WordPacker { packed: words, first, last, .. } = std::mem::take(self);
        (!words.is_empty()).then_some(PackedWords { first, last, words })
    }
}

/// Unpacks the words of blocks into a reused buffer.
pub(super) struct WordUnpacker {
    raw: Vec<u8>,
}

impl Default for WordUnpacker {
    fn default() -> Self {
        WordUnpacker { raw: vec![0; BUFFER_BYTES] }
    }
}

impl WordUnpacker {
    /// The words of a block, separated by line feeds.
    pub(super) fn words(&mut self, packed: &[u8]) -> Result<&[u8], CorruptIndex> {
        let (version, packed) =
            packed.split_first().ok_or(CorruptIndex::new("a block without words"))?;
        if *version != VERSION {
            return Err(CorruptIndex::new("words of an unknown version"));
        }
        let length = unpack(packed, &mut self.raw).ok_or(CorruptIndex::new("truncated words"))?;
        Ok(&self.raw[..length])
    }
}

/// Unpacks words into `raw`. Returns their length, or None if they are corrupt.
fn unpack(mut packed: &[u8], raw: &mut [u8]) -> Option<usize> {
    *raw.first_mut()? = b'\n';
    let mut previous = 0;
    let mut at = 1;
    while let Some((head, mut behind)) = packed.split_first() {
        let shared = usize::from(head >> 4);
        let mut length = usize::from(head & 0xf);
        if length == 0 {
            let (long, rest) = behind.split_first()?;
            length = usize::from(*long);
            behind = rest;
        }
        if length == 0
            || length > MAX_WORD_BYTES
            || at + WORD_CAPACITY > raw.len()
            || previous + shared >= at
        {
            return None;
        }
        // Copy a fixed size, which is faster; the excess is overwritten.
        let before = *raw.get(previous..)?.first_chunk::<COPY_BYTES>()?;
        *raw.get_mut(at..)?.first_chunk_mut()? = before;
        let own = raw.get_mut(at + shared..)?;
        match behind.first_chunk::<COPY_BYTES>() {
            Some(rest) if length <= COPY_BYTES => *own.first_chunk_mut()? = *rest,
            Some(_) | None => own.get_mut(..length)?.copy_from_slice(behind.get(..length)?),
        }
        *own.get_mut(length)? = b'\n';
        packed = behind.get(length..)?;
        previous = at;
        at += shared + length + 1;
    }
    (at > 1).then_some(at)
}
