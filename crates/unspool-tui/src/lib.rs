//! The terminal application. A link brings sessions (`link`), the state folds what happens to it
//! (`state`), the view draws the state and changes nothing (`view`).

pub mod app;
pub mod event;
pub mod keys;
pub mod link;
pub mod paint;
pub mod theme;
