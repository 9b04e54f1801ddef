//! Copilot's `detailedContent`: a diff of texts that were split at newlines. A text that ends with a
//! newline has an empty last line there, and a text without one is not marked.

use super::{FileAction, FileEdit, written_text};
use crate::block::{DiffKind, Hunk};
use crate::present::diff;
use crate::present::tools::call::ParsedCall;

const CONTEXT_LINES: usize = 3;

/// The files of a diff; empty if the text is none.
pub fn edits(call: &ParsedCall, text: &str) -> Vec<FileEdit> {
    let mut sections: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("diff --git ") {
            sections.push(String::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push_str(line);
            section.push('\n');
        }
    }
    sections.iter().filter_map(|section| edit(call, section)).collect()
}

fn edit(call: &ParsedCall, section: &str) -> Option<FileEdit> {
    let name = |mark: &str| section.lines().find_map(|line| line.strip_prefix(mark));
    let (old, new) = (name("--- a/")?, name("+++ b/")?);
    // The names are absolute paths behind `a` and `b`.
    let path = |name: &str| format!("/{name}");
    let mut hunks: Vec<Hunk> =
        diff::patch(section).into_iter().flat_map(|diff| diff.hunks).collect();
    if old == "dev/null" {
        // `create` omits the last line if it is empty, `apply_patch` does not.
        let written = written_text(call).map(ToOwned::to_owned);
        let text = written.unwrap_or_else(|| text_of(&hunks, DiffKind::Added));
        return Some(FileEdit::new(Some(&path(new)), FileAction::Create(text)));
    }
    if new == "dev/null" {
        let text = text_of(&hunks, DiffKind::Removed);
        return Some(FileEdit::new(Some(&path(old)), FileAction::Delete(Some(text))));
    }
    hunks.last_mut().into_iter().for_each(mark_end);
    let (old, new) = (path(old), path(new));
    let moved_to = (old != new).then_some(new.as_str());
    let action = FileAction::Patch(diff::file_diff(Some(&new), hunks));
    Some(FileEdit::new(Some(&old), action).moved(moved_to))
}

/// The whole text of a created or deleted file.
fn text_of(hunks: &[Hunk], kind: DiffKind) -> String {
    let lines = hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind);
    lines.map(|line| line.text()).collect::<Vec<_>>().join("\n")
}

/// Removes the empty line that stands for a final newline, and marks a last line without one.
fn mark_end(hunk: &mut Hunk) {
    let context = hunk.lines.iter().rev().take_while(|line| line.kind == DiffKind::Context).count();
    if context >= CONTEXT_LINES {
        // The file may go on. An empty line is dropped: it may be none.
        hunk.lines.pop_if(|line| line.text().is_empty());
        return;
    }
    for side in [DiffKind::Removed, DiffKind::Added] {
        // The last line of this side; a context line belongs to both.
        let other = if side == DiffKind::Removed { DiffKind::Added } else { DiffKind::Removed };
        let Some(at) = hunk.lines.iter().rposition(|line| line.kind != other) else { continue };
        if !hunk.lines[at].text().is_empty() {
            hunk.lines[at].no_newline = true;
        } else if hunk.lines[at].kind == DiffKind::Context {
            hunk.lines.remove(at);
            return;
        } else {
            hunk.lines.remove(at);
        }
    }
}
