//! What agents store about an edit with its result, one function per format.

use serde::Deserialize;
use serde_json::Value;
use unspool_model::part::{Tool, ToolState};

use super::{FileAction, FileEdit, Replacement, copilot, opencode, requested};
use crate::block::Diff;
use crate::present::diff;
use crate::present::tools::call::ParsedCall;

/// None if the result says nothing about files.
pub fn edits(call: &ParsedCall) -> Option<Vec<FileEdit>> {
    if let Some(hunks) = call.result.get("structuredPatch") {
        return claude(call, hunks).map(|edit| vec![edit]);
    }
    if let Some(changes) = call.result.get("changes") {
        return Some(codex(changes)).filter(|edits| !edits.is_empty());
    }
    if let Some(shown) = ["/resultDisplay", "/returnDisplay", ""]
        .iter()
        .find_map(|place| call.result.pointer(place).filter(|it| it.get("fileDiff").is_some()))
    {
        return gemini(call, shown).map(|edit| vec![edit]);
    }
    if let Some(text) = call.result.get("detailedContent").and_then(Value::as_str) {
        return Some(copilot::edits(call, text)).filter(|edits| !edits.is_empty());
    }
    opencode::edits(call)
}

/// Claude Code: `structuredPatch`, `originalFile`, and `type` for written files. The patch has two
/// spaces for each tab, so the texts are used where they are recorded.
fn claude(call: &ParsedCall, hunks: &Value) -> Option<FileEdit> {
    let hunks = Vec::<diff::PatchHunk>::deserialize(hunks).ok()?;
    let text = |key: &str| call.result.get(key).and_then(Value::as_str);
    let is_new = text("type") == Some("create");
    if let Some(content) = text("content").filter(|_| is_new) {
        return Some(FileEdit::new(call.path(), FileAction::Create(content.to_owned())));
    }
    let patch = diff::from_structured_patch(call.path(), &hunks);
    let before = text("originalFile");
    let after = before.and_then(|before| match text("content") {
        Some(content) => Some(content.to_owned()),
        None => replaced(call, before),
    });
    // The user can change a proposed edit; then the input is not what was written.
    let by_user = call.result.get("userModified").and_then(Value::as_bool) == Some(true);
    match (before, after.filter(|_| !by_user)) {
        (Some(before), Some(after)) => {
            let action = FileAction::Rewrite { before: before.to_owned(), after };
            Some(FileEdit::new(call.path(), action).recorded(patch))
        }
        (Some(_) | None, Some(_) | None) if hunks.is_empty() => None,
        (Some(_) | None, Some(_) | None) => {
            Some(FileEdit::new(call.path(), FileAction::Patch(patch)))
        }
    }
}

/// The text after the replacements of a call. The result has those that were made, which may differ
/// from the requested ones in quotes and white space.
fn replaced(call: &ParsedCall, before: &str) -> Option<String> {
    let text = |key: &str| call.result.get(key).and_then(Value::as_str);
    let all = call.result.get("replaceAll").and_then(Value::as_bool).unwrap_or(false);
    let made = match (text("oldString"), text("newString")) {
        (Some(old), Some(new)) => {
            vec![Replacement { old: old.to_owned(), new: new.to_owned(), all }]
        }
        (Some(_) | None, Some(_) | None) => requested(call),
    };
    made.iter().try_fold(before.to_owned(), |text, replacement| replacement.apply(&text))
}

/// The files that a command changed, and whether all are listed.
pub fn by_command(call: &ParsedCall) -> Option<(Vec<FileEdit>, bool)> {
    claude_command(call).or_else(|| codex_command(call))
}

/// Whether the result of a command may have such a list. Cheap: it is not parsed.
pub fn may_list_changes(tool: &Tool) -> bool {
    let has = |name| tool.result.as_ref().is_some_and(|result| result.text().contains(name));
    match tool.state {
        ToolState::Completed => has("\"bashEditDiff\"") || has("\"changes\""),
        // A failed command may have changed files before it failed.
        ToolState::Failed => has("\"bashEditDiff\""),
        ToolState::Denied | ToolState::Interrupted | ToolState::Pending | ToolState::Running => {
            false
        }
    }
}

