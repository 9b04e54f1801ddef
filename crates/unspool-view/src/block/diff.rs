//! Diffs: the changed lines of one file, with the words that differ.

use serde::{Deserialize, Serialize};

use super::{Span, Tone};

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

    /// `+3 −1`; nothing for a number that is 0.
    pub fn count_spans(added: usize, removed: usize) -> Vec<Span> {
        let added = (added > 0).then(|| Span::plain(format!("  +{added}")).toned(Tone::Added));
        let removed =
            (removed > 0).then(|| Span::plain(format!("  −{removed}")).toned(Tone::Removed));
        added.into_iter().chain(removed).collect()
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
    /// The last line of a file that does not end with a newline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
}

impl DiffLine {
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
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
