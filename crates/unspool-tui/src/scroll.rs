//! Sticky scrolling: follows the end while the user is there, and otherwise keeps its position
//! (R-003-42, R-X-12). Only visible entries are measured, so a position is an entry and a line in
//! it; changes elsewhere do not move the view.

/// A column of entries with their heights in lines.
pub trait Pieces {
    fn count(&self) -> usize;
    fn height(&self, piece: usize) -> usize;
}

/// A line of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Spot {
    pub piece: usize,
    pub line: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scroll {
    /// The line at the top of the screen.
    pub top: Spot,
    /// True if new content scrolls into view. Only the user's own moves change it; growing,
    /// shrinking, resizing and opening a card do not.
    pub following: bool,
}

impl Scroll {
    pub fn at_end() -> Scroll {
        Scroll { top: Spot::default(), following: true }
    }

    /// Corrects the position after any change other than a move: follows the end if it should.
    pub fn settle(&mut self, pieces: &impl Pieces, view: usize) {
        let end = end_top(pieces, view);
        if self.following || self.top > end {
            self.top = end;
        }
        // The entry at the top may have become shorter.
        let height = pieces.height(self.top.piece);
        self.top.line = self.top.line.min(height.saturating_sub(1));
    }

    /// A move by lines; negative is up.
    pub fn by(&mut self, pieces: &impl Pieces, view: usize, lines: isize) {
        let from = self.top;
        if lines < 0 {
            self.top = back(pieces, from, lines.unsigned_abs());
            if self.top < from {
                self.following = false;
            }
        } else {
            let end = end_top(pieces, view);
            self.top = forward(pieces, from, lines.unsigned_abs()).min(end);
            self.following = self.top == end;
        }
    }

    pub fn go_to_start(&mut self, pieces: &impl Pieces, view: usize) {
        self.top = Spot::default();
        self.following = end_top(pieces, view) == self.top;
    }

    pub fn go_to_end(&mut self, pieces: &impl Pieces, view: usize) {
        self.following = true;
        self.settle(pieces, view);
    }

    /// A move to an entry: at least its first line becomes visible.
    pub fn show(&mut self, pieces: &impl Pieces, view: usize, piece: usize) {
        let target = Spot { piece, line: 0 };
        let end = end_top(pieces, view);
        if target < self.top {
            self.top = target;
            self.following = false;
        } else {
            let room = view.saturating_sub(pieces.height(piece).clamp(1, view.max(1)));
            let lowest = back(pieces, target, room);
            if lowest > self.top {
                self.top = lowest.min(end);
            }
            self.following = self.top >= end && piece + 1 >= pieces.count();
        }
    }

    /// A move to an entry, placed at the top.
    pub fn show_at_top(&mut self, pieces: &impl Pieces, view: usize, piece: usize) {
        let end = end_top(pieces, view);
        self.top = Spot { piece, line: 0 }.min(end);
        self.following = self.top == end && piece + 1 >= pieces.count();
    }
}

/// The position a number of lines below, at most the last line.
pub fn forward(pieces: &impl Pieces, from: Spot, mut lines: usize) -> Spot {
    let mut spot = from;
    while spot.piece < pieces.count() {
        let left = pieces.height(spot.piece).saturating_sub(spot.line);
        if lines < left {
            spot.line += lines;
            return spot;
        }
        lines -= left;
        spot = Spot { piece: spot.piece + 1, line: 0 };
    }
    last(pieces)
}

/// The position a number of lines above, at least the first line. Skips entries without lines.
pub fn back(pieces: &impl Pieces, from: Spot, mut lines: usize) -> Spot {
    let mut spot = from;
    while lines > spot.line {
        lines -= spot.line;
        let Some(piece) = spot.piece.checked_sub(1) else { return Spot::default() };
        spot = Spot { piece, line: pieces.height(piece) };
    }
    spot.line -= lines;
    spot
}

fn last(pieces: &impl Pieces) -> Spot {
    let end = Spot { piece: pieces.count(), line: 0 };
    back(pieces, end, 1)
}

/// The top position that puts the last line at the bottom of the screen.
pub fn end_top(pieces: &impl Pieces, view: usize) -> Spot {
    back(pieces, Spot { piece: pieces.count(), line: 0 }, view.max(1))
}

#[cfg(test)]
#[path = "scroll_tests.rs"]
mod tests;
