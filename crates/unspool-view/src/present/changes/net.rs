//! The net change of a file: what is left when all its edits are applied.

use similar::DiffOp;

use super::file_lines::{FileLines, Line, Piece};
use crate::block::{Diff, DiffKind, Hunk};
use crate::present::alignment::align;
use crate::present::diff::{self, HunkBuilder};

const CONTEXT_LINES: u64 = 3;
/// As in `diff`: larger regions are not aligned.
const MAX_WORK: usize = 4_000_000;

/// The diff between the original and the file as it is now. Removed lines whose text is unknown are
/// not in it.
pub fn net_diff(path: Option<&str>, file: &FileLines) -> Diff {
    let mut net = Net::default();
    let mut at = 0;
    for piece in &file.pieces {
        match piece {
            Piece::Kept { from, count } => {
                net.removed.extend((at..*from).filter_map(|line| file.original.get(&line)));
                net.close_region();
                net.kept(file, *from, *count, piece.is_open());
                at = from.saturating_add(*count);
            }
            Piece::Added(lines) => net.added.extend(lines),
        }
    }
    let end = file.original_length.unwrap_or(at).max(at);
    net.removed.extend(file.original.range(at.min(end)..end).map(|(_, line)| line));
    net.close_region();
    net.close_hunk();
    diff::file_diff(path, net.hunks)
}

#[derive(Default)]
struct Net<'a> {
    hunks: Vec<Hunk>,
    open: Option<HunkBuilder>,
    /// Known lines before the next change, which may become its context.
    context: Vec<&'a Line>,
    removed: Vec<&'a Line>,
    added: Vec<&'a Line>,
    /// The lines before the next one, old and new.
    old_at: u64,
    new_at: u64,
}

impl<'a> Net<'a> {
    /// Writes the lines between two runs of kept lines.
    fn close_region(&mut self) {
        let (removed, added) = (std::mem::take(&mut self.removed), std::mem::take(&mut self.added));
        if removed == added {
            return self.same(&removed);
        }
        let ops = match removed.len().saturating_mul(added.len()) <= MAX_WORK {
            true => align(&keys(&removed), &keys(&added)),
            false => vec![DiffOp::Replace {
                old_index: 0,
                old_len: removed.len(),
                new_index: 0,
                new_len: added.len(),
            }],
        };
        for op in ops {
            match op {
                DiffOp::Equal { .. } => self.same(&removed[op.old_range()]),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                    self.change(&removed[op.old_range()], &added[op.new_range()]);
                }
            }
        }
    }

    /// Lines that are the same before and after.
    fn same(&mut self, lines: &[&'a Line]) {
        for line in lines {
            self.unchanged(Some(line));
        }
    }

    fn kept(&mut self, file: &'a FileLines, from: u64, count: u64, open: bool) {
        // Removed lines whose text is unknown were not counted.
        self.old_at = from;
        let end = from.saturating_add(count);
        // Only the lines near a change are looked at: a file may be long.
        let near = 2 * CONTEXT_LINES;
        if count <= 2 * near {
            (from..end).for_each(|at| self.unchanged(file.original.get(&at)));
            return;
        }
        (from..from + near).for_each(|at| self.unchanged(file.original.get(&at)));
        if open {
            return;
        }
        self.unchanged(None);
        self.old_at += count - 2 * near - 1;
        self.new_at += count - 2 * near - 1;
        (end - near..end).for_each(|at| self.unchanged(file.original.get(&at)));
    }

    /// One line that stays. None: its text is unknown.
    fn unchanged(&mut self, line: Option<&'a Line>) {
        self.old_at += 1;
        self.new_at += 1;
        match line {
            Some(line) => self.context.push(line),
            None => {
                self.trail();
                self.close_hunk();
                self.context.clear();
            }
        }
        if self.context.len() as u64 > 2 * CONTEXT_LINES {
            self.trail();
            self.close_hunk();
            self.context.remove(0);
        }
    }

    /// Writes the context behind a change.
    fn trail(&mut self) {
        let Some(hunk) = &mut self.open else { return };
        let count = self.context.len().min(CONTEXT_LINES as usize);
        self.context.drain(..count).for_each(|line| push(hunk, DiffKind::Context, line));
    }

    fn change(&mut self, removed: &[&Line], added: &[&Line]) {
        let context = std::mem::take(&mut self.context);
        let hunk = match &mut self.open {
            Some(hunk) => {
                context.iter().for_each(|line| push(hunk, DiffKind::Context, line));
                hunk
            }
            None => {
                let lead = &context[context.len().saturating_sub(CONTEXT_LINES as usize)..];
                let back = lead.len() as u64;
                let hunk = HunkBuilder::numbered(
                    (self.old_at + 1).saturating_sub(back),
                    (self.new_at + 1).saturating_sub(back),
                );
                let hunk = self.open.insert(hunk);
                lead.iter().for_each(|line| push(hunk, DiffKind::Context, line));
                hunk
            }
        };
        removed.iter().for_each(|line| push(hunk, DiffKind::Removed, line));
        added.iter().for_each(|line| push(hunk, DiffKind::Added, line));
        self.old_at += removed.len() as u64;
        self.new_at += added.len() as u64;
    }

    fn close_hunk(&mut self) {
        self.trail();
        self.hunks.extend(self.open.take().map(HunkBuilder::hunk));
    }
}

fn push(hunk: &mut HunkBuilder, kind: DiffKind, line: &Line) {
    hunk.push(kind, &line.text);
    hunk.lines.last_mut().into_iter().for_each(|pushed| pushed.no_newline = line.no_newline);
}

/// What lines are compared by.
fn keys<'a>(lines: &[&'a Line]) -> Vec<(&'a str, bool)> {
    lines.iter().map(|line| (line.text.as_str(), line.no_newline)).collect()
}
