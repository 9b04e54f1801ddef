//! Reads the logs, streams and hook payloads of coding agents and decodes them into events.
//!
//! `discover` finds the files and `fingerprint` identifies them again. `read` turns files and
//! streams into lines. `decode` turns the records of one vendor into events. `file_decoder` runs
//! the lines of one file through its decoders into a sink. `in_memory` is a sink that merges all
//! feeds of each session in memory. `agents` lists the supported agents, `survey` reports which of
//! them have logs on this machine, `unsupported` the files of agents that are not read, and
//! `application_agents` reads tables of agent runs.
//!
//! An application that wants what is in a log needs only `library`: [`parse_log_file`],
//! [`parse_log_stream`] and [`extract_tool_calls`].

pub mod agents;
pub mod application_agents;
pub mod decode;
pub mod discover;
pub mod file_decoder;
pub mod fingerprint;
pub mod in_memory;
pub mod library;
pub mod read;
pub mod survey;
pub mod unsupported;

pub use library::{
    LogUpdate, ParsedLog, ParsedSession, extract_tool_calls, parse_log_file, parse_log_stream,
};
/// Sessions, turns, parts and changes: what the functions of `library` return.
pub use unspool_model as model;
