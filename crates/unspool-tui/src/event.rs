//! The events of the main loop: terminal input, backend events, highlights and signals.

use crossterm::event::{KeyEvent, MouseEvent};

use crate::link::Told;

#[derive(Debug)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// The new size: columns and lines.
    Resize(u16, u16),
    Told(Told),
    /// The highlighter has colours for code that was drawn without them.
    Coloured,
    /// A signal, or the terminal was closed.
    End,
}
