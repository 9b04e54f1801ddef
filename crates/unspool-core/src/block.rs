//! Blocks: the surface-independent view model. `present` builds them from parts; painters (terminal
//! lines, HTML, Markdown, plain text) only draw them. Text in a block is untrusted agent output:
//! each painter escapes it for its surface.

mod glyphs;

use std::borrow::Cow;
use std::sync::Arc;

use crate::id::SessionId;
use crate::part::TaskState;
use serde::{Deserialize, Serialize};

pub use crate::part::{Decision, QuestionKind};

/// One visual element.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "block", rename_all = "kebab-case")]
pub enum Block {
    /// A newline inside a span is a line break.
    Paragraph {
        spans: Vec<Span>,
    },
    Heading {
        level: u8,
        spans: Vec<Span>,
    },
    List(List),
    Quote {
        blocks: Vec<Block>,
    },
    Code(Code),
    Table(Table),
    Rule,
    Diff(Diff),
    Terminal(Terminal),
    Fields {
        fields: Vec<Field>,
    },
    Tree(Tree),
    Notice(Notice),
    File(FileReference),
    /// De-emphasised content: reasoning outside thinking mode (C-10).
    Aside {
        blocks: Vec<Block>,
    },
    Fold(Fold),
    Card(Box<Card>),
    Question(Question),
}

/// A run of text in one style.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Span {
    pub text: String,
    #[serde(flatten)]
    pub style: SpanStyle,
}

/// Semantic style of a span. Painters choose the colours.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SpanStyle {
    #[serde(default, skip_serializing_if = "is_false")]
    pub strong: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub emphasis: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub strike: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub code: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub dim: bool,
    /// A path on disk.
    #[serde(default, skip_serializing_if = "is_false")]
    pub path: bool,
    /// Always `http:`, `https:` or `mailto:` and free of spaces and control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tone: Option<Tone>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Span {
    pub fn plain(text: impl Into<String>) -> Span {
        Span { text: text.into(), style: SpanStyle::default() }
    }

    pub fn strong(mut self) -> Span {
        self.style.strong = true;
        self
    }

    pub fn code(mut self) -> Span {
        self.style.code = true;
        self
    }

    pub fn dim(mut self) -> Span {
        self.style.dim = true;
        self
    }

    pub fn path(mut self) -> Span {
        self.style.path = true;
        self
    }

    pub fn toned(mut self, tone: Tone) -> Span {
        self.style.tone = Some(tone);
        self
    }

    /// Links to `url` where that is safe to follow; otherwise stays plain text.
    pub fn link(mut self, url: &str) -> Span {
        self.style.link = safe_link(url);
        self
    }
}

/// Returns the URL if it is safe to link to. Agent output is hostile: only schemes that execute
/// nothing are allowed, and a relative link would point into our own pages.
pub fn safe_link(url: &str) -> Option<String> {
    let scheme = url.split_once(':')?.0.to_ascii_lowercase();
    let is_allowed = matches!(scheme.as_str(), "http" | "https" | "mailto");
    let clean = !url.chars().any(|c| c.is_control() || c.is_whitespace() || is_bidi(c));
    (is_allowed && clean).then(|| url.to_owned())
}

/// Bidirectional control characters. They reorder the text that follows and can disguise it.
pub fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' | '\u{061C}')
}

/// The text of the spans without their styles.
pub fn text_of(spans: &[Span]) -> String {
    spans.iter().map(|span| span.text.as_str()).collect()
}

/// The meaning of a colour. R-003-50 and C-18 give the colours for two themes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    Pending,
    Running,
    Ok,
    Failed,
    Interrupted,
    Background,
    Muted,
    Accent,
    Warning,
    /// The person's own words.
    User,
    Added,
    Removed,
}

/// The icon of a state, as in R-003-51. Only `Running` may blink (C-18).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Icon {
    Pending,
    Running,
    Completed,
    Failed,
    Interrupted,
    Background,
}

impl Icon {
    pub fn glyph(self) -> &'static str {
        match self {
            Icon::Pending => "○",
            Icon::Running => "◐",
            Icon::Completed | Icon::Interrupted => "●",
            Icon::Failed => "✕",
            Icon::Background => "⧈",
        }
    }

    pub fn tone(self) -> Tone {
        match self {
            Icon::Pending => Tone::Pending,
            Icon::Running => Tone::Running,
            Icon::Completed => Tone::Ok,
            Icon::Failed => Tone::Failed,
            Icon::Interrupted => Tone::Interrupted,
            Icon::Background => Tone::Background,
        }
    }
}

/// The status badge of a tool call (R-000-21).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Badge {
    pub word: Cow<'static, str>,
    pub tone: Tone,
    /// The exact state where the badge is less specific: denied, interrupted.
    pub state: Option<Cow<'static, str>>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct List {
    /// The first number of a numbered list.
    pub start: Option<u64>,
    /// No space between the items.
    pub tight: bool,
    pub items: Vec<ListItem>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ListItem {
    pub check: Option<Check>,
    pub blocks: Vec<Block>,
}

