//! Projections: a session written in a format that people already use. Each is one file and one
//! line of [`ALL`]; the command line, the REST route and the table in the documentation are made
//! from that list.

mod atif;
mod calls;
pub mod d2;
mod fixture;
mod html;
mod json;
mod markdown;
mod otel;
mod shown;
pub mod story;
mod text;
pub mod thoughtflow;
pub mod uimessage;

use std::error::Error;
use std::io;

use thiserror::Error;
use unspool_core::price::Prices;

pub use story::{Library, Story};

/// A form in which a session can leave.
pub struct Projection {
    /// What it is called on the command line and in addresses.
    pub name: &'static str,
    /// What people call it, in menus.
    pub title: &'static str,
    /// How its files end.
    pub extension: &'static str,
    pub media_type: &'static str,
    /// One line for help, menus and the documentation.
    pub about: &'static str,
    pub way: Way,
}

/// How a projection is written.
#[derive(Clone, Copy)]
pub enum Way {
    /// From the session, once secrets are taken out of it.
    Told(Tell),
    /// As it is stored, with all that the archive knows beside it: only the archive can do that.
    Stored,
}

type Tell = fn(Story<'_>, &Options, &mut dyn io::Write) -> Result<(), ProjectError>;

/// All of them, in the order in which they are listed.
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
    about: "everything that is stored, never redacted; `unspool import` takes it back",
    way: Way::Stored,
};

impl Projection {
    pub fn named(name: &str) -> Option<&'static Projection> {
        ALL.iter().find(|projection| projection.name == name)
    }
}

/// What can be chosen.
#[derive(Default)]
pub struct Options {
    pub sdk: Sdk,
    pub prices: Prices,
}

/// Which version of the AI SDK reads it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Sdk {
    /// What the versions 5, 6 and 7 read alike.
    #[default]
    Common,
    Seven,
}

#[derive(Debug, Error)]
pub enum ProjectError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The session could not be read to its end.
    #[error(transparent)]
    Read(Box<dyn Error + Send + Sync>),
}

/// The table of the documentation.
pub fn table() -> String {
    let mut table = "| `--to` | file | what it is |\n| --- | --- | --- |\n".to_owned();
    for projection in ALL {
        let Projection { name, extension, about, .. } = projection;
        table.push_str(&format!("| `{name}` | `.{extension}` | {about} |\n"));
    }
    table
}
