//! Which session wrote each line of a file: git says which commit a line comes from, the archive
//! has the edits of the file, and `unspool_view::present::blame` finds one in the other.

pub mod commits;
mod document;
pub mod edits;
mod file_history;
pub mod standing;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use thiserror::Error;
use unspool_model::id::{PartId, SessionId};
use unspool_model::part::Place;
use unspool_store::store::{StoreError, View};
use unspool_view::present::blame::{
    Claim, Confidence, EditPlace, TimedEdit, VersionEdit, Writer, same_line, writers,
};

pub use document::{BlameDocument, range_document};
use edits::{FoundEdit, describe, load_edits};
use file_history::{FileHistory, FileLine};

use crate::git::GitError;

#[derive(Debug, Error)]
pub enum BlameError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}: {what}", path.display())]
    File { path: PathBuf, what: String },
}

impl BlameError {
    fn file(path: &Path, what: impl Into<String>) -> BlameError {
        BlameError::File { path: path.to_owned(), what: what.into() }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct BlameRequest {
    /// Absolute, or relative to the current folder.
    pub file: PathBuf,
    /// A revision of git; the working tree without it.
    pub revision: Option<String>,
    /// The first and the last line, from 1; the whole file without it.
    pub lines: Option<(u32, u32)>,
}

/// The lines of a file and the edits that wrote them.
pub struct Blame {
    /// Relative to the repository, or as it was given.
    pub file: String,
    pub lines: Vec<BlameLine>,
    /// The edits that lines name, in the order of their first lines.
    pub edits: Vec<LineEdit>,
}

pub struct BlameLine {
    /// From 1.
    pub line: u32,
    pub text: String,
    /// The commit that git names. None for a line that is in no commit.
    pub commit: Option<String>,
    /// The edit, by its index, and how sure that is. None: no agent wrote the line, as far as the
    /// archive says.
    pub edit: Option<(usize, Confidence)>,
}

/// An edit that wrote lines.
#[derive(Clone, Debug)]
pub struct LineEdit {
    pub session: SessionId,
    pub agent: String,
    pub turn: u32,
    pub part: PartId,
    pub place: Place,
    pub model: Option<String>,
    /// The first line of the prompt.
    pub prompt: Option<String>,
    pub at: Option<Timestamp>,
}

/// A file, the edits of it in the archive, and for each line the edit that wrote it.
struct Attribution {
    history: FileHistory,
    found: Vec<FoundEdit>,
    claims: Vec<Option<Claim>>,
}

async fn attribute<V: View>(view: &V, request: &BlameRequest) -> Result<Attribution, BlameError> {
    let history = file_history::read(request)?;
    let (found, timed) = load_edits(view, &history.place).await?;
    let claims = claims(&history, &found, timed);
    Ok(Attribution { history, found, claims })
}

/// For each line of the file the edit that wrote it.
fn claims(history: &FileHistory, found: &[FoundEdit], timed: Vec<TimedEdit>) -> Vec<Option<Claim>> {
    let mut numbers: FxHashMap<SessionId, usize> = FxHashMap::default();
    let mut places = Vec::with_capacity(timed.len());
    let mut edits = Vec::with_capacity(timed.len());
    for (edit, found) in timed.into_iter().zip(found) {
        let next = numbers.len();
        places.push(edit.place);
        edits.push(VersionEdit {
            at: edit.at.map(|at| at.div_euclid(1000)),
            writer: *numbers.entry(found.session).or_insert(next),
            step: edit.step,
        });
    }
    let writers = writers(&edits, &history.versions);
    let lines = history.lines.iter().zip(writers);
    let claim = |(line, writer): (&FileLine, Option<Writer>)| {
        let writer = writer?;
        let is_same = || {
            let written = edits[writer.edit].step.text(writer.line);
            written.is_some_and(|written| same_line(written, &line.text))
        };
        let is_exact = !writer.is_moved && places[writer.edit] == EditPlace::Here && is_same();
        let confidence = if is_exact { Confidence::Exact } else { Confidence::Moved };
        Some(Claim { edit: writer.edit, confidence })
    };
    lines.map(claim).collect()
}

/// Finds the edits that wrote the lines of a file.
pub async fn blame<V: View>(view: &V, request: BlameRequest) -> Result<Blame, BlameError> {
    let Attribution { history, found, claims } = attribute(view, &request).await?;
    let count = history.lines.len() as u32;
    let (first, last) = request.lines.unwrap_or((1, count));
    if request.lines.is_some() && (first < 1 || last < first || last > count) {
        let what = match count {
            0 => "it has no lines".to_owned(),
            1 => "it has only line 1".to_owned(),
            _ if first >= 1 && first <= count && last >= first => {
                format!("it has only {count} lines; ask for {first}-{count}")
            }
            _ => format!("there are no lines {first} to {last}; it has {count} lines"),
        };
        return Err(BlameError::file(&request.file, what));
    }
    let mut numbers: FxHashMap<PartId, usize> = FxHashMap::default();
    let mut used: Vec<&FoundEdit> = Vec::new();
    let mut lines = Vec::new();
    let wanted = history.lines.into_iter().zip(claims).enumerate();
    let from = first.max(1) as usize - 1;
    for (at, (line, claim)) in wanted.skip(from).take((last as usize).saturating_sub(from)) {
        let edit = claim.map(|claim| {
            let edit = &found[claim.edit];
            let number = *numbers.entry(edit.part).or_insert_with(|| {
                used.push(edit);
                used.len() - 1
            });
            (number, claim.confidence)
        });
        lines.push(BlameLine { line: at as u32 + 1, text: line.text, commit: line.commit, edit });
    }
    let edits = describe(view, &used).await?;
    Ok(Blame { file: history.place.name, lines, edits })
}
