//! From a query to the documents that may match it. The blocks come from a [`Shelf`], which the
//! database implements; what comes out are candidates, which the caller verifies against their
//! texts with [`Query::matches`].
//!
//! A condition becomes needs: words, or beginnings, ends and insides of words, of which a document
//! must have one each. A need becomes lists of documents (`gather.rs`). If the rarest need has few
//! documents, they are filtered by the others and ranked. If it has many, ranking them would take
//! long and mean little: the newest that satisfy all needs are taken, from the newest end of every
//! list.

use std::cmp::Reverse;
use std::ops::{ControlFlow, Range};

use super::gather::{self, Found};
use super::postings::{Corrupt, Posting};
use super::query::{Kind, Need, Query, Reach};
use super::segment::Block;
use super::stream::Stream;

/// A live segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHead {
    /// How the shelf knows it.
    pub id: i64,
    /// How many documents it has.
    pub documents: u64,
}

/// A block where it lies on the shelf.
#[derive(Clone, Copy, Debug)]
pub struct BlockRef<'a> {
    /// Its first word.
    pub first: &'a [u8],
    /// The words, packed.
    pub words: &'a [u8],
    /// The documents of each word.
    pub postings: &'a [u8],
}

/// The words of a block where it lies on the shelf.
#[derive(Clone, Copy, Debug)]
pub struct WordsRef<'a> {
    /// Its first word.
    pub first: &'a [u8],
    /// The words, packed.
    pub words: &'a [u8],
}

/// Where the blocks are kept.
pub trait Shelf {
    /// What can go wrong there, and in reading a block.
    type Error: From<Corrupt>;

    /// The live segments.
    fn segments(&self) -> Result<Vec<SegmentHead>, Self::Error>;

    /// The block that has the word if any has: the last one whose first word is not behind it.
    fn block_with(&self, segment: i64, word: &[u8]) -> Result<Option<Block>, Self::Error>;

