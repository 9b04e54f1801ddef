//! Diffs: the changed lines of one file, with the words that differ.

use serde::{Deserialize, Serialize};

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
