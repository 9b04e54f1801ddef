//! The one process that records: its start-up and its watch loop, the socket through which other
//! processes follow it, and their write requests.

pub mod archive;
pub mod request;
pub mod request_queue;
pub mod service;
#[cfg(unix)]
pub mod socket;
pub mod watch;
