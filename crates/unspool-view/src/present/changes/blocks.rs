//! Changes as blocks, for every surface.

use super::{Basis, Changes, FileChange, FileStatus};
use crate::block::{Block, Diff, Notice, Span, Tone};
use crate::present::format;

impl Changes {
    /// "3 files changed", with the sums of lines.
    pub fn summary(&self) -> Vec<Span> {
        let changed = self.files.iter().filter(|file| file.status != FileStatus::Unchanged);
        let count = changed.count();
        let mut spans = vec![match count {
            0 => Span::plain("No file changed"),
            _ => Span::plain(format!("{} changed", format::count(count, "file"))).strong(),
        }];
        let (added, removed) = self.counts();
        spans.extend(Diff::count_spans(added, removed));
        spans
    }
}

impl FileChange {
    /// The name, what happened to the file, and how many lines changed.
    pub fn head(&self) -> Vec<Span> {
        let mut spans = vec![Span::plain(self.name.clone()).path()];
        let status = match (self.status, &self.moved_from) {
            (FileStatus::New, _) => Some("new".to_owned()),
            (FileStatus::Deleted, _) => Some("deleted".to_owned()),
            (FileStatus::Moved, Some(from)) => Some(format!("moved from {from}")),
            (FileStatus::Moved, None) => Some("moved".to_owned()),
            (FileStatus::Unchanged, _) => {
                let edits = format::count(self.edits.len(), "edit");
                Some(format!("unchanged after {edits}"))
            }
            (FileStatus::Modified, _) => None,
        };
        spans.extend(status.map(|word| Span::plain(format!("  {word}")).dim()));
        spans.extend(Diff::count_spans(self.added, self.removed));
        spans
    }

    /// What the reader must know about the diff, and the diff.
    pub fn body(&self) -> Vec<Block> {
        let note = self.basis.note().map(|text| {
            Block::Notice(Notice { tone: Tone::Warning, code: None, text: text.to_owned() })
        });
        let has_lines = !self.diff.hunks.is_empty() && self.basis != Basis::NotRecorded;
        // The head has the name.
        let diff = has_lines.then(|| Block::Diff(Diff { path: None, ..self.diff.clone() }));
        note.into_iter().chain(diff).collect()
    }
}
