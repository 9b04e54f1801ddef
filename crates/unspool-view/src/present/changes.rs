//! What a session changed: the net diff of each file, computed from the edits in its log. A shell
//! command can change files too, and a log does not say which, so the result says what it cannot
//! know.

mod blocks;
mod document;
mod file_lines;
mod file_state;
mod net;
mod standing;
mod unified;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use unspool_model::id::{PartId, SessionId};
use unspool_model::part::{Body, Part, Place, Tool, ToolState};
use unspool_model::tools::Family;

use self::file_state::FileState;
pub use self::standing::{
    FileStanding, HeadLine, LineStanding, LineState, Standing, StandingCommit,
};
pub use self::unified::hunks as unified_hunks;
use super::format;
use super::tools::edits::{self, FileEdit};
use super::tools::{ParsedCall, whole_read};
use crate::block::{Diff, DiffKind};

/// The files that a session or a turn changed, in the order of their first edits.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Changes {
    pub files: Vec<FileChange>,
    /// Edits that failed, were denied or were interrupted. They are not in `files`.
    pub failed_edits: u64,
    /// Shell commands that ran. What they changed is not in the log.
    pub commands: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FileChange {
    /// As the log has it, absolute if the project folder is known.
    pub path: String,
    /// Relative to the project folder if it is inside.
    pub name: String,
    pub status: FileStatus,
    /// The name before the file was moved.
    pub moved_from: Option<String>,
    pub basis: Basis,
    pub added: usize,
    pub removed: usize,
    pub diff: Diff,
    pub edits: Vec<EditRef>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileStatus {
    New,
    Modified,
    Deleted,
    Moved,
    /// Edits that cancel each other out.
    Unchanged,
}

/// What the diff of a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The difference between the file before the first edit and after the last one.
    Net,
    /// The edits one after another: their positions are not in the log.
    NoPositions,
    /// The edits one after another: something else changed the file too.
    ChangedOutside,
    /// The edits one after another: there are too many to combine.
    TooMany,
    /// The new text. The text before is not in the log.
    BeforeUnknown,
    /// The agent reported the change, but not what it was.
    NotRecorded,
}

impl Basis {
    /// One sentence for the reader, if the diff is not the net change.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Basis::Net => None,
            Basis::NoPositions => {
                Some("The log has no line numbers for these edits. They follow one after another.")
            }
            Basis::ChangedOutside => {
                Some("Something else changed this file too. The edits follow one after another.")
            }
            Basis::TooMany => Some("Too many edits to combine. They follow one after another."),
            Basis::BeforeUnknown => Some("The log does not have the text that was there before."),
            Basis::NotRecorded => {
                Some("The agent reports that this file changed. The log does not say how.")
            }
        }
    }
}

impl FileChange {
    /// Why a patch for `git apply` cannot have this file; None if it can.
    pub fn left_out_of_patch(&self) -> Option<&'static str> {
        let is_outside = |name: &str| name.starts_with('/') || name.starts_with("../");
        let names = std::iter::once(self.name.as_str()).chain(self.moved_from.as_deref());
        match self.basis.note() {
            None if names.into_iter().any(is_outside) => Some("It is outside of the project."),
            note => note,
        }
    }

    /// The number of the first line that was added, or 1.
    pub fn first_changed_line(&self) -> u64 {
        let lines = self.diff.hunks.iter().flat_map(|hunk| &hunk.lines);
        let mut added = lines.filter(|line| line.kind == DiffKind::Added);
        added.find_map(|line| line.new).unwrap_or(1)
    }
}

/// The part that made an edit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EditRef {
    pub session: SessionId,
    pub turn: u32,
    pub place: Place,
    pub part: PartId,
}

impl Changes {
    /// What the reader must know about the whole, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let failed = usize::try_from(self.failed_edits).unwrap_or(usize::MAX);
        let commands = usize::try_from(self.commands).unwrap_or(usize::MAX);
        let mut notes = Vec::new();
        if failed > 0 {
            let are = if failed == 1 { "is" } else { "are" };
            notes.push(format!("{} failed and {are} not included.", format::count(failed, "edit")));
        }
        if commands > 0 {
            let ran = format::count(commands, "shell command");
            notes.push(format!("{ran} ran. The log does not say which files they changed."));
        }
        notes
    }

    /// Added and removed lines of all files.
    pub fn counts(&self) -> (usize, usize) {
        self.files.iter().fold((0, 0), |sum, file| (sum.0 + file.added, sum.1 + file.removed))
    }

    /// A patch of all net changes for `git apply`.
    pub fn patch(&self) -> String {
        self.files.iter().map(unified::file).collect()
    }
}

