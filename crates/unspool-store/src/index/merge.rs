//! Merges segments into one, block by block, and says when it is time to. Blocks come from the
//! database and go back to it; in between only one block of each segment is held, and the
//! documents of one word.
//!
//! Where a document stands in several segments (a part that changed was indexed again), it has
//! afterwards the words of all of them. Its old words are not told apart: whoever looks verifies.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::postings::{Corrupt, Layout, List, Posting};
use super::segment::{Block, Counts, Piece, Writer};
use super::words::Unpacker;

/// Merges segments, each given as its blocks in order. Documents that `keep` refuses are left
/// out; it is asked once for each. The new blocks and sheets go to `emit`, in order.
pub fn merge<S, E>(
    sources: impl IntoIterator<Item = S>,
    keep: &mut dyn FnMut(u64) -> bool,
    emit: &mut dyn FnMut(Piece) -> Result<(), E>,
) -> Result<Counts, E>
where
    S: Iterator<Item = Result<Block, E>>,
    E: From<Corrupt>,
{
    let mut sources: Vec<Source<S>> = sources.into_iter().map(Source::new).collect();
    let mut unpacker = Unpacker::default();
    for source in &mut sources {
        source.advance(&mut unpacker)?;
    }
    let mut asked = Asked { keep, pages: FxHashMap::default(), kept: 0 };
    let mut writer = Writer::default();
    let mut word = Vec::new();
    let mut list: Vec<Posting> = Vec::new();
    while let Some(least) = sources.iter().filter_map(Source::word).min() {
        word.clear();
        word.extend_from_slice(least);
        list.clear();
        for source in &mut sources {
            if source.word() == Some(&word) {
                if let Some(found) = source.list() {
                    list.extend(found.into_iter().filter(|it| asked.keeps(it.document)));
                }
                source.advance(&mut unpacker)?;
            }
        }
        // Each segment's documents are in order already, which this sort makes use of.
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
    Ok(Counts { documents: asked.kept, ..counts })
}

/// A segment that is being read.
struct Source<S> {
    blocks: S,
    /// The words of the open block, each between line feeds; the current one; and its list.
    words: Vec<u8>,
    current: Range<usize>,
    postings: Vec<u8>,
    layout: Layout,
    here: Layout,
}

impl<S, E> Source<S>
where
    S: Iterator<Item = Result<Block, E>>,
    E: From<Corrupt>,
{
    fn new(blocks: S) -> Self {
        Source {
            blocks,
            words: Vec::new(),
            current: 0..0,
            postings: Vec::new(),
            layout: Layout::default(),
            here: Layout::default(),
        }
    }

    /// The current word, until there are no more.
    fn word(&self) -> Option<&[u8]> {
        self.words.get(self.current.clone()).filter(|word| !word.is_empty())
    }

    /// The documents of the current word.
    fn list(&self) -> Option<List<'_>> {
        self.here.clone().next(&self.postings)
    }

    /// Goes on to the next word.
    fn advance(&mut self, unpacker: &mut Unpacker) -> Result<(), E> {
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
            self.words.extend_from_slice(unpacker.words(&block.words)?);
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
        // This also keeps an endless row of blocks from being taken for words.
        if self.words.get(self.current.clone()).unwrap_or_default() <= before {
            return Err(Corrupt::new("words that are not in order").into());
        }
        self.here = self.layout.clone();
        if self.layout.next(&self.postings).is_none() {
            return Err(Corrupt::new("words without postings").into());
        }
        Ok(())
    }
}

/// Remembers what `keep` said, by pages of document numbers, which lie close together.
struct Asked<'k> {
    keep: &'k mut dyn FnMut(u64) -> bool,
    pages: FxHashMap<u64, Page>,
    kept: u64,
}

/// 512 documents: asked, and kept.
type Page = ([u64; 8], [u64; 8]);

/// More pages than this are not remembered: 16 million documents, or numbers that are nonsense.
const PAGES: usize = 1 << 15;

impl Asked<'_> {
    fn keeps(&mut self, document: u64) -> bool {
        let room = self.pages.len() < PAGES;
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

/// So many segments of similar size are merged into one.
const ENOUGH: usize = 4;
/// Everything below is similar: what a turn writes (in tokens).
const LEAST: u64 = 1_000;
/// More segments than this are not left standing, similar or not: every look visits each.
const MOST: usize = 24;

/// Which of the segments with these sizes (in tokens) are to be merged into one now, if any. To
/// be asked again afterwards, until it says none.
///
/// A size class is a factor of four and has at most three segments, so there are as many classes
/// as the index is large, logarithmically, and a token is rewritten at most once in each. With a
/// factor of eight it would be rewritten less often (twice instead of three times in a large
/// import) and there would be half as many segments again.
pub fn choose(sizes: &[u64]) -> Option<Vec<usize>> {
    let mut order: Vec<(u64, usize)> = sizes.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let class = |size: &(u64, usize)| (size.0 / LEAST).max(1).ilog(ENOUGH as u64);
    // The small ones come first: merging them costs least.
    let chosen = order
        .chunk_by(|one, other| class(one) == class(other))
        .find(|similar| similar.len() >= ENOUGH)
        .or_else(|| order.get(..ENOUGH).filter(|_| order.len() > MOST))?;
    Some(chosen.iter().map(|(_, index)| *index).collect())
}
