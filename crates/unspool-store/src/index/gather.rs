//! Finds the words that match a term in the blocks of all segments and collects their postings. The
//! lists are copied out of the blocks as bytes: most are never decoded to the end.

use std::ops::{ControlFlow, Range};

use memchr::memmem::Finder;

use super::look::{BlockRef, Limits, SegmentHead, Shelf};
use super::postings::{Corrupt, Layout, List, Posting};
use super::query::{Need, Reach};
use super::sheets::Wanted;
use super::words::Unpacker;

/// The postings of a term, over all matching words and segments.
#[derive(Default, Debug)]
pub(super) struct Found {
    bytes: Vec<u8>,
    lists: Vec<Kept>,
    /// Upper bound of the number of documents: one in several lists counts several times.
    pub(super) documents: u64,
}

#[derive(Debug)]
struct Kept {
    first: Posting,
    rest: Range<usize>,
    documents: u64,
}

impl Found {
    fn keep(&mut self, list: List<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(list.rest);
        self.documents += list.documents;
        let rest = start..self.bytes.len();
        self.lists.push(Kept { first: list.first, rest, documents: list.documents });
    }

    pub(super) fn lists(&self) -> impl ExactSizeIterator<Item = List<'_>> {
        self.lists.iter().map(|kept| List {
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
pub(super) fn whole<S: Shelf>(
    shelf: &S,
    segments: &[SegmentHead],
    word: &str,
) -> Result<Found, S::Error> {
    let need = Need { reach: Reach::Whole, word: word.to_owned() };
    let finder = Finder::new(&need.pattern()).into_owned();
    let mut found = Found::default();
    let mut unpacker = Unpacker::default();
    for segment in segments {
        let Some(block) = shelf.block_with(segment.id, word.as_bytes())? else { continue };
        if block.last.as_slice() < word.as_bytes() {
            continue;
        }
        let words = unpacker.words(&block.words)?;
        if let Some(at) = finder.find(words) {
            let index = lines(words.get(..at));
            if let Some(list) = Layout::of(&block.postings)?.nth(&block.postings, index) {
                found.keep(list);
            }
        }
    }
    Ok(found)
}

/// The postings of all words with a prefix, or None if there are too many to be useful.
pub(super) fn starting<S: Shelf>(
    shelf: &S,
    segments: &[SegmentHead],
    start: &str,
    limits: &Limits,
) -> Result<Option<Found>, S::Error> {
    let need = Need { reach: Reach::Start, word: start.to_owned() };
    let finder = Finder::new(&need.pattern()).into_owned();
    let mut found = Found::default();
    let mut unpacker = Unpacker::default();
    let mut corrupt = None;
    for segment in segments {
        shelf.blocks(segment.id, start.as_bytes(), &mut |block| match start_in_block(
            block,
            start.as_bytes(),
            &finder,
            &mut unpacker,
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

fn start_in_block(
    block: BlockRef<'_>,
    start: &[u8],
    finder: &Finder<'_>,
    unpacker: &mut Unpacker,
    found: &mut Found,
) -> Result<(), Corrupt> {
    let words = unpacker.words(block.words)?;
    let Some(at) = finder.find(words) else { return Ok(()) };
    let mut layout = Layout::of(block.postings)?;
    let mut skip = lines(words.get(..at));
    // Words with a common prefix are adjacent.
    let rest = words.get(at + 1..).unwrap_or_default();
    let words = rest.split(|byte| *byte == b'\n').take_while(|word| word.starts_with(start));
    for _ in words {
        let Some(list) = layout.nth(block.postings, skip) else { break };
        found.keep(list);
        skip = 0;
    }
    Ok(())
}

/// The postings of all words that match a suffix or infix term. Leaves out terms with too many
/// matches to be useful. Scans the words of all blocks that the n-gram bitmaps admit, once for all
/// terms.
pub(super) fn searched<S: Shelf>(
    shelf: &S,
    segments: &[SegmentHead],
    needs: &[Need],
    limits: &Limits,
) -> Result<Vec<Found>, S::Error> {
    if needs.is_empty() {
        return Ok(Vec::new());
    }
    let mut searches: Vec<Search> = needs.iter().map(Search::new).collect();
    let mut unpacker = Unpacker::default();
    let mut corrupt = None;
    let wanted = Wanted::new(needs.iter().map(|need| need.word.as_bytes()));
    for (index, segment) in segments.iter().enumerate() {
        let mut read = |sheet, slice| shelf.slice(segment.id, sheet, slice);
        for blocks in wanted.blocks(&mut read)? {
            shelf.words(segment.id, blocks, &mut |block| match unpacker.words(block.words) {
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
            })?;
            if let Some(error) = corrupt {
                return Err(error.into());
            }
        }
    }
    let mut all = Vec::new();
    for search in searches.into_iter().filter(|search| !search.given_up) {
        all.extend(search.gather(shelf, segments, limits)?);
    }
    Ok(all)
}

/// The scan for one term over all words.
struct Search {
    finder: Finder<'static>,
    hits: Vec<Hits>,
    count: usize,
    given_up: bool,
}

/// The matching words of one block.
struct Hits {
    segment: usize,
    first: Vec<u8>,
    words: Vec<u32>,
}

impl Search {
    fn new(need: &Need) -> Self {
        let finder = Finder::new(&need.pattern()).into_owned();
        Search { finder, hits: Vec::new(), count: 0, given_up: false }
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
            self.hits.push(Hits { segment, first: first.to_vec(), words: indices });
        }
    }

    fn gather<S: Shelf>(
        self,
        shelf: &S,
        segments: &[SegmentHead],
        limits: &Limits,
    ) -> Result<Option<Found>, S::Error> {
        let mut found = Found::default();
        for hits in self.hits {
            let Some(segment) = segments.get(hits.segment) else { continue };
            let Some(bytes) = shelf.postings(segment.id, &hits.first)? else { continue };
            let mut layout = Layout::of(&bytes)?;
            let mut next = 0;
            for index in hits.words {
                let skip = (index as usize).saturating_sub(next);
                next = index as usize + 1;
                let Some(list) = layout.nth(&bytes, skip) else { break };
                found.keep(list);
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
