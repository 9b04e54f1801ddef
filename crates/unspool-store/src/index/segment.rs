//! A segment: a part of the index that is written once and read until it is merged away. It is a
//! row of blocks in the order of their words; a block is a row of the database. `build.rs` and
//! `merge.rs` write segments, `look.rs` reads them block by block.

use super::postings::{ListsWriter, Posting};
use super::runs::Runs;
use super::words::{Packed, Packer};

/// Bytes of postings in a block from which on it is closed: a very common word ends its block.
const POSTINGS: usize = 96 << 10;

/// Some of the words of a segment, in order, and the documents that they stand in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its first word.
    pub first: Vec<u8>,
    /// Its last word.
    pub last: Vec<u8>,
    /// Which four letters follow each other in them.
    pub runs: Vec<u8>,
    /// The words, packed.
    pub words: Vec<u8>,
    /// The documents of each word.
    pub postings: Vec<u8>,
}

impl Block {
    /// How many bytes the block takes.
    pub fn size(&self) -> usize {
        let map = self.runs.len();
        self.first.len() + self.last.len() + map + self.words.len() + self.postings.len()
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
#[derive(Default)]
pub(super) struct Writer {
    words: Packer,
    runs: Runs,
    lists: ListsWriter,
    counts: Counts,
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
        self.words.add(word);
        self.runs.add(word);
        let full = self.words.is_full() || self.lists.size() > POSTINGS;
        if full { self.close() } else { None }
    }

    fn close(&mut self) -> Option<Block> {
        let Packed { first, last, words } = self.words.finish()?;
        let runs = self.runs.take();
        Some(Block { first, last, runs, words, postings: self.lists.finish() })
    }

    /// The last block, if anything is left for it, and what was counted. Documents are for the
    /// caller to count.
    pub(super) fn finish(mut self) -> (Option<Block>, Counts) {
        (self.close(), self.counts)
    }
}