impl From<TaskState> for Check {
    fn from(state: TaskState) -> Check {
        match state {
            TaskState::Pending => Check::Open,
            TaskState::Running => Check::Running,
            TaskState::Completed => Check::Done,
            TaskState::Cancelled => Check::Cancelled,
        }
    }
}

/// The box before an item of a task list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    Open,
    Running,
    Done,
    Cancelled,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Code {
    pub language: Option<String>,
    pub text: String,
    /// The number of the first line if the text is an excerpt of a file.
    pub first_line: Option<u64>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    pub alignments: Vec<Alignment>,
    pub header: Vec<Vec<Span>>,
    pub rows: Vec<Vec<Vec<Span>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alignment {
    #[default]
    None,
    Left,
    Center,
    Right,
}

/// The changes to one file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Diff {
    pub path: Option<String>,
    pub language: Option<String>,
    pub hunks: Vec<Hunk>,
}

impl Diff {
    /// How many lines were added and removed.
    pub fn counts(&self) -> (usize, usize) {
        let count = |kind| {
            let lines = self.hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.kind == kind).count()
        };
        (count(DiffKind::Added), count(DiffKind::Removed))
    }
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Hunk {
    pub lines: Vec<DiffLine>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DiffLine {
    pub kind: DiffKind,
    /// The line number before and after the change, if available.
    pub old: Option<u64>,
    pub new: Option<u64>,
    pub spans: Vec<DiffSpan>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiffKind {
    Context,
    Added,
    Removed,
}

/// A run of text in a diff line; `changed` marks the words that differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DiffSpan {
    pub text: String,
    pub changed: bool,
}

/// Program output with its colours as data: no surface ever receives an escape sequence.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Terminal {
    pub lines: Vec<Vec<AnsiRun>>,
    /// Lines dropped because the output exceeds the line limit.
    pub omitted: usize,
    pub exit_code: Option<i64>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AnsiRun {
    pub text: String,
    #[serde(flatten)]
    pub style: AnsiStyle,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AnsiStyle {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground: Option<Color>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Color>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub bold: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub dim: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub italic: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub underline: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub inverse: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub strike: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Color {
    /// The terminal's palette; 0 to 15 are the named colours.
    Indexed(u8),
    Rgb(u8, u8, u8),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    pub value: Vec<Span>,
}

impl Field {
    pub fn new(name: impl Into<String>, value: Vec<Span>) -> Field {
        Field { name: name.into(), value }
    }
}

/// Sub-agents (R-003-27). Holds all nodes; a painter shows the first `shown` and "+N".
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tree {
    pub detail: TreeDetail,
    pub shown: usize,
    pub nodes: Vec<Node>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeDetail {
    /// At least one agent is running: show notes and children.
    Full,
    Compact,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// The agent's own id.
    pub key: String,
    /// The agent's own session, if it is in the archive.
    pub session: Option<SessionId>,
    pub icon: Icon,
    pub label: Vec<Span>,
    /// The name of the state.
    pub state: Cow<'static, str>,
    /// Current activity.
    pub note: Vec<Span>,
    pub children: Vec<Node>,
}

/// An event or error message. Not text of the model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Notice {
    pub tone: Tone,
    pub code: Option<String>,
    pub text: String,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FileReference {
    pub name: Option<String>,
    pub media_type: Option<String>,
    pub bytes: Option<u64>,
    pub link: Option<String>,
    /// A data URL of a raster image, for surfaces that can show pictures. Never printed.
    #[serde(skip)]
    pub preview: Option<Arc<str>>,
}

/// A collapsible section.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fold {
    pub title: Vec<Span>,
    /// One line shown while the fold is closed.
    pub summary: String,
    pub open: bool,
    pub tone: Tone,
    pub blocks: Vec<Block>,
}

/// A tool call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Card {
    pub badge: Badge,
    pub icon: Icon,
    pub title: String,
    /// One line.
    pub summary: Vec<Span>,
    pub duration_ms: Option<u64>,
    /// The body is visible by default.
    pub open: bool,
    /// Drawn directly below the head, above the body (R-003-12).
    pub question: Option<Question>,
    pub body: Vec<Block>,
}

/// A question to the user. It is open until it has an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Question {
    pub kind: QuestionKind,
    pub items: Vec<QuestionItem>,
    pub answer: Option<Answer>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QuestionItem {
    pub header: Option<String>,
    pub question: String,
    pub options: Vec<QuestionOption>,
    pub multi_select: bool,
    /// The user's answer to this question.
    pub answer: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QuestionOption {
    pub label: String,
    pub description: Option<String>,
    pub chosen: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub decision: Decision,
    pub text: String,
    /// False if the answer was inferred from later events.
    pub observed: bool,
}
