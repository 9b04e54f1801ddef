//! A segment: an immutable part of the index, deleted when it is merged into a larger one. It is a
//! sequence of blocks in word order, each a row of the database, and n-gram bitmaps that show which
//! blocks may contain a fragment. `build.rs` and `merge.rs` write segments, `lookup.rs` reads them
//! block by block.

use super::postings::{ListsWriter, Posting};
use super::runs::Runs;
use super::sheets::{Sheet, Stack};
use super::words::{self, Packed, Packer};

/// A block is closed at this many bytes of postings, so a very common word ends its block.
const POSTINGS: usize = 96 << 10;

/// A range of the words of a segment, in order, with their postings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its first word.
    pub first: Vec<u8>,
    /// Its last word.
    pub last: Vec<u8>,
    /// The words, front-coded.
    pub words: Vec<u8>,
    /// The postings of each word.
    pub postings: Vec<u8>,
}

impl Block {
    /// The size of the block in bytes.
    pub fn size(&self) -> usize {
        self.first.len() + self.last.len() + self.words.len() + self.postings.len()
    }
}

/// The counts of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
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
    pub blocks: Vec<Block>,
    /// The n-gram bitmaps of the blocks.
    pub sheets: Vec<Sheet>,
}

/// One written item of a segment: a block, or the n-gram bitmap of the blocks before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    Block(Block),
    Sheet(Sheet),
}

impl Segment {
    /// The size of its blocks and bitmaps in bytes.
    pub fn size(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::size).sum();
        blocks + self.sheets.iter().map(Sheet::size).sum::<usize>()
    }

    pub(super) fn put(&mut self, piece: Piece) {
        match piece {
            Piece::Block(block) => self.blocks.push(block),
            Piece::Sheet(sheet) => self.sheets.push(sheet),
        }
    }
}

/// Writes words and their postings as blocks and n-gram bitmaps.
pub(super) struct Writer {
    /// A block is closed at this many bytes of words, unpacked.
    enough: usize,
    words: Packer,
    runs: Runs,
    maps: Stack,
    lists: ListsWriter,
    counts: Counts,
}

impl Default for Writer {
    fn default() -> Self {
        Writer::of_blocks(words::ENOUGH)
    }
}

impl Writer {
    /// Writes blocks of about this many bytes of words, limited to what a reader can unpack.
    pub(super) fn of_blocks(enough: usize) -> Writer {
        Writer {
            enough: enough.min(words::ENOUGH),
            words: Packer::default(),
            runs: Runs::default(),
            maps: Stack::default(),
            lists: ListsWriter::default(),
            counts: Counts::default(),
        }
    }

    /// Adds the next word in order, with its documents, newest first. Skips a word without
    /// documents. Returns the completed items.
    #[must_use]
    pub(super) fn add(
        &mut self,
        word: &[u8],
        list: impl IntoIterator<Item = Posting>,
    ) -> Vec<Piece> {
        let documents = self.lists.add(list);
        if documents == 0 {
            return Vec::new();
        }
        self.counts.words += 1;
        self.counts.tokens += documents;
        self.words.add(word);
        self.runs.add(word);
        let full = self.words.length() > self.enough || self.lists.size() > POSTINGS;
        if full { self.close() } else { Vec::new() }
    }

    fn close(&mut self) -> Vec<Piece> {
        let Some(Packed { first, last, words }) = self.words.finish() else { return Vec::new() };
        let block = Block { first, last, words, postings: self.lists.finish() };
        let sheet = self.maps.add(self.runs.take());
        std::iter::once(Piece::Block(block)).chain(sheet.map(Piece::Sheet)).collect()
    }

    /// Returns the remaining items and the counts. The caller counts the documents.
    pub(super) fn finish(mut self) -> (Vec<Piece>, Counts) {
        let mut pieces = self.close();
        pieces.extend(self.maps.take().map(Piece::Sheet));
        (pieces, self.counts)
    }
}
