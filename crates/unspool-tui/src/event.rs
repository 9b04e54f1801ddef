//! The events of the main loop: terminal input, backend events, highlights and signals.

use std::time::Instant;

use crossterm::event::{KeyEvent, MouseEvent};

use crate::backend::BackendEvent;
use crate::chat::{ChatEvent, LinkId};

#[derive(Debug)]
pub enum AppEvent {
    /// A key, and when it was read: a question that was not visible then is not answered by it.
    Key(KeyEvent, Instant),
    Mouse(MouseEvent),
    Paste(String),
    /// The new size: columns and lines.
    Resize(u16, u16),
    /// The terminal got or lost the focus.
    Focus(bool),
    Backend(BackendEvent),
    /// From the connection to the host of a chat.
    Chat(LinkId, ChatEvent),
    /// The highlighter has colours for code that was drawn without them.
    Highlighted,
    /// A signal, or the terminal was closed.
    End,
}
