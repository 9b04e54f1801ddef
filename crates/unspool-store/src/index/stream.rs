//! The documents of a need, newest first, across all its lists, without reading more of them than
//! is asked for.

use super::gather::Found;
use super::postings::{Posting, Postings};

/// Up to so many lists are read side by side; more are made into one first.
const SIDE_BY_SIDE: usize = 48;

pub(super) enum Stream<'a> {
    /// Each list, and where it stands.
    Lists(Vec<(Option<Posting>, Postings<'a>)>),
    /// All documents, newest first, and how many were passed.
    Documents(Vec<u64>, usize),
}

impl<'a> Stream<'a> {
    pub(super) fn of(found: &'a Found) -> Self {
        if found.lists().len() > SIDE_BY_SIDE {
            return Stream::Documents(union(found), 0);
        }
        let open = |list: super::postings::List<'a>| {
            let mut postings = list.into_iter();
            (postings.next(), postings)
        };
        Stream::Lists(found.lists().map(open).collect())
    }

    /// The newest document that is not newer than `wanted`. To be asked for ever older ones.
    pub(super) fn at_most(&mut self, wanted: u64) -> Option<u64> {
        match self {
            Stream::Lists(lists) => {
                let mut newest = None;
                for (current, postings) in lists {
                    while current.is_some_and(|posting| posting.document > wanted) {
                        *current = postings.next();
                    }
                    newest = newest.max(current.map(|posting| posting.document));
                }
                newest
            }
            Stream::Documents(documents, passed) => {
                let rest = documents.get(*passed..).unwrap_or_default();
                *passed += leap(rest, wanted);
                documents.get(*passed).copied()
            }
        }
    }
}

/// How many of the documents are newer than `wanted`: few, as a rule.
fn leap(documents: &[u64], wanted: u64) -> usize {
    let mut reach = 1;
    while documents.get(reach).is_some_and(|document| *document > wanted) {
        reach *= 2;
    }
    let near = documents.get(..documents.len().min(reach + 1)).unwrap_or_default();
    near.partition_point(|document| *document > wanted)
}

/// The documents of all lists, newest first, each once. By a map of bits where they lie close
/// together, which they do unless a block is corrupt.
fn union(found: &Found) -> Vec<u64> {
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
