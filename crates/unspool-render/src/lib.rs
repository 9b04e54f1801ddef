//! Painters and exports. `block`, `turn` and `page` paint blocks as HTML, `markdown` paints them as
//! Markdown; they read no parts and parse no Markdown, since `present` has decided what to show.
//! `project` writes sessions in other formats, from redacted input only (law 12): Markdown leaves
//! through it, so its painter is private. All agent text in HTML passes through `text::safe`
//! and maud's escaping.

pub mod assets;
pub mod block;
pub mod chart;
pub mod dom;
pub mod flow;
pub mod highlight;
mod markdown;
pub mod page;
pub mod project;
pub mod text;
pub mod turn;
pub mod url_query;

#[cfg(test)]
mod contrast_tests;
