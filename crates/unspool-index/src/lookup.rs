//! Finds the documents that may match a query. Blocks come from a [`BlockStore`], which the
//! database implements; the caller verifies the candidates against their texts with
//! [`TextQuery::matches`].
//!
//! Each condition becomes terms: whole words, prefixes, suffixes or infixes, all of which a
//! document must have. Each term becomes posting lists (`term_postings.rs`). If the rarest term has
//! few documents, they are filtered by the other terms and ranked. If it has many, ranking would be
//! slow and mean little: the newest documents that have all terms are returned instead.

use std::cmp::Reverse;
use std::ops::{ControlFlow, Range};

use super::document_cursor::DocumentCursor;
use super::postings::{CorruptIndex, Posting};
use super::query::{ConditionKind, Term, TermMatch, TextQuery};
use super::segment::SegmentBlock;
use super::term_postings::{self, TermPostings};

/// A live segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHead {
    /// Its id in the `BlockStore`.
    pub id: i64,
    /// The number of its documents.
    pub documents: u64,
}

/// A block, borrowed from the store.
#[derive(Clone, Copy, Debug)]
pub struct BlockRef<'a> {
    /// Its first word.
    pub first: &'a [u8],
    /// The words, front-coded.
    pub words: &'a [u8],
    /// The postings of each word.
    pub postings: &'a [u8],
}

/// The words of a block, borrowed from the store.
#[derive(Clone, Copy, Debug)]
pub struct WordsRef<'a> {
    /// Its first word.
    pub first: &'a [u8],
    /// The words, front-coded.
    pub words: &'a [u8],
}

/// Stores the segments of the index.
pub trait BlockStore {
    /// An error of the store, or a corrupt block.
    type Error: From<CorruptIndex>;

    /// The live segments.
    fn segments(&self) -> Result<Vec<SegmentHead>, Self::Error>;

    /// The only block that may contain the word: the last one whose first word is not greater.
    fn block_with(&self, segment: i64, word: &[u8]) -> Result<Option<SegmentBlock>, Self::Error>;

    /// Visits the blocks of the segment in order until `visit` breaks, starting at
    /// [`Self::block_with`] of `from`, or at the first block if there is none.
    fn blocks(
        &self,
        segment: i64,
        from: &[u8],
        visit: &mut dyn FnMut(BlockRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error>;

    /// A slice of an n-gram bitmap of the segment, both by number, if it exists.
    fn slice(
        &self,
        segment: i64,
        bitmap: usize,
        slice: usize,
    ) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Visits the words of the blocks with these numbers, in order, until `visit` breaks. The range
    /// may extend beyond the last block. Implementations should not read the postings.
    fn words(
        &self,
        segment: i64,
        blocks: Range<usize>,
        visit: &mut dyn FnMut(WordsRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error>;

    /// The postings of the block with this first word.
    fn postings(&self, segment: i64, first: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;
}

/// The limits of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Candidates are ranked if the rarest term has at most this many documents.
    pub ranked: u64,
    /// The maximum number of unranked candidates to return.
    pub max_newest: usize,
    /// Only documents before this one, to continue an earlier lookup.
    pub before: Option<u64>,
    /// If the rarest whole-word or prefix term has at most this many documents, skip the suffix and
    /// infix terms, which need a scan of all words: verifying the documents is faster.
    pub enough_documents: u64,
    /// A prefix, suffix or infix that matches more words than this, or has more postings, narrows
    /// nothing down and is ignored.
    pub words: usize,
    pub postings: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            ranked: 5_000,
            max_newest: 1_000,
            before: None,
            enough_documents: 300,
            words: 50_000,
            postings: 4_000_000,
        }
    }
}

/// A document that may match.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Candidate {
    pub document: u64,
    /// Higher is better. Zero if the candidates are not ranked.
    pub score: f32,
}

/// The documents that may match.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Candidates {
    /// Best first, or newest first; each once.
    pub documents: Vec<Candidate>,
    /// True if they are the newest, unranked.
    pub newest_first: bool,
    /// True if there may be more after the last: look up again with `before` set to it.
    pub more: bool,
    /// True if nothing in the query narrows it down (punctuation only, exclusions only, one
    /// letter). Then every document is a candidate and `documents` is empty: the caller scans them,
    /// newest first, or gives up.
    pub everything: bool,
    /// The query to verify with. Words that no document has as whole words have become fragments.
    pub query: TextQuery,
    /// True if it differs from the given query.
    pub widened: bool,
}

