//! Editable text with a cursor: the input line, the composer of a chat, the text of an answer.

// Most keys mean nothing here.
#![allow(clippy::wildcard_enum_match_arm)]

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use unspool_view::lines::{self, Line, Style};

/// The most that a field takes. A prompt of this size is a file; name it instead.
const MAX_BYTES: usize = 1024 * 1024;
/// The columns of a tab, as in `lines`.
const TAB_WIDTH: usize = 4;

#[derive(Clone, Debug, Default)]
pub struct TextField {
    text: String,
    /// The cursor: a byte offset on a grapheme boundary.
    at: usize,
}

impl TextField {
    pub fn new(text: &str) -> TextField {
        let mut field = TextField::default();
        field.insert(text);
        field
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn clear(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.text)
    }

    /// The text before the cursor.
    pub fn before_cursor(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    /// The text behind the cursor.
    pub fn after_cursor(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Inserts what was typed or pasted. Control characters other than line breaks and tabs are
    /// dropped: they would be sent to the agent unseen.
    pub fn insert(&mut self, text: &str) {
        let mut clean = text.replace("\r\n", "\n").replace('\r', "\n");
        clean.retain(|c| !c.is_control() || matches!(c, '\n' | '\t'));
        let mut room = MAX_BYTES.saturating_sub(self.text.len()).min(clean.len());
        while !clean.is_char_boundary(room) {
            room -= 1;
        }
        let kept = clean.get(..room).unwrap_or_default();
        self.text.insert_str(self.at, kept);
        self.at += kept.len();
    }

    /// Replaces the text before the cursor from this offset on.
    pub fn replace_before_cursor(&mut self, from: usize, with: &str) {
        self.remove(from..self.at);
        self.insert(with);
    }

    /// Handles an editing key. False if it is none.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Backspace if alt || control => self.remove(self.word_start()..self.at),
            KeyCode::Char('w') if control => self.remove(self.word_start()..self.at),
            KeyCode::Backspace => self.remove(self.previous()..self.at),
            KeyCode::Char('h') if control => self.remove(self.previous()..self.at),
            KeyCode::Delete => self.remove(self.at..self.next()),
            KeyCode::Char('d') if control => self.remove(self.at..self.next()),
            KeyCode::Char('u') if control => self.remove(self.line().start..self.at),
            KeyCode::Char('k') if control => {
                let end = self.line().end;
                // At the end of a line it joins the next one.
                let end = if end == self.at { self.next() } else { end };
                self.remove(self.at..end);
            }
            KeyCode::Left if alt || control => self.at = self.word_start(),
            KeyCode::Char('b') if alt => self.at = self.word_start(),
            KeyCode::Right if alt || control => self.at = self.word_end(),
            KeyCode::Char('f') if alt => self.at = self.word_end(),
            KeyCode::Left => self.at = self.previous(),
            KeyCode::Right => self.at = self.next(),
            KeyCode::Home => self.at = self.line().start,
            KeyCode::Char('a') if control => self.at = self.line().start,
            KeyCode::End => self.at = self.line().end,
            KeyCode::Char('e') if control => self.at = self.line().end,
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Char(letter) if !control && !alt => {
                self.insert(letter.encode_utf8(&mut [0; 4]));
            }
            _ => return false,
        }
        true
    }

    /// Moves the cursor by a row. False at the edge.
    pub fn move_row(&mut self, down: bool, width: usize) -> bool {
        let rows = self.rows(width);
        let (row, column) = self.cursor(&rows);
        let target = if down { row.checked_add(1) } else { row.checked_sub(1) };
        let Some(range) = target.and_then(|target| rows.get(target)) else { return false };
        let mut used = 0;
        let text = self.text.get(range.clone()).unwrap_or_default();
        let before = text.graphemes(true).take_while(|grapheme| {
            used += width_of(grapheme);
            used <= column
        });
        self.at = range.start + before.map(str::len).sum::<usize>();
        true
    }

    fn remove(&mut self, range: Range<usize>) {
        self.at = range.start;
        self.text.drain(range);
    }

    fn previous(&self) -> usize {
        self.before_cursor().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        self.at + self.after_cursor().graphemes(true).next().map_or(0, str::len)
    }

