//! The one way out (law 12). `export` loads a session, redacts it and hands it to a projection of
//! `project`, which writes it in another tool's format; `archive_lines` writes it losslessly.
//! `html` paints blocks for pages and for exports, `markdown` paints them as Markdown; both read no
//! parts and parse no Markdown, since `present` has decided what to show. Projections take redacted
//! input only, and Markdown leaves through them, so its painter is private.

pub mod archive_lines;
pub mod export;
pub mod html;
mod markdown;
pub mod project;
