//! The line that names an error, and what of it is the same when it happens again.

use std::fmt::Write;

use unspool_model::part::Tool;
use unspool_model::tools::Family;

use super::MAX_LINE_CHARS;
use crate::present::format;

/// The first line of an error, without the `<tool_use_error>` tags and without what Codex puts before
/// an output. An `Exit code N` line is joined with the line after it.
pub fn error_line(output: &str) -> Option<String> {
    let bare = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("<tool_use_error>").unwrap_or(line);
        first_line(line.strip_suffix("</tool_use_error>").unwrap_or(line))
    };
    let mut lines =
        output.lines().map(bare).filter(|line| !line.is_empty() && !is_process_line(line));
    let first = lines.next()?;
    if first.starts_with("Exit code ") || first.starts_with("Exit code: ") {
        return Some(lines.next().map_or(first.clone(), |next| format!("{first}: {next}")));
    }
    Some(first)
}

/// What Codex says about the process of a command.
fn is_process_line(line: &str) -> bool {
    let starts = ["Chunk ID: ", "Wall time: ", "Original token count: ", "Total output lines: "];
    line == "Output:" || starts.iter().any(|start| line.starts_with(start))
}

/// One line of limited length.
pub(super) fn first_line(text: &str) -> String {
    format::first_line(text, MAX_LINE_CHARS)
}

/// An error line without what differs each time: paths, numbers and ids.
pub(super) fn normalise(line: &str) -> String {
    let mut out = String::new();
    for word in line.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        let is_path = word.len() > 1 && word.contains(['/', '\\']);
        let core = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_id = core.len() >= 7
            && core.chars().any(|c| c.is_ascii_digit())
            && core.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        if is_path {
            out.push('…');
        } else if is_id {
            out.push('#');
        } else {
            push_without_numbers(&mut out, word);
        }
    }
    out
}

fn push_without_numbers(out: &mut String, word: &str) {
    let mut in_number = false;
    for c in word.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !in_number {
            out.push('#');
        }
        in_number = c.is_ascii_digit();
    }
}

/// How agents say that the text of an edit is not in the file. No agent marks it in another way.
const MISSED: &[&str] = &[
    // Claude Code, Droid.
    "string to replace not found",
    "string not found in file",
    // OpenCode, Kilo.
    "oldstring not found",
    "could not find oldstring",
    // Gemini CLI, Qwen Code.
    "could not find the string to replace",
    "0 occurrences found",
    // Codex, Cline: patches.
    "failed to find expected lines",
    "failed to find context",
    "context not found",
    // Copilot.
    "no match found",
    "old_str not found",
    // Pi.
    "could not find the exact text",
    "search block",
    "did not appear verbatim",
    "text not found",
];

/// True if an edit failed because the text that it was to replace is not in the file.
pub(super) fn is_missed_edit(tool: &Tool, family: Option<Family>) -> bool {
    let edits = matches!(family, Some(Family::EditFile | Family::ApplyPatch));
    let output = tool.output.as_deref().unwrap_or_default();
    // The rest of the output is the text itself.
    let head: String = output.chars().take(2 * MAX_LINE_CHARS).collect::<String>().to_lowercase();
    edits && MISSED.iter().any(|words| head.contains(words))
}

/// For signatures: fields, joined.
pub(super) fn signature<'a>(fields: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for field in fields {
        let separator = if out.is_empty() { "" } else { ": " };
        let _ = write!(out, "{separator}{field}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_line_names_the_error() {
        let line = |output: &str| error_line(output).unwrap_or_default();
        assert_eq!(
            line("<tool_use_error>File does not exist.</tool_use_error>"),
            "File does not exist."
        );
        assert_eq!(
            line("Exit code 1\n\nls: cannot access 'x'"),
            "Exit code 1: ls: cannot access 'x'"
        );
        assert_eq!(line("Exit code 1"), "Exit code 1");
        let codex = "Chunk ID: 3f\nWall time: 0.1 seconds\nOutput:\nbash: nope: command not found";
        assert_eq!(line(codex), "bash: nope: command not found");
        assert_eq!(line(" \n"), "");
    }

    #[test]
    fn what_differs_each_time_is_no_part_of_a_failure() {
        assert_eq!(normalise("File does not exist: /a/b.rs"), "File does not exist: …");
        assert_eq!(normalise("line 12:7 of 300"), "line #:# of #");
        assert_eq!(normalise("request 3f2a9c1b-77 failed"), "request # failed");
        assert_eq!(normalise("decade facade"), "decade facade", "words of hexadecimal letters");
    }
}
