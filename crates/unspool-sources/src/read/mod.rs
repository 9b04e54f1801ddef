//! Turns anything that holds a session into lines of JSON: `source` opens files of every form,
//! `lines` cuts them into lines, and the other modules convert one form each.

pub mod beside;
pub mod document;
pub mod events;
pub mod lines;
mod object;
pub mod replay;
pub mod rollout;
pub mod rows;
pub mod source;
