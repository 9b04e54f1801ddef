//! The only writer of the archive. `sync` finds new and grown files and reads them. `recorder`
//! folds their events and writes the rows. `service` runs both in the one process that records: it
//! holds the lock, watches files, executes write requests and publishes every write. `hooks`,
//! `attach` and `stdin_capture` write files that `sync` reads like any log, and `traces` has the
//! folders in which agents write down what model calls were sent.
//!
//! Surfaces cannot name this crate. They hand a `Request` of `unspool-query` to a handler that the
//! binary makes from this crate.

pub mod attach;
pub mod hooks;
pub mod lock;
pub mod mcp_config;
pub mod process_registry;
pub mod recorder;
pub mod report;
pub mod service;
pub mod settings;
pub mod ship;
pub mod stdin_capture;
pub mod sync;
pub mod traces;
