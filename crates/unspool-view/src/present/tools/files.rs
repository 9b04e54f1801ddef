//! File tools: read, write and edit.

use serde_json::Value;

use super::call::{CardContent, ParsedCall};
use super::edits::{self, FileAction, FileEdit};
use crate::block::{Block, Code, Diff, Span};
use crate::present::format;

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

/// The path and the text of a call that read a whole file.
pub fn whole_read(call: &ParsedCall) -> Option<(String, String)> {
    let number = |key: &str| call.result.pointer(key).and_then(Value::as_u64);
    let is_cut = number("/file/numLines") != number("/file/totalLines")
        || call.number(&["limit", "end_line"]).is_some()
        || call.input.get("view_range").is_some();
    let (code, _) = read_range(call);
    let code = code.filter(|code| !is_cut && code.first_line == Some(1))?;
    // A reader does not say whether the last line has a newline; most files end with one.
    let end = if code.text.is_empty() { "" } else { "\n" };
    Some((call.path()?.to_owned(), code.text + end))
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
    diff_content(call, diffs(call))
}

/// Write: a new file, or the diff of an existing one.
pub fn write(call: &ParsedCall) -> CardContent {
    let edits = edits::of(call);
    let is_known =
        |edit: &FileEdit| matches!(edit.action, FileAction::Patch(_) | FileAction::Rewrite { .. });
    if edits.iter().any(is_known) {
        return diff_content(call, edits.iter().filter_map(FileEdit::diff).collect());
    }
    let content = edits::written_text(call).unwrap_or_default();
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
    let diffs = diffs(call);
    if diffs.is_empty() {
        return super::generic::unknown(call);
    }
    diff_content(call, diffs)
}

fn diffs(call: &ParsedCall) -> Vec<Diff> {
    edits::of(call).iter().filter_map(FileEdit::diff).collect()
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
    summary.extend(Diff::count_spans(added, removed));
    CardContent::new(call.name(), summary).with(diffs.into_iter().map(Block::Diff).collect())
}
