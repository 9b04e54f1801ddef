//! The full-text index: which documents may hold the words of a query. Pure: it knows neither the
//! database that keeps its blocks nor the texts it was built from, and does no I/O.
//!
//! ```text
//!            tokens                  finish                    merge
//! documents ───────► Builder ──────────────► Segment (blocks) ───────► Segment
//!                                               │
//! Query::parse ─► candidates ◄── Shelf ─────────┘  ─► the caller reads the texts ─► Query::matches
//! ```
//!
//! It proposes and never decides: a candidate may be gone, may have changed, or may have the words
//! elsewhere than the query wants them. A document that matches is always among the candidates,
//! with two exceptions that are meant: what stands more than a kilobyte into an unbroken run of
//! letters and digits, or into a chain of base64, can be found only by its beginning.

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
