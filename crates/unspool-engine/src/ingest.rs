//! Reads files into the archive: which files are new or grown, who reads which, and what of them is
//! stored. Also reads again, imports agents and captures a running server.

pub mod agents;
pub mod attach;
mod claim;
mod file_state;
mod open_file;
pub mod reread;
pub mod sync;
mod worker;
