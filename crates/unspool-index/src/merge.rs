//! Merges segments into one, block by block, and decides when to merge. Blocks are streamed from
//! the database and back; memory holds one block of each segment and the postings of one word.
//!
//! A document in several segments (a changed part is indexed again) keeps the words of all of them.
//! Its outdated words do no harm, because candidates are verified.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::front_coding::WordUnpacker;
use super::postings::{CorruptIndex, Layout, Posting, PostingsList};
use super::segment::{BlockWriter, SegmentBlock, SegmentCounts, SegmentItem};

/// Merges segments, each given as its blocks in order. Drops the documents that `keep` rejects; it
/// is called once for each document. `emit` receives the new blocks and bitmaps, in order.
pub fn merge<S, E>(
    sources: impl IntoIterator<Item = S>,
    keep: &mut dyn FnMut(u64) -> bool,
    emit: &mut dyn FnMut(SegmentItem) -> Result<(), E>,
) -> Result<SegmentCounts, E>
where
    S: Iterator<Item = Result<SegmentBlock, E>>,
    E: From<CorruptIndex>,
{
    let mut sources: Vec<SegmentReader<S>> = sources.into_iter().map(SegmentReader::new).collect();
    let mut word_unpacker = WordUnpacker::default();
    for source in &mut sources {
        source.advance(&mut word_unpacker)?;
    }
    let mut keep_cache = KeepCache { keep, pages: FxHashMap::default(), kept: 0 };
    let mut writer = BlockWriter::default();
    let mut word = Vec::new();
    let mut list: Vec<Posting> = Vec::new();
    while let Some(least) = sources.iter().filter_map(SegmentReader::word).min() {
        word.clear();
        word.extend_from_slice(least);
        list.clear();
        for source in &mut sources {
            if source.word() == Some(&word) {
                if let Some(found) = source.list() {
                    list.extend(found.into_iter().filter(|it| keep_cache.keeps(it.document)));
                }
                source.advance(&mut word_unpacker)?;
            }
        }
        // A stable sort, which is fast on the already sorted runs of the segments.
        list.sort_by_key(|posting| (Reverse(posting.document), Reverse(posting.level)));
        list.dedup_by_key(|posting| posting.document);
        for piece in writer.add(&word, list.iter().copied()) {
            emit(piece)?;
        }
    }
    let (last, counts) = writer.finish();
    for piece in last {
        emit(piece)?;
    }
    Ok(SegmentCounts { documents: keep_cache.kept, ..counts })
}

/// Reads the words of a segment in order.
struct SegmentReader<S> {
    blocks: S,
    /// The words of the open block, separated by line feeds; the range of the current word; the
    /// postings of the block, the position after the current list, and at it.
    words: Vec<u8>,
    current: Range<usize>,
    postings: Vec<u8>,
    layout: Layout,
    here: Layout,
}

impl<S, E> SegmentReader<S>
where
    S: Iterator<Item = Result<SegmentBlock, E>>,
    E: From<CorruptIndex>,
{
    fn new(blocks: S) -> Self {
        SegmentReader {
            blocks,
            words: Vec::new(),
            current: 0..0,
            postings: Vec::new(),
            layout: Layout::default(),
            here: Layout::default(),
        }
    }

    /// The current word, or None at the end.
    fn word(&self) -> Option<&[u8]> {
        self.words.get(self.current.clone()).filter(|word| !word.is_empty())
    }

    /// The postings of the current word.
    fn list(&self) -> Option<PostingsList<'_>> {
        self.here.clone().next(&self.postings)
    }

    /// Advances to the next word.
    fn advance(&mut self, word_unpacker: &mut WordUnpacker) -> Result<(), E> {
        let previous = self.current.clone();
        let mut start = previous.end + 1;
        let mut crossed = None;
        if start >= self.words.len() {
            let Some(block) = self.blocks.next().transpose()? else {
                self.current = 0..0;
                self.words.clear();
                return Ok(());
            };
            crossed = Some(self.words.get(previous.clone()).unwrap_or_default().to_vec());
            self.words.clear();
            self.words.extend_from_slice(word_unpacker.words(&block.words)?);
            self.layout = Layout::of(&block.postings)?;
            self.postings = block.postings;
            start = 1;
        }
        let rest = self.words.get(start..).unwrap_or_default();
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.current = start..start + length;
        let before = match &crossed {
            Some(word) => word,
            None => self.words.get(previous).unwrap_or_default(),
        };
        // This check also ends an endless sequence of corrupt blocks.
        if self.words.get(self.current.clone()).unwrap_or_default() <= before {
            return Err(CorruptIndex::new("words out of order").into());
        }
        self.here = self.layout.clone();
        if self.layout.next(&self.postings).is_none() {
            return Err(CorruptIndex::new("words without postings").into());
        }
        Ok(())
    }
}

/// Caches the results of `keep` in pages of adjacent document numbers.
struct KeepCache<'k> {
    keep: &'k mut dyn FnMut(u64) -> bool,
    pages: FxHashMap<u64, Page>,
    kept: u64,
}

/// Two bit sets for 512 documents: `keep` was called, and it returned true.
type Page = ([u64; 8], [u64; 8]);

/// The maximum number of cached pages: 16 million documents. Corrupt numbers could need more.
const MAX_CACHED_PAGES: usize = 1 << 15;

impl KeepCache<'_> {
    fn keeps(&mut self, document: u64) -> bool {
        let room = self.pages.len() < MAX_CACHED_PAGES;
        let page = match self.pages.entry(document >> 9) {
            Entry::Occupied(page) => page.into_mut(),
            Entry::Vacant(place) if room => place.insert(Page::default()),
            Entry::Vacant(_) => return (self.keep)(document),
        };
        let (index, bit) = ((document >> 6 & 7) as usize, 1 << (document & 63));
        if page.0[index] & bit == 0 {
            page.0[index] |= bit;
            if (self.keep)(document) {
                page.1[index] |= bit;
                self.kept += 1;
            }
        }
        page.1[index] & bit != 0
    }
}

// ── When to merge ───────────────────────────────────────────────────────────────────────────

/// This many segments of one size class are merged into one. Also the factor between classes.
const MERGE_FACTOR: usize = 4;
/// All sizes below this many tokens are one class: what a turn writes.
const MIN_CLASS_TOKENS: u64 = 1_000;
/// Above this number the smallest segments are merged whatever their class, because a lookup visits
/// every segment.
const MAX_SEGMENTS: usize = 24;

/// Chooses the segments to merge into one, by their sizes in tokens. Call it again after each merge
/// until it returns None.
///
/// Size classes grow by a factor of four and hold at most three segments, so their number is
/// logarithmic in the size of the index, and a token is rewritten at most once in each. A factor of
/// eight would rewrite it less often (twice instead of three times in a large import) but leave
/// half as many segments again.
pub fn plan_merge(sizes: &[u64]) -> Option<Vec<usize>> {
    let mut order: Vec<(u64, usize)> = sizes.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let class = |size: &(u64, usize)| (size.0 / MIN_CLASS_TOKENS).max(1).ilog(MERGE_FACTOR as u64);
    // The small ones come first: merging them costs least.
    let chosen = order
        .chunk_by(|one, other| class(one) == class(other))
        .find(|similar| similar.len() >= MERGE_FACTOR)
        .or_else(|| order.get(..MERGE_FACTOR).filter(|_| order.len() > MAX_SEGMENTS))?;
    Some(chosen.iter().map(|(_, index)| *index).collect())
}
