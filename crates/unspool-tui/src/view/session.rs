//! Draws the visible entries of a session.

use ratatui::layout::Rect;
use unspool_view::block::Tone;
use unspool_view::lines::{Line, Style};

use super::{Canvas, inset, nth};
use crate::entry::EntryKey;
use crate::paint;
use crate::scroll::EntryHeights;
use crate::state::State;
use crate::transcript::TranscriptPane;

pub fn draw(state: &State, transcript: &TranscriptPane, area: Rect, canvas: &mut Canvas<'_>) {
    if !transcript.is_loaded() && transcript.tail.is_none() {
        canvas.text("loading …", Style::tone(Tone::Muted), inset(nth(area, 1), 3));
        return;
    }
    let chosen = transcript.chosen().filter(|_| transcript.cursor.is_some());
    entries(state, transcript, chosen, area, canvas);
    if transcript.unseen > 0 && area.height > 2 {
        let noun = if transcript.unseen == 1 { "part" } else { "parts" };
        let text = format!(" ↓ {} new {noun} · G ", transcript.unseen);
        let width = unspool_view::lines::width(&text).min(usize::from(area.width)) as u16;
        let line = nth(area, usize::from(area.height) - 1);
        let place = Rect { x: area.x + (area.width - width) / 2, width, ..line };
        canvas.clear(place);
        canvas.text(&text, Style { inverse: true, ..Style::tone(Tone::Accent) }, place);
    }
}

/// Draws the visible entries of a transcript. The area is as high as its viewport.
pub fn entries(
    state: &State,
    transcript: &TranscriptPane,
    chosen: Option<usize>,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let words = transcript.find.as_ref().map(|find| find.texts.clone()).unwrap_or_default();
    let top = transcript.scroll.top;
    let mut y = 0;
    let height = usize::from(area.height);
    for at in top.entry..transcript.count() {
        let Some(entry) = transcript.entries.get(at) else {
            let tail = transcript.tail.iter().flat_map(|tail| tail.lines.iter());
            let skipped = if at == top.entry { top.line } else { 0 };
            for line in tail.skip(skipped).take(height.saturating_sub(y)) {
                canvas.line(line, inset(nth(area, y), 2));
                y += 1;
            }
            break;
        };
        let lines = transcript.lines(entry);
        let skipped = if at == top.entry { top.line } else { 0 };
        for (nth_line, line) in lines.iter().enumerate().skip(skipped) {
            if y >= height {
                return;
            }
            let row = nth(area, y);
            let text = inset(row, 2);
            if chosen == Some(at) && !line.is_blank() {
                paint::draw(&Line::of("▎", Style::default()), row, canvas.buffer, canvas.theme);
                canvas.fill(Rect { width: 1, ..row }, canvas.theme.rail());
            }
            // A rule above the first new entry; a dot if it has no blank line above it.
            let marked = transcript.mark == Some(entry.key) && nth_line == 0;
            if marked && line.is_blank() {
                let rule =
                    format!("{} new ", "─".repeat(usize::from(text.width).saturating_sub(8)));
                canvas.text(&rule, Style::tone(Tone::Accent), text);
            } else if marked {
                canvas.text("•", Style::tone(Tone::Accent), Rect { x: row.x + 1, width: 1, ..row });
            }
            // Only running parts are animated (C-18).
            if entry.is_open() && state.animation_frame() % 2 == 1 && has_running_glyph(line) {
                canvas.line(&blinked(line), text);
            } else {
                canvas.line(line, text);
            }
            canvas.links.extend(paint::links([(line, text)]));
            mark_words(&words, text, canvas, is_current(transcript, at));
            y += 1;
        }
    }
}

fn is_current(transcript: &TranscriptPane, at: usize) -> bool {
    let key = transcript.entries.get(at).map(|entry| entry.key);
    matches!(key, Some(EntryKey::Item(_) | EntryKey::User(_))) && key == transcript.cursor
}

const RUNNING: &str = "◐";

fn has_running_glyph(line: &Line) -> bool {
    line.runs.first().is_some_and(|run| run.text.starts_with(RUNNING))
}

fn blinked(line: &Line) -> Line {
    let mut line = line.clone();
    if let Some(run) = line.runs.first_mut() {
        run.text = run.text.replacen(RUNNING, "◑", 1);
    }
    line
}

/// Highlights the words of the find in a drawn row.
fn mark_words(words: &[String], row: Rect, canvas: &mut Canvas<'_>, current: bool) {
    if words.is_empty() {
        return;
    }
    // Map back to cells: lower-casing may turn one character into several.
    let mut text = String::new();
    let mut columns = Vec::new();
    for x in row.left()..row.right() {
        let Some(cell) = canvas.buffer.cell((x, row.y)) else { continue };
        for letter in cell.symbol().chars().flat_map(char::to_lowercase) {
            columns.extend(std::iter::repeat_n(x, letter.len_utf8()));
            text.push(letter);
        }
    }
    let style = if current { canvas.theme.current_hit() } else { canvas.theme.hit() };
    for word in words {
        for (start, found) in text.match_indices(word.as_str()) {
            let cells = columns.get(start..start + found.len()).unwrap_or_default();
            if let (Some(first), Some(last)) = (cells.first(), cells.last()) {
                let width = last - first + 1;
                canvas.buffer.set_style(Rect { x: *first, y: row.y, width, height: 1 }, style);
            }
        }
    }
}
