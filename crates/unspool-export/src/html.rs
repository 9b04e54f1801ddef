//! Blocks as HTML, for the pages of the server and for HTML exports, with the style sheet of both.
//! All agent text passes through `text::safe` and maud's escaping.

pub mod block;
pub mod dom;
pub mod flow;
pub mod highlight;
pub mod note;
pub mod session_head;
pub mod style;
pub mod text;
pub mod turn;

#[cfg(test)]
mod contrast_tests;