    /// The blocks of the segment in order, from [`Self::block_with`] of `from` on (or the first
    /// one, if there is no such block), until `visit` breaks.
    fn blocks(
        &self,
        segment: i64,
        from: &[u8],
        visit: &mut dyn FnMut(BlockRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error>;

    /// A slice of a sheet of the segment, both by their numbers, if it is there.
    fn slice(
        &self,
        segment: i64,
        sheet: usize,
        slice: usize,
    ) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The words of the blocks of the segment with these numbers, in order, until `visit` breaks.
    /// The range may go beyond the last block. The postings should not be touched.
    fn words(
        &self,
        segment: i64,
        blocks: Range<usize>,
        visit: &mut dyn FnMut(WordsRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error>;

    /// The postings of the block with this first word.
    fn postings(&self, segment: i64, first: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;
}

/// How much to look for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Up to so many documents of the rarest need are ranked.
    pub ranked: u64,
    /// So many candidates are returned at most if they are not ranked.
    pub most: usize,
    /// Only documents before this one: to go on where the last look stopped.
    pub before: Option<u64>,
    /// If this few documents are left, other needs are not looked up where that means to search
    /// all words: verifying the few is faster.
    pub few: u64,
    /// A beginning, end or inside that so many words of a segment have, or that has so many
    /// documents, narrows nothing down and is passed over.
    pub words: usize,
    pub postings: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            ranked: 5_000,
            most: 1_000,
            before: None,
            few: 300,
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
    /// Whether they are the newest instead of the best.
    pub newest_first: bool,
    /// Whether there may be more behind the last: look again with `before` set to it.
    pub more: bool,
    /// Whether the index cannot tell: nothing in the query narrows it down (punctuation only,
    /// exclusions only, one letter). Every document is a candidate and `documents` is empty: scan
    /// them, newest first, or refuse.
    pub everything: bool,
    /// The query to verify with. It differs from the one asked in words that no document has as
    /// whole words: they are looked for as fragments.
    pub query: Query,
    /// Whether it does differ.
    pub widened: bool,
}

/// The documents that may match a query.
pub fn candidates<S: Shelf>(
    query: &Query,
    shelf: &S,
    limits: &Limits,
) -> Result<Candidates, S::Error> {
    let segments = shelf.segments()?;
    let mut result = Candidates { query: query.clone(), ..Candidates::default() };
    let mut found: Vec<Found> = Vec::new();
    let mut searches: Vec<Need> = Vec::new();
    for (index, condition) in query.conditions().iter().enumerate() {
        let mut needs = condition.needs();
        if condition.kind() == Kind::Word {
            let mut whole = Found::default();
            for need in &needs {
                whole = gather::whole(shelf, &segments, &need.word)?;
            }
            if whole.documents > 0 {
                found.push(whole);
                continue;
            }
            result.query.widen(index);
            result.widened = true;
            needs = result.query.conditions().get(index).map_or(needs, |it| it.needs());
        }
        for need in needs {
            match need.reach {
                Reach::Whole => found.push(gather::whole(shelf, &segments, &need.word)?),
                Reach::Start => {
                    found.extend(gather::starting(shelf, &segments, &need.word, limits)?);
                }
                Reach::End | Reach::Inside if !searches.contains(&need) => searches.push(need),
                Reach::End | Reach::Inside => {}
            }
        }
    }
    let rarest = found.iter().map(|found| found.documents).min();
    if rarest.is_none_or(|documents| documents > limits.few) {
        found.extend(gather::searched(shelf, &segments, &searches, limits)?);
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
            result.more = result.documents.len() >= limits.most;
        }
    }
    Ok(result)
}

// ── The best ────────────────────────────────────────────────────────────────────────────────

/// What a level of occurrences counts for: about the middle of it.
const OCCURRENCES: [f32; 4] = [1.0, 2.5, 5.5, 12.0];
/// How soon more occurrences count for less.
const SATURATION: f32 = 1.2;

struct Row {
    document: u64,
    score: f32,
    /// The highest level that the need at hand has here, plus one.
    level: u8,
}

/// Filters the documents of the first need by the others, and ranks them.
fn rank(found: &[Found], total: u64, before: Option<u64>) -> Vec<Candidate> {
    let Some((first, others)) = found.split_first() else { return Vec::new() };
    let mut postings: Vec<Posting> = first.lists().flatten().collect();
    postings.retain(|posting| before.is_none_or(|before| posting.document < before));
    postings.sort_unstable_by_key(|it| (Reverse(it.document), Reverse(it.level)));
    postings.dedup_by_key(|posting| posting.document);
    let mut rows: Vec<Row> = postings
        .into_iter()
        .map(|posting| Row { document: posting.document, score: 0.0, level: posting.level + 1 })
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
    // Stable: of those that are equally good the newest come first.
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    ranked
}

/// Adds to each score what the need at hand is worth there.
fn count(rows: &mut [Row], rarity: f32) {
    for row in rows {
        let level = usize::from(row.level.saturating_sub(1));
        let often = OCCURRENCES.get(level).copied().unwrap_or_default();
        row.score += rarity * often * (SATURATION + 1.0) / (often + SATURATION);
        row.level = 0;
    }
}

fn rarity(documents: u64, total: u64) -> f32 {
    let (documents, total) = (documents as f32, total.max(documents) as f32);
    (1.0 + (total - documents + 0.5) / (documents + 0.5)).ln()
}

// ── The newest ──────────────────────────────────────────────────────────────────────────────

/// The newest documents that have all needs.
fn newest(found: &[Found], limits: &Limits) -> Vec<Candidate> {
    let mut streams: Vec<Stream<'_>> = found.iter().map(Stream::of).collect();
    let mut documents = Vec::new();
    let mut target = limits.before.map_or(Some(u64::MAX), |before| before.checked_sub(1));
    while documents.len() < limits.most
        && let Some(wanted) = target
    {
        let Some(document) = agreed(&mut streams, wanted) else { break };
        documents.push(Candidate { document, score: 0.0 });
        target = document.checked_sub(1);
    }
    documents
}

/// The newest document that all streams have, from `wanted` on.
fn agreed(streams: &mut [Stream<'_>], mut wanted: u64) -> Option<u64> {
    'again: loop {
        for stream in &mut *streams {
            let document = stream.at_most(wanted)?;
            if document < wanted {
                wanted = document;
                continue 'again;
            }
        }
        return Some(wanted);
    }
}
