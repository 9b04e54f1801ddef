//! Files in a form that only one agent uses: neither lines of JSON nor a document that is split like
//! any other. What such a file is called, how it begins and how it becomes lines is in the agent's
//! folder (`Agent::files`). Whatever finds or opens files asks here, so that it names no agent.
//!
//! Some of these files are beside a log and have facts about its session: a metadata file, settings,
//! a manifest. Each is a source of its own for the decoders of its agent.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::agents::AGENTS;

/// A form of files.
pub struct OwnFile {
    /// True for the path of such a file.
    pub is_named: fn(&Path) -> bool,
    /// How such a file begins that has any name with this ending.
    pub begins: Option<(&'static str, Begins)>,
    pub lines: Lines,
    /// Finds the files of this form that are beside a log. `None` if the form is a log itself.
    pub beside: Option<fn(&Path) -> Vec<PathBuf>>,
}

/// How a file becomes lines.
#[derive(Clone, Copy)]
pub enum Lines {
    /// As any other file: lines of JSON, or a document.
    AsUsual,
    /// From the whole file, which is small. `None` for any other file.
    Whole(fn(&Path, &mut File) -> io::Result<Option<Vec<u8>>>),
    /// While it is read. The path is empty for a stream.
    Streamed(Streamed),
}

/// True for how a text begins.
pub type Begins = fn(&[u8]) -> bool;

pub type Streamed = fn(&Path, Box<dyn Read + Send>) -> Box<dyn Read + Send>;

fn forms() -> impl Iterator<Item = &'static OwnFile> {
    AGENTS.iter().flat_map(|agent| agent.files)
}

/// The form of a file, by its path.
pub fn of_path(path: &Path) -> Option<&'static OwnFile> {
    forms().find(|form| (form.is_named)(path))
}

/// What tells by the beginning of a file with this path that it has a form of an agent.
pub fn beginnings(path: &Path) -> Vec<Begins> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let begins = forms().filter_map(|form| form.begins);
    begins.filter(|(of_form, _)| *of_form == ending).map(|(_, begins)| begins).collect()
}

/// How a text becomes lines that begins as no lines of JSON and no document do.
pub fn lines_by_beginning(beginning: &[u8]) -> Option<Streamed> {
    forms().find_map(|form| {
        let begins = form.begins.is_some_and(|(_, begins)| begins(beginning));
        if let Lines::Streamed(lines) = form.lines { begins.then_some(lines) } else { None }
    })
}

/// True if a path is of a file that is beside a log.
pub fn is_beside_log(path: &Path) -> bool {
    forms().any(|form| form.beside.is_some() && (form.is_named)(path))
}

/// The files beside a log that exist.
pub fn beside_log(log: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        forms().filter_map(|form| form.beside).flat_map(|beside| beside(log)).collect();
    // Two agents may share a form.
    found.sort_unstable();
    found.dedup();
    found
}