/// Collects the edits of a session in order.
pub struct ChangesBuilder {
    project: Option<String>,
    /// The files with edits, by absolute path.
    files: FxHashMap<String, FileState>,
    /// What reads showed of files without edits.
    texts_read: FxHashMap<String, String>,
    first_seen: u64,
    failed_edits: u64,
    commands: u64,
}

impl ChangesBuilder {
    pub fn new(project: Option<&str>) -> ChangesBuilder {
        ChangesBuilder {
            project: project.map(|path| path.trim_end_matches('/').to_owned()),
            files: FxHashMap::default(),
            texts_read: FxHashMap::default(),
            first_seen: 0,
            failed_edits: 0,
            commands: 0,
        }
    }

    /// The parts that matter here, by kind of tool.
    pub fn wants(family: Family) -> bool {
        matches!(
            family,
            Family::EditFile
                | Family::WriteFile
                | Family::ApplyPatch
                | Family::RunShell
                | Family::ReadFile
        )
    }

    pub fn add(&mut self, part: &Part, at: EditRef) {
        if let Body::Tool(tool) = &part.body {
            self.add_call(tool, at);
        }
        // A reported change without a diff (OpenCode compares the folder after each step).
        if let Body::Patch(patch) = &part.body
            && patch.diff.is_empty()
            && let Some(path) = &patch.path
        {
            self.reported(path, at);
        }
    }

    fn add_call(&mut self, tool: &Tool, at: EditRef) {
        let Some(family) = Family::of(&tool.name).filter(|family| Self::wants(*family)) else {
            return;
        };
        let ran = match tool.state {
            ToolState::Completed => true,
            ToolState::Failed | ToolState::Denied | ToolState::Interrupted => false,
            ToolState::Pending | ToolState::Running => return,
        };
        if family == Family::RunShell {
            // A failed command may have changed files before it failed.
            if !(ran || tool.state == ToolState::Failed) {
                return;
            }
            let call = ParsedCall::new(tool);
            self.commands += u64::from(!edits::lists_its_changes(&call));
            edits::of(&call).iter().for_each(|edit| self.add_edit(edit, at));
        } else if !ran {
            self.failed_edits += u64::from(family != Family::ReadFile);
        } else if family != Family::ReadFile {
            for edit in edits::of(&ParsedCall::new(tool)) {
                self.add_edit(&edit, at);
            }
        } else if let Some((path, text)) = whole_read(&ParsedCall::new(tool)) {
            let path = self.absolute(&path);
            self.texts_read.insert(path, text);
        }
    }

    fn absolute(&self, path: &str) -> String {
        let path = path.strip_prefix("./").unwrap_or(path);
        match &self.project {
            Some(project) if !path.starts_with('/') && !path.contains(":\\") => {
                format!("{project}/{path}")
            }
            Some(_) | None => path.to_owned(),
        }
    }

    fn state(&mut self, path: &str) -> &mut FileState {
        self.first_seen += 1;
        let order = self.first_seen;
        self.files.entry(path.to_owned()).or_insert_with(|| FileState::new(order))
    }

    fn add_edit(&mut self, edit: &FileEdit, at: EditRef) {
        let Some(path) = edit.path.as_deref() else { return };
        let path = self.absolute(path);
        // Once an edit has used a text, later edits build on it.
        let text_read = self.texts_read.remove(&path);
        self.state(&path).add(edit, at, text_read.as_deref());
        if let Some(to) = edit.moved_to.as_deref().map(|to| self.absolute(to))
            && let Some(mut state) = self.files.remove(&path)
        {
            state.moved_from.get_or_insert(path);
            self.files.insert(to, state);
        }
    }

    /// Notes that the agent reports a change of this file.
    fn reported(&mut self, path: &str, at: EditRef) {
        let path = self.absolute(path);
        self.state(&path).report(at);
    }

    pub fn finish(self) -> Changes {
        let project = self.project.clone().map(|project| format!("{project}/"));
        let name = |path: &str| {
            let inside = project.as_deref().and_then(|project| path.strip_prefix(project));
            inside.unwrap_or(path).to_owned()
        };
        let mut states: Vec<(String, FileState)> = self.files.into_iter().collect();
        states.sort_by_key(|(_, state)| state.order);
        let files = states.into_iter().filter_map(|(path, state)| {
            let (name, from) = (name(&path), state.moved_from.as_deref().map(&name));
            state.finish(path, name, from)
        });
        let files = files.collect();
        Changes { files, failed_edits: self.failed_edits, commands: self.commands }
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
