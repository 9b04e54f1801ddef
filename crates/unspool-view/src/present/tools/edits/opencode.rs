//! OpenCode's metadata: a diff with line numbers from which the indentation that all lines share
//! was removed. The input has the changed lines as they are, so it tells what was removed.

use serde_json::Value;

use super::{FileAction, FileEdit, requested, requested_text};
use crate::block::{Diff, DiffKind, Hunk};
use crate::present::diff;
use crate::present::tools::call::ParsedCall;

/// Whether a written file existed before.
pub fn exists(call: &ParsedCall) -> Option<bool> {
    ["/exists", "/metadata/exists"].iter().find_map(|place| call.result.pointer(place)?.as_bool())
}

pub fn edits(call: &ParsedCall) -> Option<Vec<FileEdit>> {
    let at =
        |place: &str| call.result.get(place).or_else(|| call.result.get("metadata")?.get(place));
    if let Some(files) = at("files").and_then(Value::as_array) {
        let edits: Option<Vec<FileEdit>> = files.iter().map(|file| patched(call, file)).collect();
        return edits.filter(|edits| !edits.is_empty());
    }
    let mut diffs = diff::patch(at("diff")?.as_str()?);
    let single = diffs.len() == 1;
    for diff in &mut diffs {
        if let Some(path) = call.path().filter(|_| single || diff.path.is_none()) {
            diff.path = Some(path.to_owned());
        }
    }
    let one = |mut diff: Diff| {
        let path = diff.path.clone();
        let replacements = requested(call);
        let texts = replacements.iter().flat_map(|it| [it.old.as_str(), it.new.as_str()]);
        let lines: Vec<&str> = texts.flat_map(str::lines).collect();
        match restore_indentation(&mut diff.hunks, &lines) {
            true => FileEdit::new(path.as_deref(), FileAction::Patch(diff)),
            false => {
                FileEdit::new(path.as_deref(), FileAction::Replace(replacements)).recorded(diff)
            }
        }
    };
    let edits: Vec<FileEdit> = diffs.into_iter().map(one).collect();
    (!edits.is_empty()).then_some(edits)
}

/// One file of the patch tool.
fn patched(call: &ParsedCall, file: &Value) -> Option<FileEdit> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| file.get(key)?.as_str());
    let path = text(&["filePath", "file", "path"])?;
    let moved_to = text(&["movePath"]).filter(|to| *to != path);
    let mut hunks: Vec<Hunk> =
        diff::patch(text(&["patch", "diff"])?).into_iter().flat_map(|diff| diff.hunks).collect();
    // The lines of the requested patch, without their marks.
    let lines: Vec<&str> = requested_text(call)
        .into_iter()
        .flat_map(str::lines)
        .filter_map(|it| it.get(1..))
        .collect();
    let is_whole = restore_indentation(&mut hunks, &lines);
    let only = |kind| {
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind);
        lines.fold(String::new(), |text, line| {
            text + &line.text() + if line.no_newline { "" } else { "\n" }
        })
    };
    let action = match text(&["type"]).unwrap_or_default() {
        "add" => FileAction::Create(only(DiffKind::Added)),
        // The input does not have the lines of a deleted file. In a whole file some line starts at
        // the margin, and then nothing was removed.
        "delete" => FileAction::Delete(Some(only(DiffKind::Removed))),
        _ => {
            let diff = diff::file_diff(Some(moved_to.unwrap_or(path)), hunks);
            if is_whole { FileAction::Patch(diff) } else { FileAction::LoosePatch(diff) }
        }
    };
    Some(FileEdit::new(Some(path), action).moved(moved_to))
}

/// Puts the removed indentation back, which is the only one that all changed lines allow. `lines`
/// are the lines of the input. Returns false if they do not tell.
fn restore_indentation(hunks: &mut [Hunk], lines: &[&str]) -> bool {
    let all = || hunks.iter().flat_map(|hunk| &hunk.lines);
    let is_blank = |text: &str| text.trim().is_empty();
    let mut possible: Option<Vec<&str>> = None;
    let mut by_end: rustc_hash::FxHashMap<&str, Vec<&str>> = rustc_hash::FxHashMap::default();
    for line in lines {
        let bare = line.trim_start();
        let prefixes = by_end.entry(bare).or_default();
        let prefix = &line[..line.len() - bare.len()];
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    for line in all().filter(|line| line.kind != DiffKind::Context) {
        let text = line.text();
        let bare = text.trim_start();
        let Some(prefixes) = by_end.get(bare).filter(|_| !is_blank(bare)) else { continue };
        let own = &text[..text.len() - bare.len()];
        let removed: Vec<&str> =
            prefixes.iter().filter_map(|prefix| prefix.strip_suffix(own)).collect();
        possible = Some(match possible {
            None => removed,
            Some(others) => others.into_iter().filter(|it| removed.contains(it)).collect(),
        });
    }
    let removed = match possible.as_deref() {
        Some([removed]) => (*removed).to_owned(),
        Some(_) | None => return false,
    };
    for line in hunks.iter_mut().flat_map(|hunk| &mut hunk.lines) {
        if let Some(first) = line.spans.first_mut().filter(|first| !first.text.is_empty()) {
            first.text.insert_str(0, &removed);
        }
    }
    true
}
