//! A cursor over the documents of a term, newest first, merged lazily from its posting lists.

use super::postings::{Posting, Postings};
use super::term_postings::TermPostings;

/// Up to this many lists are merged lazily; more are merged into one list first.
const MAX_OPEN_LISTS: usize = 48;

pub(super) enum DocumentCursor<'a> {
    /// Each list with its current posting.
    Lists(Vec<(Option<Posting>, Postings<'a>)>),
    /// All documents, newest first, and the current index.
    Documents(Vec<u64>, usize),
}

impl<'a> DocumentCursor<'a> {
    pub(super) fn of(found: &'a TermPostings) -> Self {
        if found.lists().len() > MAX_OPEN_LISTS {
            return DocumentCursor::Documents(union(found), 0);
        }
        let open = |list: super::postings::PostingsList<'a>| {
            let mut postings = list.into_iter();
            (postings.next(), postings)
        };
        DocumentCursor::Lists(found.lists().map(open).collect())
    }

    /// The newest document that is not newer than `wanted`, which must not increase between calls.
    pub(super) fn seek(&mut self, wanted: u64) -> Option<u64> {
        match self {
            DocumentCursor::Lists(lists) => {
                let mut newest = None;
                for (current, postings) in lists {
                    while current.is_some_and(|posting| posting.document > wanted) {
                        *current = postings.next();
                    }
                    newest = newest.max(current.map(|posting| posting.document));
                }
                newest
            }
            DocumentCursor::Documents(documents, passed) => {
                let rest = documents.get(*passed..).unwrap_or_default();
                *passed += gallop(rest, wanted);
                documents.get(*passed).copied()
            }
        }
    }
}

/// The number of documents newer than `wanted`, by galloping search: usually few.
fn gallop(documents: &[u64], wanted: u64) -> usize {
    let mut reach = 1;
    while documents.get(reach).is_some_and(|document| *document > wanted) {
        reach *= 2;
    }
    let near = documents.get(..documents.len().min(reach + 1)).unwrap_or_default();
    near.partition_point(|document| *document > wanted)
}

/// The documents of all lists, newest first, without duplicates. Uses a bitmap if the numbers are
/// dense, which they are unless a block is corrupt.
fn union(found: &TermPostings) -> Vec<u64> {
    let mut documents: Vec<u64> = found.lists().flatten().map(|posting| posting.document).collect();
    let newest = documents.iter().copied().max().unwrap_or_default();
    let oldest = documents.iter().copied().min().unwrap_or_default();
    let span = usize::try_from((newest - oldest) / 64 + 1).unwrap_or(usize::MAX);
    if span > documents.len() {
        documents.sort_unstable_by_key(|document| std::cmp::Reverse(*document));
        documents.dedup();
        return documents;
    }
    let mut bits = vec![0u64; span];
    for document in documents.drain(..) {
        let distance = newest - document;
        if let Some(word) = bits.get_mut((distance / 64) as usize) {
            *word |= 1 << (distance % 64);
        }
    }
    for (word, base) in bits.into_iter().zip((0..).step_by(64)) {
        let mut left = word;
        while left != 0 {
            documents.push(newest - (base + u64::from(left.trailing_zeros())));
            left &= left - 1;
        }
    }
    documents
}
