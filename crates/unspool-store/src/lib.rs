//! The archive. It keeps sessions after the agents delete their own logs.
//!
//! The recorder is the only writer: it folds events into sessions, turns and parts and stores them
//! as rows. Large payloads are stored once, by content; a full-text index covers every word.
//! Readers use a [`store::View`] of an async [`store::Store`], so another database could replace
//! SQLite.

pub mod batch;
pub mod blocking;
pub mod facets;
pub mod index;
pub mod pack;
pub mod recorder;
pub mod rows;
pub mod search;
pub mod searchable;
pub mod session_writer;
pub mod sqlite;
pub mod stats;
pub mod store;
