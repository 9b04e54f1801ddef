//! The engine between sources and archive. It finds new and grown files and ingests them, holds the
//! lock that makes one process the recorder, and serves the socket through which other processes
//! follow that recorder. `reader` and `window` answer queries; `export` and `exchange` write
//! sessions out.

pub mod agents;
pub mod asked;
pub mod attach;
mod claim;
pub mod desk;
pub mod exchange;
pub mod export;
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
pub mod subagents;
pub mod sync;
mod take;
mod told;
pub mod watch;
pub mod window;
