//! What a call did to files, as far as its input and result say. Cards show it as diffs, and
//! `changes` computes the net change of a session from it.

mod copilot;
mod opencode;
mod recorded;

use serde_json::Value;
use unspool_model::part::{Tool, ToolState};
use unspool_model::tools::Family;

use super::call::ParsedCall;
use crate::block::Diff;
use crate::present::diff;

/// What one call did to one file.
pub struct FileEdit {
    pub path: Option<String>,
    /// The file has this name afterwards.
    pub moved_to: Option<String>,
    pub action: FileAction,
    /// The diff that the agent recorded, if the action has none.
    pub recorded: Option<Diff>,
}

pub enum FileAction {
    /// The file did not exist before. It has this text.
    Create(String),
    /// The file has this text. The agent did not record the text before, nor whether there was one.
    Write(String),
    /// The agent recorded the complete texts before and after.
    Rewrite { before: String, after: String },
    /// The result has a diff with line numbers.
    Patch(Diff),
    /// A diff whose line numbers or indentation are not recorded.
    LoosePatch(Diff),
    /// The input has texts and what replaces them.
    Replace(Vec<Replacement>),
    /// The text is that of the deleted file, if the agent recorded it.
    Delete(Option<String>),
}

pub struct Replacement {
    pub old: String,
    pub new: String,
    /// Every occurrence, not only the first.
    pub all: bool,
}

impl Replacement {
    /// None if the text does not contain what is to be replaced.
    pub fn apply(&self, text: &str) -> Option<String> {
        let count = if self.all { usize::MAX } else { 1 };
        text.contains(&self.old).then(|| text.replacen(&self.old, &self.new, count))
    }
}

impl FileEdit {
    fn new(path: Option<&str>, action: FileAction) -> FileEdit {
        FileEdit { path: path.map(Into::into), moved_to: None, action, recorded: None }
    }

    fn moved(self, to: Option<&str>) -> FileEdit {
        FileEdit { moved_to: to.map(Into::into), ..self }
    }

    fn recorded(self, diff: Diff) -> FileEdit {
        FileEdit { recorded: Some(diff), ..self }
    }

    /// The edit as a diff; None if the text that it replaced is not recorded.
    pub fn diff(&self) -> Option<Diff> {
        let path = self.moved_to.as_deref().or(self.path.as_deref());
        if self.recorded.is_some() {
            return self.recorded.clone();
        }
        match &self.action {
            FileAction::Create(text) => Some(diff::between(path, "", text, None)),
            FileAction::Write(_) | FileAction::Delete(None) => None,
            FileAction::Rewrite { before, after } => {
                Some(diff::between(path, before, after, Some(1)))
            }
            FileAction::Patch(diff) | FileAction::LoosePatch(diff) => Some(diff.clone()),
            FileAction::Replace(replacements) => {
                let one = |it: &Replacement| diff::between(path, &it.old, &it.new, None).hunks;
                Some(diff::file_diff(path, replacements.iter().flat_map(one).collect()))
            }
            FileAction::Delete(Some(text)) => Some(diff::between(path, text, "", None)),
        }
    }
}

/// The text that a call wrote.
pub fn written_text<'a>(call: &'a ParsedCall) -> Option<&'a str> {
    call.text(&["content", "file_text", "contents", "text"])
}

/// The edits of a call: those in its result, or else those in its input. Empty if the call does not
/// edit files.
pub fn of(call: &ParsedCall) -> Vec<FileEdit> {
    let Some(family) = Family::of(call.name()) else { return Vec::new() };
    if family == Family::RunShell {
        return recorded::by_command(call).map(|(edits, _)| edits).unwrap_or_default();
    }
    if !matches!(family, Family::EditFile | Family::WriteFile | Family::ApplyPatch) {
        return Vec::new();
    }
    if let Some(edits) = recorded::edits(call) {
        return edits;
    }
    if family == Family::WriteFile {
        let text = written_text(call).unwrap_or_default().to_owned();
        let action = match opencode::exists(call) {
            Some(false) => FileAction::Create(text),
            Some(true) | None => FileAction::Write(text),
        };
        return vec![FileEdit::new(call.path(), action)];
    }
    if family == Family::ApplyPatch {
        return requested_text(call).map(requested_patch).unwrap_or_default();
    }
    vec![FileEdit::new(call.path(), FileAction::Replace(requested(call)))]
}

/// True if a call ran and its log may say which files it changed. Cheap: a log has thousands of
/// commands, and few of them have their changes.
pub fn may_have_changed_files(tool: &Tool) -> bool {
    let Some(family) = Family::of(&tool.name) else { return false };
    if family == Family::RunShell {
        return recorded::may_list_changes(tool);
    }
    family.is_edit() && tool.state == ToolState::Completed
}

/// True if the result of a command lists all files that it changed.
pub fn lists_its_changes(call: &ParsedCall) -> bool {
    recorded::by_command(call).is_some_and(|(_, is_complete)| is_complete)
}

/// The patch in the input of a patch tool.
pub(crate) fn requested_text<'a>(call: &'a ParsedCall) -> Option<&'a str> {
    let keys = ["patch", "input", "patchText", "patch_text", "diff"];
    call.input.as_str().or_else(|| call.text(&keys))
}

/// The files of a patch in the input, which has no line numbers in Codex's format.
fn requested_patch(text: &str) -> Vec<FileEdit> {
    let one = |diff: Diff| {
        let numbered = diff.hunks.iter().flat_map(|hunk| &hunk.lines).any(|it| it.old.is_some());
        let path = diff.path.clone();
        let action = if numbered { FileAction::Patch(diff) } else { FileAction::LoosePatch(diff) };
        FileEdit::new(path.as_deref(), action)
    };
    diff::patch(text).into_iter().map(one).collect()
}

/// The replacements in the input.
fn requested(call: &ParsedCall) -> Vec<Replacement> {
    let one = |edit: &Value| {
        let text = |keys: [&str; 5]| keys.iter().find_map(|key| edit.get(key)?.as_str());
        let flag = |keys: [&str; 2]| keys.iter().find_map(|key| edit.get(key)?.as_bool());
        let old =
            text(["old_string", "oldString", "old_str", "oldText", "old_text"]).unwrap_or_default();
        let new = text(["new_string", "newString", "new_str", "newText", "new_text"])
            .or_else(|| edit.get("new_source")?.as_str())
            .unwrap_or_default();
        let all = flag(["replace_all", "replaceAll"]).unwrap_or(false);
        Replacement { old: old.to_owned(), new: new.to_owned(), all }
    };
    match call.input.get("edits").and_then(Value::as_array) {
        Some(edits) => edits.iter().map(one).collect(),
        None => vec![one(&call.input)],
    }
}
