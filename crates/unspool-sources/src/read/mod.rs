pub mod document;
pub mod events;
pub mod lines;
pub mod replay;
pub mod rows;
pub mod source;
