//! Changes as JSON, for `--json` and REST: diffs are texts in the unified format.

use serde::Serialize;
use unspool_model::id::{PartId, SessionId};

use super::{Basis, Changes, EditRef, FileStatus, unified};

#[derive(Serialize)]
pub struct ChangesDocument<'a> {
    files: Vec<FileDocument<'a>>,
    failed_edits: u64,
    commands: u64,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct FileDocument<'a> {
    path: &'a str,
    name: &'a str,
    status: FileStatus,
    moved_from: Option<&'a str>,
    basis: Basis,
    note: Option<&'static str>,
    added: usize,
    removed: usize,
    diff: String,
    edits: Vec<EditDocument>,
}

#[derive(Serialize)]
struct EditDocument {
    session: SessionId,
    turn: u32,
    part: PartId,
}

impl EditDocument {
    fn of(edit: &EditRef) -> EditDocument {
        EditDocument { session: edit.session, turn: edit.turn, part: edit.part }
    }
}

impl Changes {
    pub fn document(&self) -> ChangesDocument<'_> {
        let files = self.files.iter().map(|file| FileDocument {
            path: &file.path,
            name: &file.name,
            status: file.status,
            moved_from: file.moved_from.as_deref(),
            basis: file.basis,
            note: file.basis.note(),
            added: file.added,
            removed: file.removed,
            diff: unified::hunks(&file.diff),
            edits: file.edits.iter().map(EditDocument::of).collect(),
        });
        ChangesDocument {
            files: files.collect(),
            failed_edits: self.failed_edits,
            commands: self.commands,
            notes: self.notes(),
        }
    }
}
