//! The full-text index: finds the documents that may match a query. Pure and without I/O: the
//! database that stores its blocks is behind the `BlockStore` trait, and it never sees the indexed
//! texts again.
//!
//! ```text
//!            tokens                         finish                    merge
//! documents ───────► SegmentBuilder ──────────────► Segment (blocks) ───────► Segment
//!                                                       │
//! TextQuery::parse ─► candidates ◄── BlockStore ────────┘
//!                         └─► the caller reads the texts ─► TextQuery::matches
//! ```
//!
//! Candidates are a superset of the matches: a candidate may be deleted or changed, or may have the
//! words in another order. Every matching document is a candidate, with two intended exceptions:
//! beyond the first kilobyte of an unbroken run of letters and digits, or of a base64 chain, text
//! is not indexed.

mod build;
mod dictionary;
mod gather;
mod letters;
mod look;
mod masks;
mod matching;
mod merge;
mod postings;
mod query;
mod runs;
mod segment;
mod sheets;
mod snippet;
mod stream;
mod tokens;
mod tokens_json;
mod words;

pub use build::Builder;
pub use look::{BlockRef, Candidate, Candidates, Limits, SegmentHead, Shelf, WordsRef, candidates};
pub use matching::Matching;
pub use merge::{choose, merge};
pub use postings::Corrupt;
pub use query::{Condition, Kind, Query};
pub use segment::{Block, Counts, Piece, Segment};
pub use sheets::{Retrace, Sheet};
pub use snippet::{Snippet, snippet};
pub use tokens::{Short, Sink, Tokeniser};

#[cfg(test)]
mod build_tests;
#[cfg(test)]
mod letters_tests;
#[cfg(test)]
mod look_tests;
#[cfg(test)]
mod matching_tests;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod model;
#[cfg(test)]
mod postings_tests;
#[cfg(test)]
mod query_tests;
#[cfg(test)]
mod sheets_tests;
#[cfg(test)]
mod snippet_tests;
#[cfg(test)]
mod tokens_tests;
#[cfg(test)]
mod words_tests;
