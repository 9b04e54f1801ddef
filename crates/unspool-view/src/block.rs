//! Blocks: the surface-independent view model. `present` builds them from parts; painters (terminal
//! lines, HTML, Markdown, plain text) only draw them. Text in a block is untrusted agent output:
//! each painter escapes it for its surface.
//!
//! This file has the list of blocks and the simple ones. The text in them is in `span`, states are
//! in `tone`, and blocks that consist of several types are in `diff`, `terminal` and `card`.

mod card;
mod diff;
mod glyphs;
mod span;
mod terminal;
mod tone;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::id::SessionId;
use unspool_model::part::TaskState;

pub use card::{Answer, Card, Question, QuestionItem, QuestionOption};
pub use diff::{Diff, DiffKind, DiffLine, DiffSpan, Hunk};
pub use span::{Span, SpanStyle, is_deceptive, safe_link, text_of};
pub use terminal::{AnsiRun, AnsiStyle, Color, Terminal};
pub use tone::{Badge, Icon, Tone};
pub use unspool_model::part::{Decision, QuestionKind};

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

fn is_false(flag: &bool) -> bool {
    !flag
}
