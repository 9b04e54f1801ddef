//! Finds the words that match a term in the blocks of all segments and collects their postings. The
//! lists are copied out of the blocks as bytes: most are never decoded to the end.

use std::ops::{ControlFlow, Range};

use memchr::memmem::Finder;

use super::front_coding::WordUnpacker;
use super::lookup::{BlockRef, BlockStore, Limits, SegmentHead};
use super::ngram_bitmaps::NgramQuery;
use super::postings::{CorruptIndex, Layout, Posting, PostingsList};
use super::query::{Term, TermMatch};

/// The postings of a term, over all matching words and segments.
#[derive(Default, Debug)]
pub(super) struct TermPostings {
    bytes: Vec<u8>,
    lists: Vec<ListSpan>,
    /// Upper bound of the number of documents: one in several lists counts several times.
    pub(super) documents: u64,
}

#[derive(Debug)]
struct ListSpan {
    first: Posting,
    rest: Range<usize>,
    documents: u64,
}

impl TermPostings {
    fn push_list(&mut self, list: PostingsList<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(list.rest);
        self.documents += list.documents;
        let rest = start..self.bytes.len();
        self.lists.push(ListSpan { first: list.first, rest, documents: list.documents });
    }

    pub(super) fn lists(&self) -> impl ExactSizeIterator<Item = PostingsList<'_>> {
        self.lists.iter().map(|kept| PostingsList {
            first: kept.first,
            rest: self.bytes.get(kept.rest.clone()).unwrap_or_default(),
            documents: kept.documents,
        })
    }

    fn is_too_much(&self, limits: &Limits) -> bool {
        self.lists.len() > limits.words || self.documents > limits.postings
    }
}

/// The postings of a whole word.
pub(super) fn whole_word<S: BlockStore>(
    store: &S,
    segments: &[SegmentHead],
    word: &str,
) -> Result<TermPostings, S::Error> {
    let term = Term { term_match: TermMatch::Whole, word: word.to_owned() };
    let finder = Finder::new(&term.pattern()).into_owned();
    let mut found = TermPostings::default();
    let mut word_unpacker = WordUnpacker::default();
    for segment in segments {
        let Some(block) = store.block_with(segment.id, word.as_bytes())? else { continue };
        if block.last.as_slice() < word.as_bytes() {
            continue;
        }
        let words = word_unpacker.words(&block.words)?;
        if let Some(at) = finder.find(words) {
            let index = lines(words.get(..at));
            if let Some(list) = Layout::of(&block.postings)?.nth(&block.postings, index) {
                found.push_list(list);
            }
        }
    }
    Ok(found)
}

