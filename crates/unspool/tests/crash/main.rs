//! Crash tests with the real program in temporary folders: the process is killed, a second one
//! runs, the disk is full, the database is damaged, and the agents' files change in every possible
//! way.
//!
//! Environment: `UNSPOOL_KILLS` is the number of kills of an import (default 200; a live session
//! gets an eighth of that), `UNSPOOL_SEED` seeds their timing.

#![cfg(unix)]
// Tests fail by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod concurrency;
mod contents;
mod corpus;
mod damage;
mod files;
mod follow;
mod kills;
mod live;
mod random;
mod sandbox;
mod small_disk;
