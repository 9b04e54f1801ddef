//! `block_on` for threads without a Tokio runtime: the recorder and the command line.

pub use pollster::block_on;
