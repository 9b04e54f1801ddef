//! Paints blocks for a plain terminal: the same lines as everywhere, with ANSI colours or none.

use std::io::{self, Write};

use unspool_core::session::Transcript;

pub struct Style {
    pub colour: bool,
    pub width: Option<usize>,
    pub full: bool,
}

pub fn session(_transcript: &Transcript, _style: &Style, _out: &mut impl Write) -> io::Result<()> {
    Ok(())
}