/// The postings of all words with a prefix, or None if there are too many to be useful.
pub(super) fn with_prefix<S: BlockStore>(
    store: &S,
    segments: &[SegmentHead],
    start: &str,
    limits: &Limits,
) -> Result<Option<TermPostings>, S::Error> {
    let term = Term { term_match: TermMatch::Prefix, word: start.to_owned() };
    let finder = Finder::new(&term.pattern()).into_owned();
    let mut found = TermPostings::default();
    let mut word_unpacker = WordUnpacker::default();
    let mut corrupt = None;
    for segment in segments {
        store.blocks(segment.id, start.as_bytes(), &mut |block| match prefix_in_block(
            block,
            start.as_bytes(),
            &finder,
            &mut word_unpacker,
            &mut found,
        ) {
            Ok(()) if found.is_too_much(limits) => ControlFlow::Break(()),
            Ok(()) => match block.first.get(..start.len().min(block.first.len())) {
                Some(first) if first > start.as_bytes() => ControlFlow::Break(()),
                Some(_) | None => ControlFlow::Continue(()),
            },
            Err(error) => {
                corrupt = Some(error);
                ControlFlow::Break(())
            }
        })?;
        if let Some(error) = corrupt {
            return Err(error.into());
        }
        if found.is_too_much(limits) {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

fn prefix_in_block(
    block: BlockRef<'_>,
    start: &[u8],
    finder: &Finder<'_>,
    word_unpacker: &mut WordUnpacker,
    found: &mut TermPostings,
) -> Result<(), CorruptIndex> {
    let words = word_unpacker.words(block.words)?;
    let Some(at) = finder.find(words) else { return Ok(()) };
    let mut layout = Layout::of(block.postings)?;
    let mut skip = lines(words.get(..at));
    // Words with a common prefix are adjacent.
    let rest = words.get(at + 1..).unwrap_or_default();
    let words = rest.split(|byte| *byte == b'\n').take_while(|word| word.starts_with(start));
    for _ in words {
        let Some(list) = layout.nth(block.postings, skip) else { break };
        found.push_list(list);
        skip = 0;
    }
    Ok(())
}

/// The postings of all words that match a suffix or infix term. Leaves out terms with too many
/// matches to be useful. Scans the words of all blocks that the n-gram bitmaps admit, once for all
/// terms.
pub(super) fn scan_words<S: BlockStore>(
    store: &S,
    segments: &[SegmentHead],
    terms: &[Term],
    limits: &Limits,
) -> Result<Vec<TermPostings>, S::Error> {
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let mut searches: Vec<WordScan> = terms.iter().map(WordScan::new).collect();
    let mut word_unpacker = WordUnpacker::default();
    let mut corrupt = None;
    let wanted = NgramQuery::new(terms.iter().map(|term| term.word.as_bytes()));
    for (index, segment) in segments.iter().enumerate() {
        let mut read = |bitmap, slice| store.slice(segment.id, bitmap, slice);
        for blocks in wanted.blocks(&mut read)? {
            store.words(
                segment.id,
                blocks,
                &mut |block| match word_unpacker.words(block.words) {
                    Ok(words) => {
                        for search in searches.iter_mut().filter(|search| !search.given_up) {
                            search.search(index, block.first, words, limits);
                        }
                        ControlFlow::Continue(())
                    }
                    Err(error) => {
                        corrupt = Some(error);
                        ControlFlow::Break(())
                    }
                },
            )?;
            if let Some(error) = corrupt {
                return Err(error.into());
            }
        }
    }
    let mut all = Vec::new();
    for search in searches.into_iter().filter(|search| !search.given_up) {
        all.extend(search.fetch_postings(store, segments, limits)?);
    }
    Ok(all)
}

/// The scan for one term over all words.
struct WordScan {
    finder: Finder<'static>,
    hits: Vec<BlockMatches>,
    count: usize,
    given_up: bool,
}

/// The matching words of one block.
struct BlockMatches {
    segment: usize,
    first: Vec<u8>,
    words: Vec<u32>,
}

impl WordScan {
    fn new(term: &Term) -> Self {
        let finder = Finder::new(&term.pattern()).into_owned();
        WordScan { finder, hits: Vec::new(), count: 0, given_up: false }
    }

    fn search(&mut self, segment: usize, first: &[u8], words: &[u8], limits: &Limits) {
        let mut indices = Vec::new();
        let mut counted = 0;
        let mut index = 0;
        let mut from = 0;
        while let Some(at) = words.get(from..).and_then(|rest| self.finder.find(rest)) {
            let at = from + at;
            index += lines(words.get(counted..at));
            counted = at;
            indices.push(index.saturating_sub(1) as u32);
            // Continue after the word, so that it is found once.
            let rest = words.get(at..).unwrap_or_default();
            from = at + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        }
        if !indices.is_empty() {
            self.count += indices.len();
            self.given_up = self.count > limits.words;
            self.hits.push(BlockMatches { segment, first: first.to_vec(), words: indices });
        }
    }

    fn fetch_postings<S: BlockStore>(
        self,
        store: &S,
        segments: &[SegmentHead],
        limits: &Limits,
    ) -> Result<Option<TermPostings>, S::Error> {
        let mut found = TermPostings::default();
        for hits in self.hits {
            let Some(segment) = segments.get(hits.segment) else { continue };
            let Some(bytes) = store.postings(segment.id, &hits.first)? else { continue };
            let mut layout = Layout::of(&bytes)?;
            let mut next = 0;
            for index in hits.words {
                let skip = (index as usize).saturating_sub(next);
                next = index as usize + 1;
                let Some(list) = layout.nth(&bytes, skip) else { break };
                found.push_list(list);
            }
            if found.is_too_much(limits) {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }
}

/// The number of line feeds.
fn lines(words: Option<&[u8]>) -> usize {
    memchr::memchr_iter(b'\n', words.unwrap_or_default()).count()
}
