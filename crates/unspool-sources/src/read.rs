//! Turns anything that holds a session into lines of JSON: `source` opens files of every form,
//! `lines` cuts them into lines, and the other modules convert one form each. Forms of one agent
//! alone are in its folder under `decode`; `own_file` asks for them.

pub mod agent_meta;
pub mod document;
mod document_detector;
pub mod event_table;
pub(crate) mod first_record;
pub mod lines;
pub mod own_file;
mod packed;
pub mod regular_file;
pub mod restartable_reader;
pub mod rollout;
pub mod rows;
pub mod source;
pub mod sse;
pub mod trace_files;
