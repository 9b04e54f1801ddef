//! Reads what coding agents leave behind and decodes it into events.
//!
//! `read` turns files and streams into records, `decode` turns the records of one vendor into
//! events, and `gather` brings the tellings of each session together.

pub mod decode;
pub mod gather;
pub mod read;
