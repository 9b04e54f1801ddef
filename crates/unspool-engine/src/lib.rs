//! The engine between sources and archive. It finds new and grown files and ingests them, holds the
//! lock that makes one process the recorder, and serves the socket through which other processes
//! follow that recorder. `reader` and `window` answer queries; `export` and `exchange` write
//! sessions out.

pub mod exchange;
pub mod hooks;
pub mod ingest;
pub mod live;
pub mod lock;
pub mod query;
pub mod recorder;
pub mod report;
