//! The terminal application. A link brings sessions (`link`), the state folds what happens to it
//! (`state`), the view draws the state and changes nothing (`view`).

pub mod app;
pub mod colours;
pub mod event;
pub mod keys;
pub mod link;
mod list;
pub mod paint;
mod piece;
mod replay;
mod screen;
mod scroll;
pub mod stage;
mod state;
pub mod theme;
mod transcript;
mod view;
