//! File tools: read, write and edit.

use serde::Deserialize;
use serde_json::Value;

use super::call::{CardContent, ParsedCall};
use crate::block::{Block, Code, Diff, Span, Tone};
use crate::present::{diff, format};

/// Read: a range of lines of a file.
pub fn read(call: &ParsedCall) -> CardContent {
    let (code, offset) = read_range(call);
    let code = code.filter(|code| !code.text.is_empty());
    let mut summary = call.path_summary();
    if let Some(code) = &code {
        let lines = code.text.split('\n').count();
        let is_part = offset.is_some_and(|from| from > 1) || call.number(&["limit"]).is_some();
        let text = match code.first_line.filter(|_| is_part) {
            Some(first) => format!("  lines {first}–{}", first.saturating_add(lines as u64 - 1)),
            None => format!("  {}", format::count(lines, "line")),
        };
        summary.push(Span::plain(text).dim());
    }
    CardContent::new(call.name(), summary).with(code.map(Block::Code).into_iter().collect())
}

/// The text that was read and its first line number, if recorded.
fn read_range(call: &ParsedCall) -> (Option<Code>, Option<u64>) {
    let language = call.path().and_then(format::language);
    // Claude Code stores the file in the result; OpenCode 1.18 stores what its screen displays.
    let file = call.result.get("file");
    let shown = call
        .result
        .get("display")
        .filter(|shown| shown.get("type").and_then(Value::as_str) == Some("file"));
    let kept = [(file, "content", "startLine"), (shown, "text", "lineStart")];
    let offset = || call.number(&["offset"]);
    for (holder, text, line) in kept {
        let Some(holder) = holder else { continue };
        let offset = holder.get(line).and_then(Value::as_u64).or_else(offset);
        if let Some(content) = holder.get(text).and_then(Value::as_str) {
            let text = content.strip_suffix('\n').unwrap_or(content).to_owned();
            let first_line = Some(offset.unwrap_or(1));
            return (Some(Code { language, text, first_line }), offset);
        }
    }
    // An image or document: `media` makes its block from the result.
    let Some(output) = call.output().filter(|_| file.is_none()) else { return (None, offset()) };
    let code = match strip_line_numbers(output, call.number(&["limit"]).is_none()) {
        Some((first_line, text)) => Code { language, text, first_line: Some(first_line) },
        None => Code { language, text: output.trim_end().to_owned(), first_line: None },
    };
    (Some(code), offset())
}

/// Strips the line numbers that agents add for the model: `1\t`, `     1→` in Claude Code before
/// 2.1, `1: ` in OpenCode. Returns `None` unless the lines are numbered consecutively. `is_whole`:
/// the file was read to its end.
fn strip_line_numbers(output: &str, is_whole: bool) -> Option<(u64, String)> {
    let (text, marks) = content_of(output);
    let mut first = None;
    let mut lines = Vec::new();
    for (at, line) in text.trim_end_matches('\n').lines().enumerate() {
        let digits = line.trim_start_matches(' ');
        let end = digits.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = digits[..end].parse().ok()?;
        let rest = &digits[end..];
        lines.push(marks.iter().find_map(|mark| rest.strip_prefix(mark))?);
        let first = *first.get_or_insert(number);
        if number != first + at as u64 {
            return None;
        }
    }
    // Claude Code also numbers the empty line after the final newline.
    if is_whole && lines.len() > 1 {
        lines.pop_if(|last| last.is_empty());
    }
    Some((first?, lines.join("\n")))
}

/// The numbered lines of an output without the agent's notes to the model, and the possible
/// separators after the numbers.
fn content_of(output: &str) -> (&str, &'static [&'static str]) {
    // OpenCode wraps the content with the path and a note on the file's length.
    let wrapped = output.strip_prefix("<path>").and_then(|text| text.split_once("</path>\n"));
    let Some((_, text)) = wrapped.and_then(|(_, text)| text.split_once("<content>\n")) else {
        return (output, &["\t", "→"]);
    };
    let text = text.trim_end();
    let text = text.strip_suffix("</content>").unwrap_or(text).trim_end_matches('\n');
    let body = text.rsplit_once("\n\n(").filter(|(_, note)| !note.contains('\n'));
    (body.map_or(text, |(text, _)| text), &[": "])
}

/// Edit and MultiEdit: the diff.
pub fn edit(call: &ParsedCall) -> CardContent {
    let diffs = recorded_patch(call).unwrap_or_else(|| requested_edits(call));
    diff_content(call, diffs)
}

/// Write: a new file, or the diff of an existing one.
pub fn write(call: &ParsedCall) -> CardContent {
    if let Some(diffs) = recorded_patch(call) {
        return diff_content(call, diffs);
    }
    let content = call.text(&["content", "file_text", "contents", "text"]).unwrap_or_default();
    let mut summary = call.path_summary();
    let lines = format::count(content.lines().count(), "line");
    summary.push(Span::plain(format!("  {lines}")).dim());
    let code = Code {
        language: call.path().and_then(format::language),
        text: content.strip_suffix('\n').unwrap_or(content).to_owned(),
        first_line: Some(1),
    };
    let body = if content.is_empty() { Vec::new() } else { vec![Block::Code(code)] };
    CardContent::new(call.name(), summary).with(body)
}

