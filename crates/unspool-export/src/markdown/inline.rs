//! Paints spans as inline Markdown. Escapes characters that would be Markdown syntax at their
//! position, keeps line breaks, and prevents GitHub from creating mentions and issue links.

use unspool_view::block::{Span, Tone};

use crate::html::text::safe;

/// Separates `@` or `#` from the following word, so that GitHub creates no mention or issue link.
const REFERENCE_BREAK: &str = "<!-- -->";
/// For leading spaces, which Markdown would drop or treat as a code block.
const NO_BREAK_SPACE: char = '\u{a0}';

/// A paragraph.
pub fn spans(all: &[Span]) -> String {
    Writer::default().all(all)
}

/// One line, e.g. a heading.
pub fn line(all: &[Span]) -> String {
    Writer { one_line: true, ..Writer::default() }.all(all)
}

/// A head line: double spaces between its spans become ` · `, since Markdown collapses them.
pub fn head(all: &[Span]) -> String {
    Writer { one_line: true, is_head: true, ..Writer::default() }.all(all)
}

/// A table cell.
pub fn cell(all: &[Span]) -> String {
    Writer { one_line: true, in_table: true, ..Writer::default() }.all(all)
}

pub fn escape(text: &str) -> String {
    spans(&[Span::plain(text)])
}

/// Text inside an HTML tag, where Markdown is not parsed.
pub fn escape_html(text: &str) -> String {
    let text = safe(text).replace('\n', " ");
    let mut out = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
        if is_reference(&text, at, c) {
            out.push_str(REFERENCE_BREAK);
        }
    }
    out
}

/// True if GitHub would turn this character and the following text into a mention or issue link.
fn is_reference(text: &str, at: usize, sign: char) -> bool {
    if !matches!(sign, '@' | '#' | '-') {
        return false;
    }
    let (before, after) = (&text[..at], &text[at + sign.len_utf8()..]);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if sign == '@' {
        let starts = after.starts_with(|c: char| c.is_ascii_alphanumeric());
        return starts && !before.ends_with(is_word);
    }
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = rest.len() < after.len() && !rest.starts_with(is_word);
    let in_name = |c: char| is_word(c) || matches!(c, '-' | '.' | '/');
    let word = || before.rsplit(|c: char| !in_name(c)).next().unwrap_or_default();
    is_number
        && match sign {
            '-' => word().eq_ignore_ascii_case("gh"),
            // `#12`, and `owner/repository#12`.
            _ => word().is_empty() || word().contains('/'),
        }
}

