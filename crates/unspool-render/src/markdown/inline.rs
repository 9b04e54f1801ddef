//! Words in a line: what an agent wrote stays text. Signs that would mean something where they stand
//! are escaped, line breaks stay line breaks, and nobody is mentioned by what is only quoted.

use unspool_core::block::{Span, Tone};

use crate::text::safe;

/// Parts a sign from its word, so that GitHub mentions nobody and links no issue.
const APART: &str = "<!-- -->";
/// Blanks at the start of a line would be lost, or make it code.
const BLANK: char = '\u{a0}';

/// A paragraph.
pub fn spans(all: &[Span]) -> String {
    Writer::default().all(all)
}

/// One line, as headings are.
pub fn line(all: &[Span]) -> String {
    Writer { one_line: true, ..Writer::default() }.all(all)
}

/// The head of something: two blanks between its pieces, which Markdown makes one, become a dot.
pub fn head(all: &[Span]) -> String {
    Writer { one_line: true, is_head: true, ..Writer::default() }.all(all)
}

/// A cell of a table.
pub fn cell(all: &[Span]) -> String {
    Writer { one_line: true, in_table: true, ..Writer::default() }.all(all)
}

pub fn escaped(text: &str) -> String {
    spans(&[Span::plain(text)])
}

/// Text inside of a tag of ours, where no Markdown is read.
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

/// Whether GitHub would take this sign and what follows it for a person, a team or an issue.
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

/// Code in a line, whatever ticks stand in it.
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
    /// Nothing but blanks and digits stands in the line so far: a sign may begin something.
    starts: bool,
    /// Line ends that wait for a word.
    breaks: usize,
    /// Inside of marks, which no paragraph may break.
    marked: bool,
    /// The span before ended in what parts it from the next.
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
        // What the presenter adds to a line of its own is dim, or stands in a head.
        if self.is_head || span.look.dim {
            let parted = text.starts_with("  ") || std::mem::take(&mut self.parted);
            self.parted = self.is_head && text.trim_start().ends_with("  ");
            if parted && !self.out.is_empty() && self.breaks == 0 {
                text = text.trim_start_matches(' ');
                // `+3 −1` is one thing.
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
        // Two pieces of code that touch would be one.
        if self.out.ends_with('`') {
            self.out.push(' ');
        }
        self.out.push_str(&ticked(&text));
    }

    /// Writes the line ends that wait, and the blanks that the new line begins with.
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
                // Blanks at the end of a line are nothing; between two words they are.
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
                // Inside of a word it means nothing.
                '_' if self.out.ends_with(char::is_alphanumeric)
                    && after.starts_with(char::is_alphanumeric) => {}
                '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' => self.out.push('\\'),
                '#' | '+' | '-' | '=' if self.starts && !digits => self.out.push('\\'),
                // A number at the start of a line, and only before a space.
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
