//! Wraps and clips lines by display width, and makes text safe for a terminal.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{Line, Style};
use crate::block::{Span, is_deceptive};

const TAB_WIDTH: usize = 4;

/// Replaces characters that a terminal would interpret: control characters by symbols, tabs by
/// spaces, bidirectional overrides by their code point.
pub fn make_visible(text: &str) -> Cow<'_, str> {
    make_visible_from(text, || 0)
}

/// The same for text that starts at `column`, which is computed only if there is a tab.
pub fn make_visible_from(text: &str, column: impl FnOnce() -> usize) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let start = if text.contains('\t') { column() } else { 0 };
    let mut out = String::with_capacity(text.len() + 16);
    // Track the measured prefix: otherwise many tabs would make this quadratic.
    let (mut counted, mut at) = (0, start);
    for c in text.chars() {
        match c {
            '\t' => {
                at += width(&out[counted..]);
                let spaces = TAB_WIDTH - at % TAB_WIDTH;
                (0..spaces).for_each(|_| out.push(' '));
                at += spaces;
                counted = out.len();
            }
            '\u{0}'..='\u{1f}' => out.extend(char::from_u32(0x2400 + c as u32)),
            '\u{7f}' => out.push('␡'),
            '\u{80}'..='\u{9f}' => out.push(char::REPLACEMENT_CHARACTER),
            '\u{2028}' | '\u{2029}' => out.push('␤'),
            c if is_deceptive(c) => out.push_str(&format!("‹U+{:04X}›", c as u32)),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_unsafe(c: char) -> bool {
    c.is_control() || is_deceptive(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Where an overlong line may be broken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Between words if possible.
    Words,
    /// Anywhere: code keeps its columns.
    Anywhere,
}

/// Wraps a line that may be too long.
pub fn wrap(line: Line, width: usize, mode: Break) -> Vec<Line> {
    if line.width() <= width {
        return vec![line];
    }
    let cells: Vec<Cell> = cells(&line).collect();
    let mut lines = Vec::new();
    let (mut start, mut at, mut used) = (0, 0, 0);
    let mut last_break = None;
    let mut has_word = false;
    while at < cells.len() {
        let cell = &cells[at];
        if used + cell.width > width && at > start {
            let end = match mode {
                Break::Words if cell.text != " " => last_break.unwrap_or(at),
                Break::Words | Break::Anywhere => at,
            };
            lines.push(line_of_cells(&line, &cells[start..end]));
            start = end;
            if mode == Break::Words {
                while cells.get(start).is_some_and(|cell| cell.text == " ") {
                    start += 1;
                }
            }
            (at, used, last_break, has_word) = (start, 0, None, false);
            continue;
        }
        used += cell.width;
        at += 1;
        // Wide scripts (CJK) have no spaces and may break after any character.
        if (cell.text == " " && has_word) || cell.width > 1 {
            last_break = Some(at);
        }
        has_word |= cell.text != " ";
    }
    if start < cells.len() || lines.is_empty() {
        lines.push(line_of_cells(&line, &cells[start..]));
    }
    lines
}

/// Clips a line to a width and marks the cut with `…`.
pub fn clip(line: Line, width: usize) -> Line {
    if line.width() <= width {
        return line;
    }
    let mut used = 0;
    let room = width.saturating_sub(1);
    let mut style = Style::default();
    // Lazy: segment only the kept prefix, since the line may be a whole minified file.
    let kept = cells(&line).take_while(|cell| {
        used += cell.width;
        style = line.runs[cell.run].style.clone();
        used <= room
    });
    let kept: Vec<Cell> = kept.collect();
    let mut out = line_of_cells(&line, &kept);
    if width > 0 {
        out.push("…", style);
    }
    out
}

struct Cell<'a> {
    text: &'a str,
    /// Byte offset in its run.
    start: usize,
    width: usize,
    run: usize,
}

fn cells(line: &Line) -> impl Iterator<Item = Cell<'_>> {
    let runs = line.runs.iter().enumerate();
    runs.flat_map(|(run, styled)| {
        let graphemes = styled.text.grapheme_indices(true);
        graphemes.map(move |(start, text)| Cell { text, start, width: grapheme_width(text), run })
    })
}

/// Joins adjacent cells into runs and drops trailing spaces.
fn line_of_cells(line: &Line, cells: &[Cell<'_>]) -> Line {
    let blank = cells.iter().rev().take_while(|cell| cell.text == " ").count();
    let mut out = Line::default();
    for cells in cells[..cells.len() - blank].chunk_by(|one, next| one.run == next.run) {
        if let (Some(first), Some(last)) = (cells.first(), cells.last()) {
            let run = &line.runs[first.run];
            out.push(&run.text[first.start..last.start + last.text.len()], run.style.clone());
        }
    }
    out
}

/// The end of a text in at most `width` columns, prefixed with `…`. For paths.
pub fn tail(text: &str, width: usize) -> String {
    let mut used = 1;
    let mut from = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += grapheme_width(grapheme);
        if used > width {
            break;
        }
        from = at;
    }
    format!("…{}", &text[from..])
}

/// Display width in columns: the sum over graphemes, because terminals draw them one by one and
/// apply no ligatures. The width of a whole string may be smaller.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(grapheme_width).sum() }
}

fn grapheme_width(grapheme: &str) -> usize {
    if grapheme.is_ascii() { grapheme.len() } else { grapheme.width() }
}

/// Length in bytes of the prefix of `text` that extends the last grapheme of `before`.
pub fn continuation_len(before: &str, text: &str) -> usize {
    if text.as_bytes().first().is_none_or(u8::is_ascii) {
        return 0;
    }
    let last = before.graphemes(true).next_back().unwrap_or_default();
    let next = text.graphemes(true).next().unwrap_or_default();
    let is_one = !last.is_empty() && format!("{last}{next}").graphemes(true).count() == 1;
    if is_one { next.len() } else { 0 }
}

/// Truncates a text to `room` columns and marks the cut with `…`.
pub fn truncate(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let mut to = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += grapheme_width(grapheme);
        if used > room {
            break;
        }
        to = at + grapheme.len();
    }
    format!("{}…", text[..to].trim_end())
}

/// Converts spans to lines, split at newlines.
pub fn span_lines(spans: &[Span], base: &Style) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    for span in spans {
        let style = base.with(&span.style);
        for (at, piece) in span.text.split('\n').enumerate() {
            if at > 0 {
                lines.push(Line::default());
            }
            if let Some(line) = lines.last_mut() {
                line.push(piece.strip_suffix('\r').unwrap_or(piece), style.clone());
            }
        }
    }
    lines
}

/// Converts spans to one line, for heads and summaries.
pub fn span_line(spans: &[Span], base: &Style) -> Line {
    let mut line = Line::default();
    for span in spans {
        line.push(&span.text, base.with(&span.style));
    }
    line
}