/// A patch to one or more files.
pub fn patch(call: &ParsedCall) -> CardContent {
    let text = call.input.as_str().or_else(|| call.text(&["patch", "input", "patchText", "diff"]));
    let diffs = recorded_patch(call).unwrap_or_else(|| text.map(diff::patch).unwrap_or_default());
    if diffs.is_empty() {
        return super::generic::unknown(call);
    }
    diff_content(call, diffs)
}

fn diff_content(call: &ParsedCall, diffs: Vec<Diff>) -> CardContent {
    let (added, removed) =
        diffs.iter().map(Diff::counts).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let mut summary = call.path_summary();
    if summary.is_empty() {
        let mut paths: Vec<&str> = diffs.iter().filter_map(|diff| diff.path.as_deref()).collect();
        paths.dedup();
        summary.push(Span::plain(super::line(&paths.join(", "))).path());
    }
    if added > 0 {
        summary.push(Span::plain(format!("  +{added}")).toned(Tone::Added));
    }
    if removed > 0 {
        summary.push(Span::plain(format!("  −{removed}")).toned(Tone::Removed));
    }
    CardContent::new(call.name(), summary).with(diffs.into_iter().map(Block::Diff).collect())
}

/// The patch that the agent stored with the result: it has the real line numbers.
fn recorded_patch(call: &ParsedCall) -> Option<Vec<Diff>> {
    if let Some(hunks) = call.result.get("structuredPatch") {
        let hunks = Vec::<diff::PatchHunk>::deserialize(hunks).ok()?;
        return (!hunks.is_empty()).then(|| vec![diff::from_structured_patch(call.path(), &hunks)]);
    }
    if let Some(changes) = call.result.get("changes") {
        return Some(codex_changes(changes)).filter(|diffs| !diffs.is_empty());
    }
    // OpenCode: metadata. Copilot: detailed content. Gemini: `fileDiff`.
    let places =
        ["/diff", "/metadata/diff", "/fileDiff", "/resultDisplay/fileDiff", "/detailedContent"];
    let text = places.iter().find_map(|place| call.result.pointer(place)?.as_str())?;
    let mut diffs = diff::patch(text);
    for diff in &mut diffs {
        if diff.path.is_none() {
            diff.path = call.path().map(Into::into);
        }
    }
    (!diffs.is_empty()).then_some(diffs)
}

/// Codex's changes: an object keyed by path in rollouts, a list in the protocol.
fn codex_changes(changes: &Value) -> Vec<Diff> {
    let listed = changes.as_array().into_iter().flatten();
    let listed = listed.filter_map(|change| Some((change.get("path")?.as_str()?, change)));
    let named = changes.as_object().into_iter().flatten();
    let named = named.map(|(path, change)| (path.as_str(), change));
    let one = |(path, change): (&str, &Value)| {
        let text = |keys: [&str; 2]| keys.iter().find_map(|key| change.get(key)?.as_str());
        let kind = change.pointer("/kind/type").or_else(|| change.get("type"));
        let kind = kind.and_then(Value::as_str).unwrap_or_default();
        if let Some(content) = change.get("content").and_then(Value::as_str) {
            return match kind {
                "delete" => diff::between(Some(path), content, "", None),
                _ => diff::between(Some(path), "", content, None),
            };
        }
        let body = text(["unified_diff", "diff"]).unwrap_or_default();
        match kind {
            "add" => diff::between(Some(path), "", body, None),
            "delete" => diff::between(Some(path), body, "", None),
            _ => {
                let mut found = diff::patch(&format!("--- {path}\n+++ {path}\n{body}"));
                let mut diff = if found.is_empty() {
                    diff::between(Some(path), "", "", None)
                } else {
                    found.swap_remove(0)
                };
                diff.path = Some(path.into());
                diff
            }
        }
    };
    listed.chain(named).map(one).collect()
}

/// The edits requested in the input, if the result has no patch.
fn requested_edits(call: &ParsedCall) -> Vec<Diff> {
    let one = |edit: &Value| {
        let text = |keys: [&str; 3]| keys.iter().find_map(|key| edit.get(key)?.as_str());
        let old = text(["old_string", "oldString", "old_str"]).unwrap_or_default();
        let new = text(["new_string", "newString", "new_str"])
            .or_else(|| edit.get("new_source")?.as_str())
            .unwrap_or_default();
        diff::between(call.path(), old, new, None)
    };
    match call.input.get("edits").and_then(Value::as_array) {
        Some(edits) => edits.iter().map(one).collect(),
        None => vec![one(&call.input)],
    }
}
