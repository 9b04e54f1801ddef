//! The engine between sources and archive. It finds new and grown files and ingests them, holds the
//! lock that makes one process the recorder, and serves the socket through which other processes
//! follow that recorder. `reader` and `window` answer queries; `export` and `exchange` write
//! sessions out.

pub mod agents;
pub mod archive;
pub mod attach;
mod claim;
pub mod exchange;
pub mod export;
mod file_state;
pub mod hooks;
pub mod live;
pub mod lock;
mod open_file;
pub mod params;
pub mod raw;
pub mod reader;
pub mod report;
pub mod request;
pub mod request_queue;
pub mod reread;
pub mod service;
#[cfg(unix)]
pub mod socket;
pub mod spool;
pub mod subagents;
pub mod sync;
pub mod watch;
pub mod window;
mod worker;
