pub mod beside;
pub mod document;
pub mod events;
pub mod lines;
mod object;
pub mod replay;
pub mod rollout;
pub mod rows;
pub mod source;
