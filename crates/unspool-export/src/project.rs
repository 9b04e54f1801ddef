//! Projections: a session written in another tool's format. Each is one file and one line of
//! [`ALL`]; the command line, the REST route and the table in docs/exports.md are made from it.

mod atif;
mod calls;
pub mod d2;
mod fixture;
mod history;
mod html;
mod json;
mod markdown;
mod otel;
pub mod session_stream;
mod text;
pub mod thoughtflow;
mod turn_views;
pub mod uimessage;

use std::error::Error;
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use unspool_model::price::Prices;

pub use html::html_policy;
pub use markdown::{Excerpt, write_excerpt};
pub use session_stream::{SessionLookup, SessionStream};

/// An export format.
pub struct Projection {
    /// The name on the command line and in URLs.
    pub name: &'static str,
    /// The name in menus.
    pub title: &'static str,
    /// The file extension.
    pub extension: &'static str,
    pub media_type: &'static str,
    /// One line for help, menus and docs.
    pub about: &'static str,
    /// It can include the user's notes.
    pub has_notes: bool,
    /// It can be limited to some turns.
    pub has_turns: bool,
    pub method: WriteMethod,
}

/// How a projection is written.
#[derive(Clone, Copy)]
pub enum WriteMethod {
    /// Written from the redacted session.
    Projected(WriteProjection),
    /// Written from the archive's own rows (`archive_lines`).
    Stored,
}

type WriteProjection =
    fn(SessionStream<'_>, &Options, &mut dyn io::Write) -> Result<(), ProjectError>;

/// All projections, in display order.
pub const ALL: &[Projection] = &[
    markdown::PROJECTION,
    html::PROJECTION,
    text::PROJECTION,
    json::PROJECTION,
    uimessage::PROJECTION,
    thoughtflow::PROJECTION,
    d2::PROJECTION,
    atif::PROJECTION,
    otel::PROJECTION,
    fixture::PROJECTION,
    history::PROJECTION,
    STORED,
];

/// Their names.
pub const NAMES: &[&str] = &{
    let mut names = [""; ALL.len()];
    let mut nth = 0;
    while nth < ALL.len() {
        names[nth] = ALL[nth].name;
        nth += 1;
    }
    names
};

const STORED: Projection = Projection {
    name: "jsonl",
    title: "Archive (JSON lines)",
    extension: "jsonl",
    media_type: "application/x-ndjson",
    about: "everything that is stored, never redacted; re-import it with `unspool import`",
    has_notes: true,
    has_turns: false,
    method: WriteMethod::Stored,
};

impl Projection {
    pub fn named(name: &str) -> Option<&'static Projection> {
        ALL.iter().find(|projection| projection.name == name)
    }
}

/// The options of an export.
#[derive(Default)]
pub struct Options {
    pub sdk: Sdk,
    pub prices: Prices,
    /// Include the user's notes, in the formats that have a place for them.
    pub notes: bool,
    /// Only these turns, in the formats that can be limited to some. The title and the figures are
    /// then those of these turns, and notes on others are left out.
    pub turns: Option<TurnRange>,
    pub audience: Audience,
}

/// Turns by their numbers, from the first to the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TurnRange {
    pub first: u32,
    pub last: u32,
}

impl TurnRange {
    /// `3`, or `3-7`.
    pub fn parse(text: &str) -> Option<TurnRange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(TurnRange { first, last })
    }

    pub fn contains(self, number: u32) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// `turn 3`, or `turns 3 to 7`.
impl fmt::Display for TurnRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(out, "turn {}", self.first),
            false => write!(out, "turns {} to {}", self.first, self.last),
        }
    }
}

/// Who decides when a session is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Audience {
    /// The owner, who reads the result before passing it on.
    #[default]
    Owner,
    /// A guest, at any time: nothing that still grows, because its next word may complete a secret,
    /// and only sub-agents whose own records say that this session started them.
    Guest,
}

/// The AI SDK version of the reader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Sdk {
    /// The common subset of versions 5, 6 and 7.
    #[default]
    Common,
    Seven,
}

#[derive(Debug, Error)]
pub enum ProjectError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The session could not be read completely.
    #[error(transparent)]
    Read(Box<dyn Error + Send + Sync>),
}

/// The table of docs/exports.md.
pub fn table() -> String {
    let mut table = "| `--to` | file | what it is |\n| --- | --- | --- |\n".to_owned();
    for projection in ALL {
        let Projection { name, extension, about, .. } = projection;
        table.push_str(&format!("| `{name}` | `.{extension}` | {about} |\n"));
    }
    table
}