    fn word_start(&self) -> usize {
        let before = self.before_cursor().trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        })
    }

    fn word_end(&self) -> usize {
        let after = self.after_cursor();
        let blank = after.len() - after.trim_start().len();
        let word = after.trim_start().find(char::is_whitespace);
        self.at + word.map_or(after.len(), |word| blank + word)
    }

    /// The line of the cursor, without its line break.
    fn line(&self) -> Range<usize> {
        let start = self.before_cursor().rfind('\n').map_or(0, |at| at + 1);
        let end = self.after_cursor().find('\n').map_or(self.text.len(), |at| self.at + at);
        start..end
    }

    /// The rows of the text at a width, as byte ranges. A row leaves room for the cursor.
    fn rows(&self, width: usize) -> Vec<Range<usize>> {
        let room = width.saturating_sub(1).max(1);
        let mut rows = Vec::new();
        let mut start = 0;
        for line in self.text.split('\n') {
            let end = start + line.len();
            let mut from = start;
            if line.is_ascii() && !line.contains('\t') {
                while end - from > room {
                    rows.push(from..from + room);
                    from += room;
                }
            } else {
                let mut used = 0;
                for (at, grapheme) in line.grapheme_indices(true) {
                    used += width_of(grapheme);
                    if used > room && start + at > from {
                        rows.push(from..start + at);
                        (from, used) = (start + at, width_of(grapheme));
                    }
                }
            }
            rows.push(from..end);
            start = end + 1;
        }
        rows
    }

    /// The row and column of the cursor.
    fn cursor(&self, rows: &[Range<usize>]) -> (usize, usize) {
        // A cursor between two rows of one line is at the start of the second.
        let row = rows.partition_point(|row| row.start <= self.at).saturating_sub(1);
        let start = rows.get(row).map_or(0, |row| row.start);
        let before = self.text.get(start..self.at).unwrap_or_default();
        (row, before.graphemes(true).map(width_of).sum())
    }

    /// Its lines: at most `height` of them, around the cursor, which is drawn inverse if the field
    /// has the focus.
    pub fn lines(&self, width: usize, height: usize, focused: bool) -> Vec<Line> {
        let rows = self.rows(width);
        let (cursor, _) = self.cursor(&rows);
        let height = height.max(1);
        let first = (cursor + 1).saturating_sub(height).min(rows.len().saturating_sub(height));
        let shown = rows.iter().enumerate().skip(first).take(height);
        let draw = |(nth, row): (usize, &Range<usize>)| {
            let text = |range: Range<usize>| self.text.get(range).unwrap_or_default();
            if !focused || nth != cursor {
                return Line::of(text(row.clone()), Style::default());
            }
            let mut line = Line::of(text(row.start..self.at), Style::default());
            let next = self.next().clamp(self.at, row.end.max(self.at));
            let under = text(self.at..next);
            let under = if under.is_empty() || under == "\t" { " " } else { under };
            line.push(under, Style { inverse: true, ..Style::default() });
            line.push(text(next..row.end.max(next)), Style::default());
            line
        };
        shown.map(draw).collect()
    }
}

fn width_of(grapheme: &str) -> usize {
    if grapheme == "\t" { TAB_WIDTH } else { lines::width(grapheme) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(field: &mut TextField, code: KeyCode, modifiers: KeyModifiers) {
        assert!(field.press(KeyEvent::new(code, modifiers)));
    }

    #[test]
    fn graphemes_are_edited_whole() {
        let mut field = TextField::new("a👩‍👩‍👧é");
        press(&mut field, KeyCode::Left, KeyModifiers::NONE);
        press(&mut field, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(field.text(), "aé");
        press(&mut field, KeyCode::Home, KeyModifiers::NONE);
        press(&mut field, KeyCode::Delete, KeyModifiers::NONE);
        assert_eq!(field.text(), "é");
    }

    #[test]
    fn words_and_lines_are_removed() {
        let mut field = TextField::new("one two  three\nfour");
        press(&mut field, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(field.text(), "one two  three\n");
        press(&mut field, KeyCode::Backspace, KeyModifiers::NONE);
        press(&mut field, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(field.text(), "one two  ");
        press(&mut field, KeyCode::Char('b'), KeyModifiers::ALT);
        press(&mut field, KeyCode::Char('k'), KeyModifiers::CONTROL);
        assert_eq!(field.text(), "one ");
        press(&mut field, KeyCode::Home, KeyModifiers::NONE);
        press(&mut field, KeyCode::Char('f'), KeyModifiers::ALT);
        assert_eq!(field.before_cursor(), "one");
    }

    #[test]
    fn a_paste_has_no_control_characters_and_is_bounded() {
        let field = TextField::new("a\x1b[31mb\r\nc\td");
        assert_eq!(field.text(), "a[31mb\nc\td");
        let mut field = TextField::new(&"é".repeat(MAX_BYTES));
        assert_eq!(field.text().len(), MAX_BYTES);
        field.insert("x");
        assert_eq!(field.text().len(), MAX_BYTES);
    }

    #[test]
    fn rows_wrap_and_the_cursor_moves_between_them() {
        let mut field = TextField::new("abcdefgh\n日本語x");
        let text = |field: &TextField| {
            let rows = field.rows(5);
            rows.into_iter().map(|row| field.text[row].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(text(&field), ["abcd", "efgh", "日本", "語x"]);
        assert!(!field.move_row(true, 5));
        assert!(field.move_row(false, 5));
        assert_eq!(field.before_cursor(), "abcdefgh\n日");
        assert!(field.move_row(false, 5));
        assert_eq!(field.before_cursor(), "abcdef");
        assert!(field.move_row(false, 5));
        assert!(!field.move_row(false, 5));
        assert_eq!(field.before_cursor(), "ab");
        let shown: Vec<String> = field.lines(5, 2, true).iter().map(Line::text).collect();
        assert_eq!(shown, ["abcd", "efgh"]);
        assert!(TextField::default().lines(5, 3, true)[0].runs[0].style.inverse);
    }
}
