//! A segment: an immutable part of the index, deleted when it is merged into a larger one. It is a
//! sequence of blocks in word order, each a row of the database, and n-gram bitmaps that show which
//! blocks may contain a fragment. `build.rs` and `merge.rs` write segments, `lookup.rs` reads them
//! block by block.

use super::front_coding::{self, PackedWords, WordPacker};
use super::ngram_bitmaps::{BitmapBuilder, NgramBitmap};
use super::ngrams::NgramHashes;
use super::postings::{Posting, PostingsWriter};

/// A block is closed at this many bytes of postings, so a very common word ends its block.
const MAX_POSTINGS_BYTES: usize = 96 << 10;

/// A range of the words of a segment, in order, with their postings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentBlock {
    /// Its first word.
    pub first: Vec<u8>,
    /// Its last word.
    pub last: Vec<u8>,
    /// The words, front-coded.
    pub words: Vec<u8>,
    /// The postings of each word.
    pub postings: Vec<u8>,
}

impl SegmentBlock {
    /// The size of the block in bytes.
    pub fn size(&self) -> usize {
        self.first.len() + self.last.len() + self.words.len() + self.postings.len()
    }
}

/// The counts of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentCounts {
    /// Documents.
    pub documents: u64,
    /// Different words.
    pub words: u64,
    /// Pairs of a word and a document that contains it: the size of the segment.
    pub tokens: u64,
}

/// A segment that was just built.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Documents.
    pub documents: u64,
    /// Different words.
    pub words: u64,
    /// Pairs of a word and a document that contains it: the size of the segment.
    pub tokens: u64,
    /// The blocks, in the order of their words.
    pub blocks: Vec<SegmentBlock>,
    /// The n-gram bitmaps of the blocks.
    pub bitmaps: Vec<NgramBitmap>,
}

/// One written item of a segment: a block, or the n-gram bitmap of the blocks before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SegmentItem {
    SegmentBlock(SegmentBlock),
    NgramBitmap(NgramBitmap),
}

impl Segment {
    /// The size of its blocks and bitmaps in bytes.
    pub fn size(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(SegmentBlock::size).sum();
        blocks + self.bitmaps.iter().map(NgramBitmap::size).sum::<usize>()
    }

    pub(super) fn put(&mut self, piece: SegmentItem) {
        match piece {
            SegmentItem::SegmentBlock(block) => self.blocks.push(block),
            SegmentItem::NgramBitmap(bitmap) => self.bitmaps.push(bitmap),
        }
    }
}

/// Writes words and their postings as blocks and n-gram bitmaps.
pub(super) struct BlockWriter {
    /// A block is closed at this many bytes of words, unpacked.
    block_bytes: usize,
    words: WordPacker,
    ngrams: NgramHashes,
    maps: BitmapBuilder,
    lists: PostingsWriter,
    counts: SegmentCounts,
}

impl Default for BlockWriter {
    fn default() -> Self {
        BlockWriter::of_blocks(front_coding::BLOCK_BYTES)
    }
}

impl BlockWriter {
    /// Writes blocks of about this many bytes of words, limited to what a reader can unpack.
    pub(super) fn of_blocks(block_bytes: usize) -> BlockWriter {
        BlockWriter {
            block_bytes: block_bytes.min(front_coding::BLOCK_BYTES),
            words: WordPacker::default(),
            ngrams: NgramHashes::default(),
            maps: BitmapBuilder::default(),
            lists: PostingsWriter::default(),
            counts: SegmentCounts::default(),
        }
    }

    /// Adds the next word in order, with its documents, newest first. Skips a word without
    /// documents. Returns the completed items.
    #[must_use]
    pub(super) fn add(
        &mut self,
        word: &[u8],
        list: impl IntoIterator<Item = Posting>,
    ) -> Vec<SegmentItem> {
        let documents = self.lists.add(list);
        if documents == 0 {
            return Vec::new();
        }
        self.counts.words += 1;
        self.counts.tokens += documents;
        self.words.add(word);
        self.ngrams.add(word);
        let full = self.words.length() > self.block_bytes || self.lists.size() > MAX_POSTINGS_BYTES;
        if full { self.close() } else { Vec::new() }
    }

    fn close(&mut self) -> Vec<SegmentItem> {
        let Some(PackedWords { first, last, words }) = self.words.finish() else {
            return Vec::new();
        };
        let block = SegmentBlock { first, last, words, postings: self.lists.finish() };
        let bitmap = self.maps.add(self.ngrams.take());
        std::iter::once(SegmentItem::SegmentBlock(block))
            .chain(bitmap.map(SegmentItem::NgramBitmap))
            .collect()
    }

    /// Returns the remaining items and the counts. The caller counts the documents.
    pub(super) fn finish(mut self) -> (Vec<SegmentItem>, SegmentCounts) {
        let mut pieces = self.close();
        pieces.extend(self.maps.take().map(SegmentItem::NgramBitmap));
        (pieces, self.counts)
    }
}