/// Codex runs a command that only calls `apply_patch` as a patch. It lists the changes also if it
/// could not make them.
fn codex_command(call: &ParsedCall) -> Option<(Vec<FileEdit>, bool)> {
    let found = call.result.get("changes")?;
    // The result of another agent's command may have any `changes`.
    let mut files = found.as_object()?.values();
    if !files.all(|change| change.get("type").is_some_and(Value::is_string)) {
        return None;
    }
    let made = match call.result.get("status").and_then(Value::as_str) {
        Some(status) => status == "completed",
        None => call.result.get("success").and_then(Value::as_bool) == Some(true),
    };
    let made = made && call.tool.state == ToolState::Completed;
    let edits = if made { codex(found) } else { Vec::new() };
    (!edits.is_empty()).then_some((edits, true))
}

/// Claude Code's `bashEditDiff`.
fn claude_command(call: &ParsedCall) -> Option<(Vec<FileEdit>, bool)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Changed {
        file_path: String,
        hunks: Vec<diff::PatchHunk>,
    }
    let found = call.result.get("bashEditDiff")?;
    let files = Vec::<Changed>::deserialize(found.get("files")?).ok()?;
    let more = found.get("moreFiles").and_then(Value::as_u64).unwrap_or(0);
    let one = |file: &Changed| {
        let path = Some(file.file_path.as_str());
        FileEdit::new(path, FileAction::Patch(diff::from_structured_patch(path, &file.hunks)))
    };
    Some((files.iter().map(one).collect(), more == 0))
}

/// Codex's changes: an object keyed by path in rollouts, a list in the protocol.
fn codex(changes: &Value) -> Vec<FileEdit> {
    let listed = changes.as_array().into_iter().flatten();
    let listed = listed.filter_map(|change| Some((change.get("path")?.as_str()?, change)));
    let named = changes.as_object().into_iter().flatten();
    let named = named.map(|(path, change)| (path.as_str(), change));
    let one = |(path, change): (&str, &Value)| {
        let text = |keys: &[&str]| keys.iter().find_map(|key| change.pointer(key)?.as_str());
        let kind = text(&["/kind/type", "/type"]).unwrap_or_default();
        let body = text(&["/content", "/unified_diff", "/diff"]).unwrap_or_default();
        let moved_to = text(&["/move_path", "/kind/move_path"]);
        let action = match kind {
            "add" => FileAction::Create(body.to_owned()),
            "delete" => FileAction::Delete(Some(body.to_owned())),
            _ => {
                let found = diff::patch(&format!("--- {path}\n+++ {path}\n{body}"));
                let hunks = found.into_iter().flat_map(|diff: Diff| diff.hunks).collect();
                FileAction::Patch(diff::file_diff(Some(moved_to.unwrap_or(path)), hunks))
            }
        };
        FileEdit::new(Some(path), action).moved(moved_to)
    };
    listed.chain(named).map(one).collect()
}

/// Gemini CLI: the diff, and the complete texts before and after.
fn gemini(call: &ParsedCall, shown: &Value) -> Option<FileEdit> {
    let text = |key: &str| shown.get(key).and_then(Value::as_str);
    let path = text("filePath").or_else(|| call.path());
    let is_new = shown.get("isNewFile").and_then(Value::as_bool) == Some(true);
    if let Some(after) = text("newContent").filter(|_| is_new) {
        return Some(FileEdit::new(path, FileAction::Create(after.to_owned())));
    }
    let found = diff::patch(text("fileDiff")?);
    let hunks = found.into_iter().flat_map(|diff: Diff| diff.hunks).collect();
    let patch = diff::file_diff(call.path().or(path), hunks);
    Some(match (text("originalContent"), text("newContent")) {
        (Some(before), Some(after)) => {
            let (before, after) = (before.to_owned(), after.to_owned());
            FileEdit::new(path, FileAction::Rewrite { before, after }).recorded(patch)
        }
        (Some(_) | None, Some(_) | None) => FileEdit::new(path, FileAction::Patch(patch)),
    })
}