/// The documents that may match a query.
pub fn candidates<S: BlockStore>(
    query: &TextQuery,
    store: &S,
    limits: &Limits,
) -> Result<Candidates, S::Error> {
    let segments = store.segments()?;
    let mut result = Candidates { query: query.clone(), ..Candidates::default() };
    let mut found: Vec<TermPostings> = Vec::new();
    let mut searches: Vec<Term> = Vec::new();
    for (index, condition) in query.conditions().iter().enumerate() {
        let mut terms = condition.terms();
        if condition.kind() == ConditionKind::Word {
            let mut whole_word = TermPostings::default();
            for term in &terms {
                whole_word = term_postings::whole_word(store, &segments, &term.word)?;
            }
            if whole_word.documents > 0 {
                found.push(whole_word);
                continue;
            }
            result.query.widen(index);
            result.widened = true;
            terms = result.query.conditions().get(index).map_or(terms, |it| it.terms());
        }
        for term in terms {
            match term.term_match {
                TermMatch::Whole => {
                    found.push(term_postings::whole_word(store, &segments, &term.word)?)
                }
                TermMatch::Prefix => {
                    found.extend(term_postings::with_prefix(store, &segments, &term.word, limits)?);
                }
                TermMatch::Suffix | TermMatch::Infix if !searches.contains(&term) => {
                    searches.push(term)
                }
                TermMatch::Suffix | TermMatch::Infix => {}
            }
        }
    }
    let rarest = found.iter().map(|found| found.documents).min();
    if rarest.is_none_or(|documents| documents > limits.enough_documents) {
        found.extend(term_postings::scan_words(store, &segments, &searches, limits)?);
    }
    found.sort_by_key(|found| found.documents);
    match found.first() {
        None => result.everything = true,
        Some(rarest) if rarest.documents <= limits.ranked => {
            let total = segments.iter().map(|segment| segment.documents).sum();
            result.documents = rank(&found, total, limits.before);
        }
        Some(_) => {
            result.newest_first = true;
            result.documents = newest(&found, limits);
            result.more = result.documents.len() >= limits.max_newest;
        }
    }
    Ok(result)
}

// ── The best ────────────────────────────────────────────────────────────────────────────────

/// The assumed number of occurrences of each level: about its middle.
const LEVEL_OCCURRENCES: [f32; 4] = [1.0, 2.5, 5.5, 12.0];
/// Term frequency saturation: BM25's k1.
const SATURATION: f32 = 1.2;

struct ScoredDocument {
    document: u64,
    score: f32,
    /// The highest level of the current term in this document, plus one.
    level: u8,
}

/// Filters the documents of the first term by the other terms and ranks them.
fn rank(found: &[TermPostings], total: u64, before: Option<u64>) -> Vec<Candidate> {
    let Some((first, others)) = found.split_first() else { return Vec::new() };
    let mut postings: Vec<Posting> = first.lists().flatten().collect();
    postings.retain(|posting| before.is_none_or(|before| posting.document < before));
    postings.sort_unstable_by_key(|it| (Reverse(it.document), Reverse(it.level)));
    postings.dedup_by_key(|posting| posting.document);
    let mut rows: Vec<ScoredDocument> = postings
        .into_iter()
        .map(|posting| ScoredDocument {
            document: posting.document,
            score: 0.0,
            level: posting.level + 1,
        })
        .collect();
    count(&mut rows, rarity(first.documents, total));
    for found in others {
        for list in found.lists() {
            let mut open = rows.iter_mut();
            let mut row = open.next();
            for posting in list {
                while row.as_ref().is_some_and(|row| row.document > posting.document) {
                    row = open.next();
                }
                let Some(row) = &mut row else { break };
                if row.document == posting.document {
                    row.level = row.level.max(posting.level + 1);
                }
            }
        }
        rows.retain(|row| row.level > 0);
        count(&mut rows, rarity(found.documents, total));
    }
    let mut ranked: Vec<Candidate> =
        rows.iter().map(|row| Candidate { document: row.document, score: row.score }).collect();
    // Stable sort: of equal scores the newest come first.
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    ranked
}

/// Adds the score of the current term to each document.
fn count(rows: &mut [ScoredDocument], rarity: f32) {
    for row in rows {
        let level = usize::from(row.level.saturating_sub(1));
        let often = LEVEL_OCCURRENCES.get(level).copied().unwrap_or_default();
        row.score += rarity * often * (SATURATION + 1.0) / (often + SATURATION);
        row.level = 0;
    }
}

fn rarity(documents: u64, total: u64) -> f32 {
    let (documents, total) = (documents as f32, total.max(documents) as f32);
    (1.0 + (total - documents + 0.5) / (documents + 0.5)).ln()
}

// ── The newest ──────────────────────────────────────────────────────────────────────────────

/// The newest documents that have all terms.
fn newest(found: &[TermPostings], limits: &Limits) -> Vec<Candidate> {
    let mut cursors: Vec<DocumentCursor<'_>> = found.iter().map(DocumentCursor::of).collect();
    let mut documents = Vec::new();
    let mut target = limits.before.map_or(Some(u64::MAX), |before| before.checked_sub(1));
    while documents.len() < limits.max_newest
        && let Some(wanted) = target
    {
        let Some(document) = next_common(&mut cursors, wanted) else { break };
        documents.push(Candidate { document, score: 0.0 });
        target = document.checked_sub(1);
    }
    documents
}

/// The newest document, not newer than `wanted`, that all cursors have.
fn next_common(cursors: &mut [DocumentCursor<'_>], mut wanted: u64) -> Option<u64> {
    'again: loop {
        for stream in &mut *cursors {
            let document = stream.seek(wanted)?;
            if document < wanted {
                wanted = document;
                continue 'again;
            }
        }
        return Some(wanted);
    }
}