/// Inline code, with a delimiter longer than any run of backticks inside.
fn code_span(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

pub fn longest_run(text: &str, mark: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == mark { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

struct Writer {
    out: String,
    one_line: bool,
    in_table: bool,
    is_head: bool,
    /// Only spaces and digits so far on this line: a block marker may start here.
    at_line_start: bool,
    /// Newlines to write before the next word.
    pending_breaks: usize,
    /// Inside emphasis or a link, which must not contain a paragraph break.
    marked: bool,
    /// The previous span ended with a separator.
    after_separator: bool,
    tone: Option<Tone>,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer {
            out: String::new(),
            one_line: false,
            in_table: false,
            is_head: false,
            at_line_start: true,
            pending_breaks: 0,
            marked: false,
            after_separator: false,
            tone: None,
        }
    }
}

impl Writer {
    fn all(mut self, all: &[Span]) -> String {
        all.iter().for_each(|span| self.span(span));
        self.out.truncate(self.out.trim_end_matches([' ', '\t']).len());
        self.out
    }

    fn span(&mut self, span: &Span) {
        let mut text = span.text.as_str();
        // Spans with separators are dim or in a head line.
        if self.is_head || span.style.dim {
            let after_separator =
                text.starts_with("  ") || std::mem::take(&mut self.after_separator);
            self.after_separator = self.is_head && text.trim_start().ends_with("  ");
            if after_separator && !self.out.is_empty() && self.pending_breaks == 0 {
                text = text.trim_start_matches(' ');
                // Keep `+3 −1` together.
                let is_pair =
                    self.tone == Some(Tone::Added) && span.style.tone == Some(Tone::Removed);
                self.out.push_str(if is_pair { " " } else { " · " });
                self.at_line_start = false;
            }
            if self.after_separator {
                text = text.trim_end_matches(' ');
            }
        }
        self.tone = span.style.tone;
        let inside = text.trim();
        if inside.is_empty() {
            return self.text(text);
        }
        let from = text.len() - text.trim_start().len();
        self.text(&text[..from]);
        self.marked(span, inside);
        self.text(&text[from + inside.len()..]);
    }

    fn marked(&mut self, span: &Span, inside: &str) {
        let style = &span.style;
        let is_code = style.code || style.path;
        let marks = [(style.strike, "~~"), (style.emphasis, "*"), (style.strong, "**")];
        let marks: Vec<&str> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        if !is_code && marks.is_empty() && style.link.is_none() {
            return self.text(inside);
        }
        self.flush_breaks(0);
        if style.link.is_some() {
            self.out.push('[');
        }
        marks.iter().for_each(|mark| self.out.push_str(mark));
        self.at_line_start = false;
        self.marked = true;
        if is_code {
            self.code(inside);
        } else {
            self.text(inside);
        }
        self.marked = false;
        marks.iter().rev().for_each(|mark| self.out.push_str(mark));
        if let Some(link) = &style.link {
            let link = link.replace(['<', '>'], "").replace('\\', "%5C").replace('|', "%7C");
            self.out.push_str(&format!("](<{link}>)"));
        }
    }

    fn code(&mut self, text: &str) {
        let text = safe(text).replace('\n', " ");
        let text = if self.in_table { text.replace('|', "\\|") } else { text };
        // Adjacent code spans would merge.
        if self.out.ends_with('`') {
            self.out.push(' ');
        }
        self.out.push_str(&code_span(&text));
    }

    /// Writes pending newlines, then the leading spaces of the new line.
    fn flush_breaks(&mut self, blanks: usize) {
        let pending_breaks = std::mem::take(&mut self.pending_breaks);
        let is_new = self.out.is_empty() || pending_breaks > 0;
        if pending_breaks > 0 && !self.out.is_empty() {
            self.out.truncate(self.out.trim_end_matches([' ', '\t']).len());
            self.out.push_str(match pending_breaks {
                _ if self.one_line => " ",
                1 => "\\\n",
                _ if self.marked => "\\\n",
                _ => "\n\n",
            });
            self.at_line_start = !self.one_line;
        }
        if is_new && !self.one_line {
            (0..blanks).for_each(|_| self.out.push(NO_BREAK_SPACE));
        } else if !is_new {
            (0..blanks).for_each(|_| self.out.push(' '));
        }
    }

    fn text(&mut self, text: &str) {
        let text = safe(text);
        for (nth, line) in text.split('\n').enumerate() {
            self.pending_breaks += usize::from(nth > 0);
            let said = line.trim_start_matches([' ', '\t']);
            let blanks = line[..line.len() - said.len()].chars();
            let blanks = blanks.map(|c| if c == '\t' { 4 } else { 1 }).sum();
            if said.is_empty() {
                // Drop trailing spaces of a line; keep spaces between words.
                if self.pending_breaks == 0 && !self.out.is_empty() {
                    (0..blanks).for_each(|_| self.out.push(' '));
                }
                continue;
            }
            self.flush_breaks(blanks);
            self.words(said);
        }
    }

    fn words(&mut self, line: &str) {
        for (at, c) in line.char_indices() {
            let after = &line[at + c.len_utf8()..];
            let digits =
                self.at_line_start && self.out.ends_with(|before: char| before.is_ascii_digit());
            match c {
                // Inside a word it has no meaning.
                '_' if self.out.ends_with(char::is_alphanumeric)
                    && after.starts_with(char::is_alphanumeric) => {}
                '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' => self.out.push('\\'),
                '#' | '+' | '-' | '=' if self.at_line_start && !digits => self.out.push('\\'),
                // A list number at the start of a line, if followed by a space.
                '.' | ')' if digits && !after.starts_with(|next: char| !next.is_whitespace()) => {
                    self.out.push('\\');
                }
                '&' => self.out.push_str("&amp;"),
                _ => {}
            }
            self.at_line_start &= c.is_whitespace() || c.is_ascii_digit();
            if c != '&' {
                self.out.push(c);
            }
            if is_reference(line, at, c) {
                self.out.push_str(REFERENCE_BREAK);
            }
        }
    }
}
