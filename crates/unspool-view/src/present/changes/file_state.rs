//! The state of one file between two edits: its lines as far as they are known, and how it ended.

use super::file_lines::{ApplyError, FileLines};
use super::net;
use super::{Basis, EditRef, FileChange, FileStatus};
use crate::block::Hunk;
use crate::present::diff;
use crate::present::tools::edits::{FileAction, FileEdit, Replacement};

/// One file while the edits of a session are collected.
pub struct FileState {
    /// The position of the file in the result.
    pub order: u64,
    pub moved_from: Option<String>,
    lines: FileLines,
    /// The first reason why the net change is not known.
    basis: Basis,
    created: bool,
    deleted: bool,
    hunks: Vec<Hunk>,
    edits: Vec<EditRef>,
    /// Edited since the agent last reported which files changed.
    is_reported: bool,
}

impl FileState {
    pub fn new(order: u64) -> FileState {
        FileState {
            order,
            moved_from: None,
            lines: FileLines::without_text(),
            basis: Basis::Net,
            created: false,
            deleted: false,
            hunks: Vec::new(),
            edits: Vec::new(),
            is_reported: false,
        }
    }

    pub fn add(&mut self, edit: &FileEdit, at: EditRef, text_read: Option<&str>) {
        if self.edits.last() != Some(&at) {
            self.edits.push(at);
        }
        self.is_reported = false;
        self.hunks.extend(edit.diff().into_iter().flat_map(|diff| diff.hunks));
        if self.basis == Basis::NotRecorded {
            self.basis = Basis::ChangedOutside;
        }
        if self.basis == Basis::Net
            && let Err(basis) = self.apply(edit, text_read)
        {
            self.basis = basis;
        }
        self.deleted = matches!(edit.action, FileAction::Delete(_));
    }

    /// Notes that the agent reports a change of this file.
    pub fn report(&mut self, at: EditRef) {
        if self.edits.is_empty() {
            self.basis = Basis::NotRecorded;
            self.edits.push(at);
        } else if self.is_reported && self.basis == Basis::Net {
            self.basis = Basis::ChangedOutside;
        }
        self.is_reported = true;
    }

    /// True before the first edit was applied.
    fn is_fresh(&self) -> bool {
        self.edits.len() <= 1 && !self.created && self.lines.original.is_empty()
    }

    fn apply(&mut self, edit: &FileEdit, text_read: Option<&str>) -> Result<(), Basis> {
        let basis = |error| match error {
            ApplyError::Mismatch => Basis::ChangedOutside,
            ApplyError::NoPosition => Basis::NoPositions,
            ApplyError::TooManyPieces => Basis::TooMany,
        };
        if let Some(text) = text_read {
            // A reader may cut or decorate a text: what it shows proves nothing if it differs.
            let mut learned = self.lines.clone();
            if learned.learn(text).is_ok() {
                self.lines = learned;
            }
        }
        match &edit.action {
            FileAction::Create(text) if self.is_fresh() => {
                self.lines = FileLines::absent();
                self.created = true;
                self.lines.replace_all(text);
                Ok(())
            }
            FileAction::Create(text) | FileAction::Write(text) => {
                match self.lines.replace_all(text) {
                    true => Ok(()),
                    false => Err(Basis::BeforeUnknown),
                }
            }
            FileAction::Rewrite { before, after } => {
                self.lines.learn(before).map_err(basis)?;
                self.lines.replace_all(after);
                Ok(())
            }
            FileAction::Patch(diff) => self.lines.apply(diff).map_err(basis),
            FileAction::LoosePatch(_) => Err(Basis::NoPositions),
            FileAction::Replace(replacements) => {
                let text = self.lines.text().ok_or(Basis::NoPositions)?;
                let apply = |text: String, it: &Replacement| it.apply(&text);
                let text = replacements.iter().try_fold(text, apply);
                self.lines.replace_all(&text.ok_or(Basis::ChangedOutside)?);
                Ok(())
            }
            FileAction::Delete(text) => {
                if let Some(text) = text {
                    self.lines.learn(text).map_err(basis)?;
                }
                let known = self.lines.text().is_some() || self.lines.has_whole_original();
                self.lines.clear();
                if known { Ok(()) } else { Err(Basis::BeforeUnknown) }
            }
        }
    }

    /// None for a file that was created and deleted again.
    pub fn finish(
        self,
        path: String,
        name: String,
        moved_from: Option<String>,
    ) -> Option<FileChange> {
        if self.created && self.deleted {
            return None;
        }
        let diff = match self.basis {
            Basis::Net => net::net_diff(Some(&name), &self.lines),
            Basis::BeforeUnknown => {
                let text = self.lines.text().unwrap_or_default();
                diff::between(Some(&name), "", &text, Some(1))
            }
            Basis::NoPositions | Basis::ChangedOutside | Basis::TooMany | Basis::NotRecorded => {
                diff::file_diff(Some(&name), self.hunks)
            }
        };
        let (added, removed) = diff.counts();
        let status = if self.deleted {
            FileStatus::Deleted
        } else if self.created {
            FileStatus::New
        } else if moved_from.as_ref().is_some_and(|from| *from != name) {
            FileStatus::Moved
        } else if self.basis == Basis::Net && added + removed == 0 {
            FileStatus::Unchanged
        } else {
            FileStatus::Modified
        };
        let edits = self.edits;
        let basis = self.basis;
        Some(FileChange { path, name, status, moved_from, basis, added, removed, diff, edits })
    }
}
