//! Draws what a session changed.

use ratatui::layout::Rect;
use unspool_view::block::Tone;
use unspool_view::lines::{Line, Style};

use super::{Canvas, inset, nth};
use crate::changes::ChangesPane;
use crate::paint;

pub fn draw(pane: &ChangesPane, area: Rect, canvas: &mut Canvas<'_>) {
    if pane.changes.is_none() {
        canvas.text("loading …", Style::tone(Tone::Muted), inset(nth(area, 1), 3));
        return;
    }
    let visible = pane.lines.iter().enumerate().skip(pane.top).take(usize::from(area.height));
    for (row, (at, line)) in visible.enumerate() {
        let row = nth(area, row);
        if pane.chosen_line() == Some(at) {
            paint::draw(&Line::of("▎", Style::default()), row, canvas.buffer, canvas.theme);
            canvas.fill(Rect { width: 1, ..row }, canvas.theme.rail());
        }
        canvas.line(line, inset(row, 2));
    }
}
