//! Reads what coding agents leave behind and decodes it into events.
//!
//! `discover` finds the files, `fingerprint` knows them again, `read` turns files and streams into
//! lines, `decode` turns the records of one vendor into events, `reading` leads the lines of one
//! file through its decoders into a sink, and `gather` is the sink that brings the tellings of
//! each session together in memory. `agents` says whom we read, and `survey` what of them is here.

pub mod agents;
pub mod decode;
pub mod discover;
pub mod fingerprint;
pub mod gather;
pub mod read;
pub mod reading;
pub mod survey;
pub mod table;
