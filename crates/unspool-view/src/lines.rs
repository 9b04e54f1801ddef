//! Lays blocks out as styled lines on a character grid. Input: blocks and turn views of `present`.
//! Output: lines for the terminal UI, `show` and plain text. A line never holds control characters
//! or bidirectional overrides: agent output is hostile, and this is the last stage before a
//! terminal (law 8).

mod blocks;
mod card;
mod diff;
mod highlighter;
mod table;
mod turn;
mod wrap;

pub use highlighter::{Highlighter, Token, TokenSpans};
pub use turn::{
    closed_part_lines, closed_reasoning_lines, continues_group, header_line, is_dense, item_lines,
    lines_before, note_lines, turn_lines, user_lines,
};
pub use wrap::{Break, clip, make_visible, truncate, width, wrap};

use crate::block::{AnsiStyle, Block, Color, SpanStyle, Tone};

/// Maximum width in columns of rules, heads and badges, however wide the screen is.
pub const MAX_LINE_WIDTH: usize = 110;

/// Layout options.
#[derive(Clone, Copy, Debug)]
pub struct LineOptions<'a> {
    /// Open every fold.
    pub expand: bool,
    /// Maximum number of output lines per tool call. `None` shows all.
    pub output_lines: Option<usize>,
    /// Syntax highlighter. It changes no character (R-001-38).
    pub colours: Option<&'a dyn Highlighter>,
}

impl Default for LineOptions<'_> {
    fn default() -> Self {
        LineOptions { expand: false, output_lines: Some(12), colours: None }
    }
}

impl LineOptions<'_> {
    /// Expands every fold and shows the full output.
    pub fn everything() -> Self {
        LineOptions { expand: true, output_lines: None, colours: None }
    }
}

/// One line of the grid.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Line {
    pub runs: Vec<Run>,
}

/// A run of text in one style.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    pub text: String,
    pub style: Style,
}

/// The style of a run. A painter maps the role to a colour; `foreground` and `background` are
/// colours that a program set in its own output.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Style {
    pub role: TextRole,
    pub strong: bool,
    pub dim: bool,
    pub emphasis: bool,
    pub underline: bool,
    pub strike: bool,
    pub inverse: bool,
    pub foreground: Option<Color>,
    pub background: Option<Color>,
    /// See `SpanStyle::link`.
    pub link: Option<String>,
}

/// The semantic role of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TextRole {
    #[default]
    Plain,
    Heading,
    Code,
    Link,
    Path,
    /// Decoration added by the layout: bullets, rails, line numbers, counts of hidden lines.
    Gutter,
    Added,
    Removed,
    AddedWord,
    RemovedWord,
    Tone(Tone),
    /// The bracketed status badge of a tool call. Its colours differ from those of the state's
    /// icon (R-000-21, R-003-50).
    Badge(Tone),
    /// A syntax-highlighted token.
    Token(Token),
}

impl Style {
    pub fn role(role: TextRole) -> Style {
        Style { role, ..Style::default() }
    }

    pub fn tone(tone: Tone) -> Style {
        Style::role(TextRole::Tone(tone))
    }

    pub fn gutter() -> Style {
        Style { dim: true, ..Style::role(TextRole::Gutter) }
    }

    fn strong(mut self) -> Style {
        self.strong = true;
        self
    }

    fn from_ansi(ansi: &AnsiStyle) -> Style {
        Style {
            strong: ansi.bold,
            dim: ansi.dim,
            emphasis: ansi.italic,
            underline: ansi.underline,
            strike: ansi.strike,
            inverse: ansi.inverse,
            foreground: ansi.foreground,
            background: ansi.background,
            ..Style::default()
        }
    }

    /// Applies a span's style on top of the enclosing style.
    fn with(&self, style: &SpanStyle) -> Style {
        let role = match (style.tone, &style.link) {
            (Some(tone), _) => TextRole::Tone(tone),
            (None, Some(_)) => TextRole::Link,
            (None, None) if style.code => TextRole::Code,
            (None, None) if style.path => TextRole::Path,
            (None, None) => self.role,
        };
        Style {
            role,
            strong: self.strong || style.strong,
            dim: self.dim || style.dim,
            emphasis: self.emphasis || style.emphasis,
            strike: self.strike || style.strike,
            link: style.link.clone().or_else(|| self.link.clone()),
            ..self.clone()
        }
    }
}

