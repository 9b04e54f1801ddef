//! Paints spans as inline Markdown. Escapes characters that would be Markdown syntax at their
//! position, keeps line breaks, and prevents GitHub from creating mentions and issue links.

use unspool_core::block::{Span, Tone};

use crate::text::safe;

/// Separates `@` or `#` from the following word, so that GitHub creates no mention or issue link.
const APART: &str = "<!-- -->";
/// For leading spaces, which Markdown would drop or treat as a code block.
const BLANK: char = '\u{a0}';

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

pub fn escaped(text: &str) -> String {
    spans(&[Span::plain(text)])
}

/// Text inside an HTML tag, where Markdown is not parsed.
pub fn in_html(text: &str) -> String {
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
            out.push_str(APART);
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
fn ticked(text: &str) -> String {
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
    starts: bool,
    /// Newlines to write before the next word.
    breaks: usize,
    /// Inside emphasis or a link, which must not contain a paragraph break.
    marked: bool,
    /// The previous span ended with a separator.
    parted: bool,
    tone: Option<Tone>,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer {
            out: String::new(),
            one_line: false,
            in_table: false,
            is_head: false,
            starts: true,
            breaks: 0,
            marked: false,
            parted: false,
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
        if self.is_head || span.look.dim {
            let parted = text.starts_with("  ") || std::mem::take(&mut self.parted);
            self.parted = self.is_head && text.trim_start().ends_with("  ");
            if parted && !self.out.is_empty() && self.breaks == 0 {
                text = text.trim_start_matches(' ');
                // Keep `+3 −1` together.
                let is_pair =
                    self.tone == Some(Tone::Added) && span.look.tone == Some(Tone::Removed);
                self.out.push_str(if is_pair { " " } else { " · " });
                self.starts = false;
            }
            if self.parted {
                text = text.trim_end_matches(' ');
            }
        }
        self.tone = span.look.tone;
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
        let look = &span.look;
        let is_code = look.code || look.path;
        let marks = [(look.strike, "~~"), (look.emphasis, "*"), (look.strong, "**")];
        let marks: Vec<&str> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        if !is_code && marks.is_empty() && look.link.is_none() {
            return self.text(inside);
        }
        self.settle(0);
        if look.link.is_some() {
            self.out.push('[');
        }
        marks.iter().for_each(|mark| self.out.push_str(mark));
        self.starts = false;
        self.marked = true;
        if is_code {
            self.code(inside);
        } else {
            self.text(inside);
        }
        self.marked = false;
        marks.iter().rev().for_each(|mark| self.out.push_str(mark));
        if let Some(link) = &look.link {
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
        self.out.push_str(&ticked(&text));
    }

    /// Writes pending newlines, then the leading spaces of the new line.
    fn settle(&mut self, blanks: usize) {
        let breaks = std::mem::take(&mut self.breaks);
        let is_new = self.out.is_empty() || breaks > 0;
        if breaks > 0 && !self.out.is_empty() {
            self.out.truncate(self.out.trim_end_matches([' ', '\t']).len());
            self.out.push_str(match breaks {
                _ if self.one_line => " ",
                1 => "\\\n",
                _ if self.marked => "\\\n",
                _ => "\n\n",
            });
            self.starts = !self.one_line;
        }
        if is_new && !self.one_line {
            (0..blanks).for_each(|_| self.out.push(BLANK));
        } else if !is_new {
            (0..blanks).for_each(|_| self.out.push(' '));
        }
    }

    fn text(&mut self, text: &str) {
        let text = safe(text);
        for (nth, line) in text.split('\n').enumerate() {
            self.breaks += usize::from(nth > 0);
            let said = line.trim_start_matches([' ', '\t']);
            let blanks = line[..line.len() - said.len()].chars();
            let blanks = blanks.map(|c| if c == '\t' { 4 } else { 1 }).sum();
            if said.is_empty() {
                // Drop trailing spaces of a line; keep spaces between words.
                if self.breaks == 0 && !self.out.is_empty() {
                    (0..blanks).for_each(|_| self.out.push(' '));
                }
                continue;
            }
            self.settle(blanks);
            self.words(said);
        }
    }

    fn words(&mut self, line: &str) {
        for (at, c) in line.char_indices() {
            let after = &line[at + c.len_utf8()..];
            let digits = self.starts && self.out.ends_with(|before: char| before.is_ascii_digit());
            match c {
                // Inside a word it has no meaning.
                '_' if self.out.ends_with(char::is_alphanumeric)
                    && after.starts_with(char::is_alphanumeric) => {}
                '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' => self.out.push('\\'),
                '#' | '+' | '-' | '=' if self.starts && !digits => self.out.push('\\'),
                // A list number at the start of a line, if followed by a space.
                '.' | ')' if digits && !after.starts_with(|next: char| !next.is_whitespace()) => {
                    self.out.push('\\');
                }
                '&' => self.out.push_str("&amp;"),
                _ => {}
            }
            self.starts &= c.is_whitespace() || c.is_ascii_digit();
            if c != '&' {
                self.out.push(c);
            }
            if is_reference(line, at, c) {
                self.out.push_str(APART);
            }
        }
    }
}
