//! The events of the main loop: terminal input, backend events, highlights and signals.

use crossterm::event::{KeyEvent, MouseEvent};

use crate::backend::BackendEvent;

#[derive(Debug)]
pub enum AppEvent {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// The new size: columns and lines.
    Resize(u16, u16),
    /// The terminal got or lost the focus.
    Focus(bool),
    Backend(BackendEvent),
    /// The highlighter has colours for code that was drawn without them.
    Highlighted,
    /// A signal, or the terminal was closed.
    End,
}
