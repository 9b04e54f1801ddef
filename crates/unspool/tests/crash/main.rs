//! What must hold when things go wrong, shown with the real program in temporary folders: it is
//! killed, it runs twice, the disk is full, its file is damaged, and the agents' files change in
//! every way that files change.
//!
//! Two variables: `UNSPOOL_KILLS` says how often an import is killed (200 by default; a live
//! session an eighth of that), `UNSPOOL_SEED` when.

#![cfg(unix)]
// Tests fail by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contents;
mod corpus;
mod damage;
mod desk;
mod files;
mod follow;
mod kills;
mod live;
mod random;
mod room;
mod second;
