//! A segment: a part of the index that is written once and read until it is merged away. It is a
//! row of blocks in the order of their words; a block is a row of the database. Beside them stand
//! sheets, which say what letters are in which block. `build.rs` and `merge.rs` write segments,
//! `look.rs` reads them block by block.

use super::postings::{ListsWriter, Posting};
use super::runs::Runs;
use super::sheets::{Sheet, Stack};
use super::words::{self, Packed, Packer};

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
    /// What letters are in which of them.
    pub sheets: Vec<Sheet>,
}

/// What a segment is written as: blocks, and behind so many of them their sheet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    Block(Block),
    Sheet(Sheet),
}

impl Segment {
    /// How many bytes its blocks and sheets take.
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

/// Writes words and their documents as blocks and sheets.
pub(super) struct Writer {
    /// Bytes of words from which on a block is closed.
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
    /// Of blocks with about so many bytes of words, which are no more than can be unpacked.
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

    /// Adds a word, behind all words before it, with its documents, newest first. A word without
    /// documents is left out. Returns what is complete.
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

    /// What is left, and what was counted. Documents are for the caller to count.
    pub(super) fn finish(mut self) -> (Vec<Piece>, Counts) {
        let mut pieces = self.close();
        pieces.extend(self.maps.take().map(Piece::Sheet));
        (pieces, self.counts)
    }
}
