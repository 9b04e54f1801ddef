//! A segment: a part of the index that is written once and read until it is merged away. It is a
//! row of blocks in the order of their words; a block is a row of the database. `build.rs` and
//! `merge.rs` write segments, `look.rs` reads them block by block.
//!
//! The words of a block stand between line feeds, one before the first and one behind the last, and
//! are compressed as a whole. So one search over the raw bytes finds a whole word (`\nword\n`), a
//! beginning (`\nword`), an end (`word\n`) or an inside (`word`).

use zstd::bulk::{Compressor, Decompressor};

use super::postings::{Corrupt, ListsWriter, Posting};

/// How the words of a block are kept, in the first byte.
const PLAIN: u8 = 0;
const PACKED: u8 = 1;
const LEVEL: i32 = 1;
/// Bytes of words in a block before they are compressed, about.
const WORDS: usize = 48 << 10;
/// More words than this cannot be in a block.
const WORDS_MOST: usize = WORDS + 256;
/// Bytes of postings in a block from which on it is closed: a very common word ends its block.
const POSTINGS: usize = 96 << 10;

/// Some of the words of a segment, in order, and the documents that they stand in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its first word.
    pub first: Vec<u8>,
    /// Its last word.
    pub last: Vec<u8>,
    /// The words, packed.
    pub words: Vec<u8>,
    /// The documents of each word.
    pub postings: Vec<u8>,
}

impl Block {
    /// How many bytes the block takes.
    pub fn size(&self) -> usize {
        self.first.len() + self.last.len() + self.words.len() + self.postings.len()
    }
}

/// What was counted while a segment was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Documents.
    pub documents: u64,
    /// Different words.
    pub words: u64,
    /// Pairs of a word and a document that it stands in: the size of the segment.
    pub tokens: u64,
}

/// A segment that was just built.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Documents.
    pub documents: u64,
    /// Different words.
    pub words: u64,
    /// Pairs of a word and a document that it stands in: the size of the segment.
    pub tokens: u64,
    /// The blocks, in the order of their words.
    pub blocks: Vec<Block>,
}

impl Segment {
    /// How many bytes its blocks take.
    pub fn size(&self) -> usize {
        self.blocks.iter().map(Block::size).sum()
    }
}

/// Writes words and their documents as blocks.
pub(super) struct Writer {
    raw: Vec<u8>,
    lists: ListsWriter,
    last: usize,
    compressor: Option<Compressor<'static>>,
    counts: Counts,
}

impl Default for Writer {
    fn default() -> Self {
        Writer {
            raw: Vec::with_capacity(WORDS_MOST),
            lists: ListsWriter::default(),
            last: 0,
            // It can fail only for want of memory; words are then kept as they are.
            compressor: Compressor::new(LEVEL).ok(),
            counts: Counts::default(),
        }
    }
}

impl Writer {
    /// Adds a word, behind all words before it, with its documents, newest first. A word without
    /// documents is left out. Returns a block when one is complete.
    #[must_use]
    pub(super) fn add(
        &mut self,
        word: &[u8],
        list: impl IntoIterator<Item = Posting>,
    ) -> Option<Block> {
        let documents = self.lists.add(list);
        if documents == 0 {
            return None;
        }
        self.counts.words += 1;
        self.counts.tokens += documents;
        if self.raw.is_empty() {
            self.raw.push(b'\n');
        }
        self.last = self.raw.len();
        self.raw.extend_from_slice(word);
        self.raw.push(b'\n');
        let full = self.raw.len() > WORDS || self.lists.size() > POSTINGS;
        if full { self.close() } else { None }
    }

    fn close(&mut self) -> Option<Block> {
        if self.raw.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', &self.raw[1..]).map_or(self.raw.len(), |end| end + 1);
        let block = Block {
            first: self.raw[1..end].to_vec(),
            last: self.raw[self.last..self.raw.len() - 1].to_vec(),
            words: pack(&self.raw, self.compressor.as_mut()),
            postings: self.lists.finish(),
        };
        self.raw.clear();
        Some(block)
    }

    /// The last block, if anything is left for it, and what was counted. Documents are for the
    /// caller to count.
    pub(super) fn finish(mut self) -> (Option<Block>, Counts) {
        (self.close(), self.counts)
    }
}

fn pack(raw: &[u8], compressor: Option<&mut Compressor<'static>>) -> Vec<u8> {
    let mut packed = Vec::with_capacity(1 + raw.len());
    if let Some(compressor) = compressor
        && let Ok(compressed) = compressor.compress(raw)
    {
        packed.push(PACKED);
        packed.extend_from_slice(&compressed);
    } else {
        packed.push(PLAIN);
        packed.extend_from_slice(raw);
    }
    packed
}

/// Unpacks the words of blocks, one block after the other, in one buffer.
pub(super) struct Unpacker {
    decompressor: Decompressor<'static>,
    raw: Vec<u8>,
}

impl Default for Unpacker {
    fn default() -> Self {
        Unpacker { decompressor: Decompressor::default(), raw: Vec::with_capacity(WORDS_MOST) }
    }
}

impl Unpacker {
    /// The words of a block, each between line feeds.
    pub(super) fn words<'a>(&'a mut self, packed: &'a [u8]) -> Result<&'a [u8], Corrupt> {
        let (how, packed) =
            packed.split_first().ok_or(Corrupt::new("a block without words"))?;
        let raw = match *how {
            PLAIN => packed,
            PACKED => {
                // The capacity bounds what a hostile block can unfold to.
                self.decompressor
                    .decompress_to_buffer(packed, &mut self.raw)
                    .map_err(|_| Corrupt::new("words that cannot be decompressed"))?;
                &self.raw
            }
            _ => return Err(Corrupt::new("words of an unknown version")),
        };
        match raw {
            [b'\n', .., b'\n'] => Ok(raw),
            _ => Err(Corrupt::new("words without their line feeds")),
        }
    }
}
