//! Builds a segment from documents. The caller checks `memory` from time to time and finishes the
//! segment at its limit.

use super::dictionary::{Dictionary, MAX_COUNT};
use super::postings::Posting;
use super::segment::{BlockWriter, Segment};
use super::tokens::Tokeniser;

/// Collects documents for a segment.
#[derive(Default, Debug)]
pub struct SegmentBuilder {
    tokeniser: Tokeniser,
    dictionary: Dictionary,
    documents: Vec<Document>,
    open: bool,
}

#[derive(Clone, Copy, Debug)]
struct Document {
    number: u64,
    /// Where its postings begin.
    start: usize,
}

impl SegmentBuilder {
    /// Begins a document. Ends the open one.
    pub fn begin(&mut self, document: u64) {
        self.dictionary.open();
        self.documents.push(Document { number: document, start: self.dictionary.postings().len() });
        self.open = true;
    }

    /// Adds plain text to the open document. `text` and `json` may be called several times; outside
    /// a document they do nothing.
    pub fn text(&mut self, text: &str) {
        if self.open {
            self.tokeniser.text(text, &mut self.dictionary);
        }
    }

    /// Adds raw JSON to the open document: its keys, strings and numbers, unescaped.
    pub fn json(&mut self, raw: &str) {
        if self.open {
            self.tokeniser.json(raw, &mut self.dictionary);
        }
    }

    /// Ends the document.
    pub fn end(&mut self) {
        self.open = false;
    }

    /// Approximate memory in bytes. Finishing takes about half as much again.
    pub fn memory(&self) -> usize {
        self.dictionary.memory() + self.documents.capacity() * size_of::<Document>()
    }

    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// Writes the segment.
    pub fn finish(self) -> Segment {
        self.finish_with(BlockWriter::default())
    }

    pub(super) fn finish_with(mut self, mut writer: BlockWriter) -> Segment {
        self.dictionary.settle();
        let mut segment = Segment::default();
        let (numbers, cells, ends) = self.invert();
        let mut word = Vec::new();
        for index in self.sorted() {
            let Some(entry) = self.dictionary.entries.get(index) else { continue };
            word.clear();
            self.dictionary.write(entry, &mut word);
            let start = if index == 0 { 0 } else { ends[index - 1] };
            let list = &cells[start as usize..ends[index] as usize];
            let list = NewestFirst { cells: list.iter().peekable(), numbers: &numbers };
            writer.add(&word, list).into_iter().for_each(|piece| segment.put(piece));
        }
        let (last, counts) = writer.finish();
        last.into_iter().for_each(|piece| segment.put(piece));
        let documents = numbers.len() as u64;
        Segment { documents, words: counts.words, tokens: counts.tokens, ..segment }
    }

    /// The word numbers in byte order of the words.
    fn sorted(&self) -> impl Iterator<Item = usize> {
        let entries = &self.dictionary.entries;
        let mut order: Vec<(u64, u32)> =
            entries.iter().zip(0..).map(|(entry, index)| (entry.first, index)).collect();
        order.sort_unstable_by(|one, other| {
            one.0.cmp(&other.0).then_with(|| {
                let (mut here, mut there) = ([0; 8], [0; 8]);
                let (one, other) = (&entries[one.1 as usize], &entries[other.1 as usize]);
                self.dictionary.rest(one, &mut here).cmp(self.dictionary.rest(other, &mut there))
            })
        });
        order.into_iter().map(|(_, index)| index as usize)
    }

    /// Inverts words by document into documents by word. Returns the document numbers, newest
    /// first; the cells of all words (index into the documents and level), newest first; and the
    /// end of each word's cells.
    fn invert(&self) -> (Vec<u64>, Vec<u32>, Vec<u32>) {
        let postings = self.dictionary.postings();
        let mut ends = vec![0u32; self.dictionary.entries.len()];
        for posting in postings {
            ends[posting.word()] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            // The start of the word's cells for now; filling them advances it to their end.
            (*end, sum) = (sum, sum + *end);
        }
        let mut numbers = Vec::with_capacity(self.documents.len());
        let mut cells = vec![0u32; postings.len()];
        for (document, end) in self.newest_first() {
            if numbers.last() != Some(&document.number) {
                numbers.push(document.number);
            }
            let index = (numbers.len() - 1) as u32;
            for posting in &postings[document.start..end] {
                let next = &mut ends[posting.word()];
                cells[*next as usize] = index << 2 | COUNT_LEVELS[posting.count() as usize];
                *next += 1;
            }
        }
        (numbers, cells, ends)
    }

    /// The documents, newest first, with the end of their postings. Sorts only if they were not
    /// added in ascending order. A document that was added twice is listed twice.
    fn newest_first(&self) -> Vec<(Document, usize)> {
        let ends = self.documents.iter().skip(1).map(|document| document.start);
        let ends = ends.chain([self.dictionary.postings().len()]);
        let mut documents: Vec<_> = self.documents.iter().copied().zip(ends).collect();
        documents.reverse();
        if !documents.is_sorted_by(|one, other| one.0.number >= other.0.number) {
            documents.sort_by_key(|(document, _)| std::cmp::Reverse(document.number));
        }
        documents
    }
}

/// The level of n + 1 occurrences, at index n.
const COUNT_LEVELS: [u32; MAX_COUNT as usize + 1] = [0, 1, 1, 2, 2, 2, 2, 3];

/// The cells of a word as postings. Merges the adjacent cells of a document that was added twice.
struct NewestFirst<'a> {
    cells: std::iter::Peekable<std::slice::Iter<'a, u32>>,
    numbers: &'a [u64],
}

impl Iterator for NewestFirst<'_> {
    type Item = Posting;

    #[inline]
    fn next(&mut self) -> Option<Posting> {
        let mut cell = *self.cells.next()?;
        while let Some(again) = self.cells.next_if(|again| **again >> 2 == cell >> 2) {
            cell = cell.max(*again);
        }
        let document = *self.numbers.get((cell >> 2) as usize)?;
        Some(Posting { document, level: (cell & 3) as u8 })
    }
}
