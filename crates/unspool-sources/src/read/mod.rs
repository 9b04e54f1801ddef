pub mod beside;
pub mod document;
pub mod events;
pub mod lines;
pub mod replay;
pub mod rollout;
pub mod rows;
pub mod source;
