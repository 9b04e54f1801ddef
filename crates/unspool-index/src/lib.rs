//! The full-text index: finds the documents that may match a query. It does no I/O: the database
//! that stores its blocks is behind the `BlockStore` trait, which `unspool-store` implements. The
//! index does not keep the texts.
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
mod chars;
mod dictionary;
mod document_cursor;
mod front_coding;
mod lookup;
mod masks;
mod matcher;
mod merge;
mod ngram_bitmaps;
mod ngrams;
mod postings;
mod query;
mod query_parser;
mod segment;
mod snippet;
mod term_postings;
mod tokens;
mod tokens_json;

pub use build::SegmentBuilder;
pub use lookup::{
    BlockRef, BlockStore, Candidate, Candidates, Limits, SegmentHead, WordsRef, candidates,
};
pub use matcher::Matcher;
pub use merge::{merge, plan_merge};
pub use ngram_bitmaps::{BitmapRebuilder, NgramBitmap};
pub use postings::CorruptIndex;
pub use query::{Condition, ConditionKind, TextQuery};
pub use query_parser::{OtherReading, OtherReadingKind};
pub use segment::{Segment, SegmentBlock, SegmentCounts, SegmentItem};
pub use snippet::{Snippet, snippet};
pub use tokens::{ShortWord, Tokeniser, WordSink};

#[cfg(test)]
mod build_tests;
#[cfg(test)]
mod chars_tests;
#[cfg(test)]
mod front_coding_tests;
#[cfg(test)]
mod lookup_tests;
#[cfg(test)]
mod matcher_tests;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod model;
#[cfg(test)]
mod ngram_bitmaps_tests;
#[cfg(test)]
mod postings_tests;
#[cfg(test)]
mod query_tests;
#[cfg(test)]
mod snippet_tests;
#[cfg(test)]
mod tokens_tests;
