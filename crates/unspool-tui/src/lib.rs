//! The terminal application. `backend` answers queries, from this machine's archive or from a
//! server. `state` folds events into the application state and returns effects. `view` draws the
//! state and changes nothing.

pub mod app;
pub mod backend;
mod changes;
pub mod chat;
mod editor;
mod entry;
pub mod event;
pub mod highlight_cache;
pub mod keys;
mod list;
pub mod paint;
mod prompt;
mod prompt_calls;
mod replay;
mod screen;
mod scroll;
mod state;
pub mod test_harness;
mod text_field;
pub mod theme;
mod transcript;
mod view;
