//! Draws laid-out lines into terminal cells. Lines are free of control characters already; they are
//! escaped once more here, at the boundary to the terminal.

use std::num::NonZeroU16;

use ratatui::buffer::{Buffer, CellDiffOption, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unspool_view::lines::{self, Line, make_visible};

use crate::theme::Theme;

pub use self::links::{Link, Links, links};

mod links;

/// Characters per grapheme: more combining marks than this are an attack.
const MAX_GRAPHEME_CHARS: usize = 32;

/// Draws a line into the first row of an area, patching the cells' styles, and returns the columns
/// used. Graphemes that do not fit are left out, never split.
pub fn draw(line: &Line, area: Rect, buffer: &mut Buffer, theme: &Theme) -> u16 {
    let area = area.intersection(buffer.area);
    if area.is_empty() {
        return 0;
    }
    let mut style = Style::default();
    let mut last = None;
    for_each_grapheme(line, area, |at, grapheme, x, width| {
        if last != Some(at) {
            style = line.runs.get(at).map(|run| theme.style(&run.style)).unwrap_or_default();
            last = Some(at);
        }
        if let Some(cell) = buffer.cell_mut((x, area.y)) {
            cell.set_symbol(grapheme).set_style(style);
            // ratatui 0.30.2 counts the sound marks of narrow kana twice, and would not draw the
            // character after them.
            if grapheme.len() > 1 && grapheme.cell_width() != width {
                let width = NonZeroU16::new(width).map(CellDiffOption::ForcedWidth);
                cell.set_diff_option(width.unwrap_or_default());
            }
        }
        // Clear the second cell of a wide grapheme.
        for x in x.saturating_add(1)..x.saturating_add(width) {
            if let Some(cell) = buffer.cell_mut((x, area.y)) {
                cell.set_symbol(" ").set_style(style);
            }
        }
    })
}

/// Calls `each` for every grapheme of a line that fits into an area, with the index of its run, the
/// grapheme, its column and its width. Returns the columns used.
fn for_each_grapheme(line: &Line, area: Rect, mut each: impl FnMut(usize, &str, u16, u16)) -> u16 {
    let mut x = area.x;
    for (at, run) in line.runs.iter().enumerate() {
        let text = make_visible(&run.text);
        for grapheme in text.graphemes(true) {
            let width = u16::try_from(lines::width(grapheme)).unwrap_or(u16::MAX);
            if width > area.right().saturating_sub(x) {
                return x - area.x;
            }
            // A grapheme without a width would hide in its neighbour's cell.
            if width > 0 {
                each(at, shortened(grapheme), x, width);
                x += width;
            }
        }
    }
    x - area.x
}

fn shortened(grapheme: &str) -> &str {
    if grapheme.len() <= MAX_GRAPHEME_CHARS {
        return grapheme;
    }
    let end = grapheme.char_indices().nth(MAX_GRAPHEME_CHARS).map_or(grapheme.len(), |(at, _)| at);
    grapheme.get(..end).unwrap_or(grapheme)
}

#[cfg(test)]
#[path = "paint_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "paint/hostile_tests.rs"]
mod hostile_tests;
