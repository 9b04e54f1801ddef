//! Turns anything that holds a session into lines of JSON: `source` opens files of every form,
//! `lines` cuts them into lines, and the other modules convert one form each.

pub mod agent_meta;
pub mod aider_history;
pub mod cline;
pub mod continue_index;
pub mod document;
mod document_detector;
pub mod droid_settings;
mod first_record;
mod hub_events;
pub mod lines;
mod packed;
pub mod regular_file;
pub mod restartable_reader;
pub mod rollout;
pub mod rows;
pub mod side_file;
pub mod source;
pub mod sse;
pub mod trace_files;
