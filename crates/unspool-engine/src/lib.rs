//! Sources into the archive: which files are new, reading them, the lock that makes one process the
//! recorder, and the socket by which the others follow it.

pub mod agents;
pub mod asked;
pub mod attach;
mod claim;
pub mod desk;
pub mod exchange;
pub mod export;
pub mod family;
pub mod follow;
pub mod hooks;
mod known;
pub mod lock;
pub mod raw;
pub mod reader;
pub mod report;
pub mod request;
pub mod reread;
#[cfg(unix)]
pub mod socket;
pub mod spool;
pub mod sync;
mod take;
mod told;
pub mod watch;
pub mod window;
