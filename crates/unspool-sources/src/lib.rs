//! Reads the logs, streams and hook payloads of coding agents and decodes them into events.
//!
//! `discover` finds the files and `fingerprint` identifies them again. `read` turns files and
//! streams into lines. `decode` turns the records of one vendor into events. `file_decoder` runs
//! the lines of one file through its decoders into a sink. `in_memory` is a sink that merges all
//! feeds of each session in memory. `agents` lists the supported agents, `survey` reports which of
//! them have logs on this machine, `unsupported` the files of agents that are not read, and
//! `application_agents` reads tables of agent runs.

pub mod agents;
pub mod application_agents;
pub mod decode;
pub mod discover;
pub mod file_decoder;
pub mod fingerprint;
pub mod in_memory;
pub mod read;
pub mod survey;
pub mod unsupported;
