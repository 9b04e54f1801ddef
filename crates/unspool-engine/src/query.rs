//! Answers queries from the archive. Depends on neither `ingest` nor `recorder`: a view needs no
//! recorder to read.

pub mod params;
pub mod raw;
pub mod reader;
pub mod subagents;
pub mod window;
