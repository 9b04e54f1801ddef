//! The archive. It keeps sessions after the agents delete their own logs.
//!
//! Sessions, turns and parts are rows. Large payloads are stored once, by content; the full-text
//! index of `unspool-index` covers every word. The recorder in `unspool-ingest` is the only writer.
//! Readers use a [`store::View`] of an async [`store::Store`], so another database could replace
//! SQLite.

pub mod archive_lines;
pub mod blocking;
pub mod database;
pub mod facets;
pub mod pack;
pub mod piece_texts;
pub mod postgres;
pub mod private_file;
pub mod received_text;
pub mod replace_file;
pub mod rows;
pub mod search;
pub mod searchable;
pub mod sql;
pub mod stats;
pub mod store;
