//! Windows: a slice of a session, ready to be shown. However long a session or a turn is, only the
//! parts in the window are loaded; of the rest only the counts. This file owns what is requested
//! and what is returned; `window/` loads it.

mod filter;
mod loader;
mod position;
mod slice;

use serde::{Deserialize, Serialize};
use slice::MAX_BLOCK_PARTS;
use unspool_view::present::{Folding, TurnView};

pub use filter::PartFilter;
pub use loader::{MAX_WINDOW_PARTS, fill, window};
pub use position::{Anchor, Position};
pub use slice::block_parts;

/// What to load.
#[derive(Clone, Copy, Debug)]
pub struct WindowRequest<'a> {
    pub anchor: Anchor,
    /// Load only the parts that pass.
    pub filter: Option<&'a PartFilter>,
    pub size: Size,
    pub folding: Folding,
}

impl From<Anchor> for WindowRequest<'_> {
    fn from(anchor: Anchor) -> Self {
        WindowRequest { anchor, filter: None, size: Size::default(), folding: Folding::default() }
    }
}

/// How much to load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Approximate number of parts in a window.
    pub parts: usize,
    /// Number of parts of a reasoning block that are shown at first.
    pub block: usize,
    /// A turn with more parts than this is not loaded whole.
    pub long: u64,
}

impl Size {
    /// For scrolling: little enough to be inserted between two frames.
    pub const SCROLL: Size = Size { parts: 24, block: 24, long: 48 };
}

impl Default for Size {
    fn default() -> Size {
        Size { parts: 160, block: MAX_BLOCK_PARTS, long: 320 }
    }
}

/// A loaded window. Each turn view counts its own missing parts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WindowView {
    pub turns: Vec<TurnView>,
    /// Set if there are turns before the first one.
    pub earlier: Option<Position>,
    /// Set if there are turns after the last one.
    pub later: Option<Position>,
}