impl Line {
    /// A line of one run.
    pub fn of(text: &str, style: Style) -> Line {
        let mut line = Line::default();
        line.push(text, style);
        line
    }

    /// Appends text, made safe for a terminal. Characters that continue the last grapheme of the
    /// line, such as a combining accent, join its run: a run consists of whole graphemes.
    pub fn push(&mut self, text: &str, style: Style) {
        let text = wrap::make_visible_from(text, || self.width());
        let mut text: &str = &text;
        if let Some(run) = self.runs.last_mut() {
            let (joined, rest) = text.split_at(wrap::continuation_len(&run.text, text));
            run.text.push_str(if run.style == style { text } else { joined });
            text = if run.style == style { "" } else { rest };
        }
        if !text.is_empty() {
            self.runs.push(Run { text: text.to_owned(), style });
        }
    }

    /// Width in columns.
    pub fn width(&self) -> usize {
        self.runs.iter().map(|run| width(&run.text)).sum()
    }

    /// The line's text without its styles.
    pub fn text(&self) -> String {
        self.runs.iter().map(|run| run.text.as_str()).collect()
    }

    pub fn is_blank(&self) -> bool {
        self.runs.iter().all(|run| run.text.trim().is_empty())
    }
}

/// Lays blocks out in `width` columns.
pub fn layout(blocks: &[Block], width: usize, options: &LineOptions<'_>) -> Vec<Line> {
    let frame = Frame::new(width, options);
    frame.clip_all(blocks::lay(blocks, &frame))
}

/// Layout context: the available width and the inherited style.
#[derive(Clone)]
struct Frame<'a> {
    width: usize,
    options: LineOptions<'a>,
    /// The style of plain text here.
    base: Style,
    /// Inside a tool's card: long output is cut.
    in_card: bool,
    /// Print the path above each diff. A card with a single diff has it in its head.
    names_files: bool,
}

impl<'a> Frame<'a> {
    fn new(width: usize, options: &LineOptions<'a>) -> Frame<'a> {
        let width = width.max(MIN_WIDTH);
        Frame {
            width,
            options: *options,
            base: Style::default(),
            in_card: false,
            names_files: true,
        }
    }

    fn dim(&self) -> Frame<'a> {
        let mut frame = self.clone();
        frame.base.dim = true;
        frame
    }

    /// Clips lines that are still too wide: marks and counts are never wrapped.
    fn clip_all(&self, lines: Vec<Line>) -> Vec<Line> {
        lines.into_iter().map(|line| wrap::clip(line, self.width)).collect()
    }

    /// The available width, at most `MAX_LINE_WIDTH`.
    fn line_width(&self) -> usize {
        self.width.min(MAX_LINE_WIDTH)
    }

    /// Lays out inside a margin: `first` before the first line, `rest` before the others. Omits the
    /// margin if it would leave less than `MIN_WIDTH`, so that no line is ever too wide.
    fn inside(
        &self,
        first: (&str, Style),
        rest: (&str, Style),
        lay: impl FnOnce(&Frame<'_>) -> Vec<Line>,
    ) -> Vec<Line> {
        let margin = width(first.0).max(width(rest.0));
        if self.width < margin + MIN_WIDTH {
            return lay(self);
        }
        let mut inner = self.clone();
        inner.width -= margin;
        let prefixed = lay(&inner).into_iter().enumerate().map(|(at, line)| {
            let (text, style) = if at == 0 { &first } else { &rest };
            let mut out = Line::default();
            out.push(text, style.clone());
            line.runs.into_iter().for_each(|run| out.push(&run.text, run.style));
            out
        });
        prefixed.collect()
    }

    fn indented(&self, lay: impl FnOnce(&Frame<'_>) -> Vec<Line>) -> Vec<Line> {
        self.inside(("  ", Style::default()), ("  ", Style::default()), lay)
    }
}

/// Minimum text width in columns.
const MIN_WIDTH: usize = 12;

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
