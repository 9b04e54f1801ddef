//! What happens to the application: keys, what is told, time, signals.

use crossterm::event::{KeyEvent, MouseEvent};

use crate::link::Told;

#[derive(Debug)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// The terminal has so many columns and lines now.
    Resize(u16, u16),
    Told(Told),
    /// Colours of code that was shown without are at hand.
    Coloured,
    /// Somebody wants us to end.
    End,
}
