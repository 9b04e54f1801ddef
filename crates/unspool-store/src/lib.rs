//! The archive: one place that outlives the agents' own clean-up. Sessions, turns and parts as
//! rows, payloads stored once by content, an index of every word, and the recorder, which is the
//! only writer. Everything is behind one async contract, so that another database can take
//! SQLite's place.

pub mod batch;
pub mod blocking;
pub mod choices;
pub mod contract;
pub mod fold;
pub mod index;
pub mod pack;
pub mod recorder;
pub mod rows;
pub mod search;
pub mod sqlite;
pub mod stats;
pub mod words;
