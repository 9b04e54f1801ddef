//! Sticky scrolling: follows the end while the user is there, and otherwise keeps its position
//! (R-003-42, R-X-12). Only visible entries are measured, so a position is an entry and a line in
//! it; changes elsewhere do not move the view.

/// A column of entries with their heights in lines.
pub trait EntryHeights {
    fn count(&self) -> usize;
    fn height(&self, entry: usize) -> usize;
}

/// A line of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ScrollPosition {
    pub entry: usize,
    pub line: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scroll {
    /// The line at the top of the screen.
    pub top: ScrollPosition,
    /// True if new content scrolls into view. Only the user's own moves change it; growing,
    /// shrinking, resizing and opening a card do not.
    pub following: bool,
}

impl Scroll {
    pub fn at_end() -> Scroll {
        Scroll { top: ScrollPosition::default(), following: true }
    }

    /// Corrects the position after any change other than a move: follows the end if it should.
    pub fn settle(&mut self, entries: &impl EntryHeights, view: usize) {
        let end = end_top(entries, view);
        if self.following || self.top > end {
            self.top = end;
        }
        // The entry at the top may have become shorter.
        let height = entries.height(self.top.entry);
        self.top.line = self.top.line.min(height.saturating_sub(1));
    }

    /// A move by lines; negative is up.
    pub fn move_by(&mut self, entries: &impl EntryHeights, view: usize, lines: isize) {
        let from = self.top;
        if lines < 0 {
            self.top = back(entries, from, lines.unsigned_abs());
            if self.top < from {
                self.following = false;
            }
        } else {
            let end = end_top(entries, view);
            self.top = forward(entries, from, lines.unsigned_abs()).min(end);
            self.following = self.top == end;
        }
    }

    pub fn go_to_start(&mut self, entries: &impl EntryHeights, view: usize) {
        self.top = ScrollPosition::default();
        self.following = end_top(entries, view) == self.top;
    }

    pub fn go_to_end(&mut self, entries: &impl EntryHeights, view: usize) {
        self.following = true;
        self.settle(entries, view);
    }

    /// A move to an entry: at least its first line becomes visible.
    pub fn show(&mut self, entries: &impl EntryHeights, view: usize, entry: usize) {
        let target = ScrollPosition { entry, line: 0 };
        let end = end_top(entries, view);
        if target < self.top {
            self.top = target;
            self.following = false;
        } else {
            let room = view.saturating_sub(entries.height(entry).clamp(1, view.max(1)));
            let lowest = back(entries, target, room);
            if lowest > self.top {
                self.top = lowest.min(end);
            }
            self.following = self.top >= end && entry + 1 >= entries.count();
        }
    }

    /// A move to an entry, placed at the top.
    pub fn show_at_top(&mut self, entries: &impl EntryHeights, view: usize, entry: usize) {
        let end = end_top(entries, view);
        self.top = ScrollPosition { entry, line: 0 }.min(end);
        self.following = self.top == end && entry + 1 >= entries.count();
    }
}

/// The position a number of lines below, at most the last line.
pub fn forward(
    entries: &impl EntryHeights,
    from: ScrollPosition,
    mut lines: usize,
) -> ScrollPosition {
    let mut position = from;
    while position.entry < entries.count() {
        let left = entries.height(position.entry).saturating_sub(position.line);
        if lines < left {
            position.line += lines;
            return position;
        }
        lines -= left;
        position = ScrollPosition { entry: position.entry + 1, line: 0 };
    }
    last(entries)
}

/// The position a number of lines above, at least the first line. Skips entries without lines.
pub fn back(entries: &impl EntryHeights, from: ScrollPosition, mut lines: usize) -> ScrollPosition {
    let mut position = from;
    while lines > position.line {
        lines -= position.line;
        let Some(entry) = position.entry.checked_sub(1) else { return ScrollPosition::default() };
        position = ScrollPosition { entry, line: entries.height(entry) };
    }
    position.line -= lines;
    position
}

fn last(entries: &impl EntryHeights) -> ScrollPosition {
    let end = ScrollPosition { entry: entries.count(), line: 0 };
    back(entries, end, 1)
}

/// The top position that puts the last line at the bottom of the screen.
pub fn end_top(entries: &impl EntryHeights, view: usize) -> ScrollPosition {
    back(entries, ScrollPosition { entry: entries.count(), line: 0 }, view.max(1))
}

#[cfg(test)]
#[path = "scroll_tests.rs"]
mod tests;
