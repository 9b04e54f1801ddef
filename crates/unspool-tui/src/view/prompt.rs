//! Draws what a model call was sent, and the list of all calls of a session.

use ratatui::layout::Rect;
use unspool_view::block::Tone;
use unspool_view::lines::{self, Line, LineOptions, Style};
use unspool_view::present::format;
use unspool_view::present::prompt::{CallRow, bar};

use super::{Canvas, inset, nth};
use crate::paint;
use crate::prompt::PromptPane;
use crate::prompt_calls::PromptCallsPane;
use crate::scroll::EntryHeights;

/// The lines above the calls.
pub const CALLS_HEAD_LINES: usize = 2;
/// How many calls fit into so many lines.
pub fn call_rows(lines: usize) -> usize {
    lines.saturating_sub(CALLS_HEAD_LINES)
}

/// The columns of a bar that are left for the change at its right.
const MIN_WITH_CHANGE: usize = 90;
const CHANGE_WIDTH: usize = 44;

pub fn draw(pane: &PromptPane, area: Rect, canvas: &mut Canvas<'_>) {
    if pane.prompt.is_none() {
        canvas.text("loading …", Style::tone(Tone::Muted), inset(nth(area, 1), 3));
        return;
    }
    let top = pane.scroll.top;
    let (mut y, height) = (0, usize::from(area.height));
    for entry in top.entry..pane.count() {
        let skipped = if entry == top.entry { top.line } else { 0 };
        for line in pane.lines(entry).iter().skip(skipped) {
            if y >= height {
                return;
            }
            let row = nth(area, y);
            if entry == pane.at {
                paint::draw(&Line::of("▎", Style::default()), row, canvas.buffer, canvas.theme);
                canvas.fill(Rect { width: 1, ..row }, canvas.theme.rail());
            }
            canvas.line(line, inset(row, 2));
            y += 1;
        }
    }
}

pub fn draw_calls(pane: &PromptCallsPane, area: Rect, canvas: &mut Canvas<'_>) {
    let muted = Style::tone(Tone::Muted);
    let Some(calls) = &pane.calls else {
        canvas.text("loading …", muted, inset(nth(area, 1), 3));
        return;
    };
    let sentence = match &pane.find {
        Some(text) => format!(
            "{} of {} had “{}”",
            calls.calls.len(),
            format::count(calls.all, "call"),
            format::first_line(text, 120)
        ),
        None => "What each call was sent; a bar is as long as its prompt.".to_owned(),
    };
    canvas.text(&sentence, Style::default(), inset(nth(area, 0), 1));
    let width = usize::from(area.width).saturating_sub(1);
    canvas.text(&row_text("call", "chars", "tokens", "", width), muted, inset(nth(area, 1), 1));
    let largest = calls.calls.iter().map(|call| call.chars).max().unwrap_or(0).max(1);
    let rows = usize::from(area.height).saturating_sub(CALLS_HEAD_LINES);
    for (y, call) in calls.calls.iter().skip(pane.top).take(rows).enumerate() {
        let row = nth(area, CALLS_HEAD_LINES + y);
        draw_call(call, largest, inset(row, 1), canvas);
        if pane.top + y == pane.at {
            canvas.select(row);
        }
    }
}

fn row_text(place: &str, chars: &str, tokens: &str, change: &str, width: usize) -> String {
    let change = if width >= MIN_WITH_CHANGE { change } else { "" };
    format!("{place:<10}{chars:>8}{tokens:>8}  {change}")
}

fn draw_call(call: &CallRow, largest: u64, area: Rect, canvas: &mut Canvas<'_>) {
    let width = usize::from(area.width);
    let tokens = if call.tokens > 0 { format::compact(call.tokens) } else { String::new() };
    let text = row_text(&call.place, &format::compact(call.chars), &tokens, "", width);
    let start = lines::width(&text);
    canvas.text(&text, Style::default(), area);
    let with_change = width >= MIN_WITH_CHANGE;
    let room = width.saturating_sub(start + 1 + if with_change { CHANGE_WIDTH } else { 0 });
    let cells = u128::from(call.chars) * room as u128 / u128::from(largest);
    let cells = usize::try_from(cells).unwrap_or(room).max(1).min(room);
    let block = unspool_view::block::Block::Paragraph { spans: bar(&call.shares, cells) };
    let laid = lines::layout(&[block], room.max(1), &LineOptions::everything());
    if let Some(line) = laid.first() {
        canvas.line(line, inset(area, start as u16));
    }
    if with_change {
        let change = lines::truncate(&call.change, CHANGE_WIDTH);
        canvas.text(&change, Style::tone(Tone::Muted), inset(area, (start + room + 1) as u16));
    }
}
