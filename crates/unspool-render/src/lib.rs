//! The painter for browsers: blocks in, HTML out. It looks at no part and parses no Markdown; what
//! is shown was decided by `present`. Every text that an agent wrote passes through `text::safe`
//! and maud's escaping, and there is no other way in.

pub mod address;
pub mod assets;
pub mod block;
pub mod chart;
pub mod flow;
pub mod highlight;
pub mod markdown;
pub mod page;
pub mod project;
pub mod text;
pub mod turn;

#[cfg(test)]
mod contrast_tests;
