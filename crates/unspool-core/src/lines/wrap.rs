//! Wrapping and clipping by what characters take on a grid, and making text safe for one.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{Line, Style};
use crate::block::{Span, is_bidi};

const TAB: usize = 4;

/// Text that a terminal cannot obey: control characters as symbols, tabs as spaces, marks of
/// direction by their number.
pub fn visible(text: &str) -> Cow<'_, str> {
    visible_from(text, || 0)
}

/// The same for text that starts at a column, which is asked for only when a tab needs it.
pub fn visible_from(text: &str, column: impl FnOnce() -> usize) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let start = if text.contains('\t') { column() } else { 0 };
    let mut out = String::with_capacity(text.len() + 16);
    // Where the width was last counted, so that many tabs do not count the text many times.
    let (mut counted, mut at) = (0, start);
    for c in text.chars() {
        match c {
            '\t' => {
                at += width(&out[counted..]);
                let spaces = TAB - at % TAB;
                (0..spaces).for_each(|_| out.push(' '));
                at += spaces;
                counted = out.len();
            }
            '\u{0}'..='\u{1f}' => out.extend(char::from_u32(0x2400 + c as u32)),
            '\u{7f}' => out.push('␡'),
            '\u{80}'..='\u{9f}' => out.push(char::REPLACEMENT_CHARACTER),
            '\u{2028}' | '\u{2029}' => out.push('␤'),
            c if is_bidi(c) => out.push_str(&format!("‹U+{:04X}›", c as u32)),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_unsafe(c: char) -> bool {
    c.is_control() || is_bidi(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Where a line that is too long may be broken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Between words, where there are any.
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
            lines.push(gather(&line, &cells[start..end]));
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
        // Scripts that are written wide have no spaces and break after any sign.
        if (cell.text == " " && has_word) || cell.width > 1 {
            last_break = Some(at);
        }
        has_word |= cell.text != " ";
    }
    if start < cells.len() || lines.is_empty() {
        lines.push(gather(&line, &cells[start..]));
    }
    lines
}

/// Cuts a line to a width, with `…` where something was cut.
pub fn clip(line: Line, width: usize) -> Line {
    if line.width() <= width {
        return line;
    }
    let mut used = 0;
    let room = width.saturating_sub(1);
    let mut style = Style::default();
    // Only what is kept is ever cut into signs: the line may be a whole minified file.
    let kept = cells(&line).take_while(|cell| {
        used += cell.width;
        style = line.runs[cell.run].style.clone();
        used <= room
    });
    let kept: Vec<Cell> = kept.collect();
    let mut out = gather(&line, &kept);
    if width > 0 {
        out.push("…", style);
    }
    out
}

struct Cell<'a> {
    text: &'a str,
    /// Where it starts in its run.
    start: usize,
    width: usize,
    run: usize,
}

fn cells(line: &Line) -> impl Iterator<Item = Cell<'_>> {
    let runs = line.runs.iter().enumerate();
    runs.flat_map(|(run, styled)| {
        let signs = styled.text.grapheme_indices(true);
        signs.map(move |(start, text)| Cell { text, start, width: sign_width(text), run })
    })
}

/// Cells that stand beside one another back into runs, without the spaces at their end.
fn gather(line: &Line, cells: &[Cell<'_>]) -> Line {
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

/// The end of a text, `…` before it, in at most `width` columns: of a path the end says most.
pub fn tail(text: &str, width: usize) -> String {
    let mut used = 1;
    let mut from = text.len();
    for (at, sign) in text.grapheme_indices(true).rev() {
        used += sign_width(sign);
        if used > width {
            break;
        }
        from = at;
    }
    format!("…{}", &text[from..])
}

/// What a text takes on a grid: the sum of what its signs take, since a terminal draws them one by
/// one. Whole words may take less where a font joins letters; no terminal does.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(sign_width).sum() }
}

fn sign_width(sign: &str) -> usize {
    if sign.is_ascii() { sign.len() } else { sign.width() }
}

/// How much of the start of `text` belongs to the last sign of what stands before it.
pub fn going_on(before: &str, text: &str) -> usize {
    if text.as_bytes().first().is_none_or(u8::is_ascii) {
        return 0;
    }
    let last = before.graphemes(true).next_back().unwrap_or_default();
    let next = text.graphemes(true).next().unwrap_or_default();
    let is_one = !last.is_empty() && format!("{last}{next}").graphemes(true).count() == 1;
    if is_one { next.len() } else { 0 }
}

/// The start of a text that fits, with a sign where it was cut.
pub fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let mut to = 0;
    for (at, sign) in text.grapheme_indices(true) {
        used += sign_width(sign);
        if used > room {
            break;
        }
        to = at + sign.len();
    }
    format!("{}…", text[..to].trim_end())
}

/// Spans as lines, broken where they hold a line break.
pub fn span_lines(spans: &[Span], base: &Style) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    for span in spans {
        let style = base.with(&span.look);
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

/// Spans on one line: for heads and summaries.
pub fn span_line(spans: &[Span], base: &Style) -> Line {
    let mut line = Line::default();
    for span in spans {
        line.push(&span.text, base.with(&span.look));
    }
    line
}
