//! The terminal application. `backend` answers queries, from this machine's archive or from a
//! server. `state` folds events into the application state and returns effects. `view` draws the
//! state and changes nothing.

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
