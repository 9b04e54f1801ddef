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

use super::postings::Corrupt;
use super::tokens::LONGEST;

/// Version 1 was zstd.
const VERSION: u8 = 2;
/// A block is closed at this many bytes of unpacked words.
pub(super) const ENOUGH: usize = 48 << 10;
/// Unpacking copies this many bytes at a time.
const STEP: usize = 16;
const SHARED_MOST: usize = 15;
/// The most that unpacking one word may write: shared prefix, word, line feed, and one copy too
/// many.
const ROOM: usize = SHARED_MOST + LONGEST + 1 + STEP;
const CAPACITY: usize = ENOUGH + 2 * ROOM;

/// Packs words, in order.
#[derive(Default)]
pub(super) struct Packer {
    packed: Vec<u8>,
    first: Vec<u8>,
    last: Vec<u8>,
    length: usize,
}

/// Words that were packed.
pub(super) struct Packed {
    pub(super) first: Vec<u8>,
    pub(super) last: Vec<u8>,
    pub(super) words: Vec<u8>,
}

impl Packer {
    pub(super) fn add(&mut self, word: &[u8]) {
        // The tokeniser emits no longer word, but a merge may read one from a corrupt block.
        let word = word.get(..LONGEST).unwrap_or(word);
        if self.packed.is_empty() {
            self.packed.push(VERSION);
            self.first = word.to_vec();
        }
        let same = self.last.iter().zip(word).take(SHARED_MOST);
        let shared = same.take_while(|(one, other)| one == other).count();
        let rest = word.get(shared..).unwrap_or_default();
        if rest.len() < STEP {
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
    pub(super) fn finish(&mut self) -> Option<Packed> {
        let Packer { packed: words, first, last, .. } = std::mem::take(self);
        (!words.is_empty()).then_some(Packed { first, last, words })
    }
}

/// Unpacks the words of blocks into a reused buffer.
pub(super) struct Unpacker {
    raw: Vec<u8>,
}

impl Default for Unpacker {
    fn default() -> Self {
        Unpacker { raw: vec![0; CAPACITY] }
    }
}

impl Unpacker {
    /// The words of a block, separated by line feeds.
    pub(super) fn words(&mut self, packed: &[u8]) -> Result<&[u8], Corrupt> {
        let (version, packed) =
            packed.split_first().ok_or(Corrupt::new("a block without words"))?;
        if *version != VERSION {
            return Err(Corrupt::new("words of an unknown version"));
        }
        let length = unpack(packed, &mut self.raw).ok_or(Corrupt::new("truncated words"))?;
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
        if length == 0 || length > LONGEST || at + ROOM > raw.len() || previous + shared >= at {
            return None;
        }
        // Copy a fixed size, which is faster; the excess is overwritten.
        let before = *raw.get(previous..)?.first_chunk::<STEP>()?;
        *raw.get_mut(at..)?.first_chunk_mut()? = before;
        let own = raw.get_mut(at + shared..)?;
        match behind.first_chunk::<STEP>() {
            Some(rest) if length <= STEP => *own.first_chunk_mut()? = *rest,
            Some(_) | None => own.get_mut(..length)?.copy_from_slice(behind.get(..length)?),
        }
        *own.get_mut(length)? = b'\n';
        packed = behind.get(length..)?;
        previous = at;
        at += shared + length + 1;
    }
    (at > 1).then_some(at)
}
