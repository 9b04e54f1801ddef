//! The line that names an error, and what of it is the same when it happens again.

use std::fmt::Write;

use unspool_model::part::Tool;
use unspool_model::tools::Family;

use super::MAX_LINE_CHARS;
use crate::present::format;
use crate::present::tools::envelope;

/// The first line of an error, without the `<tool_use_error>` tags. An `Exit code N` line is joined
/// with the line after it.
pub fn error_line(output: &str) -> Option<String> {
    let bare = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("<tool_use_error>").unwrap_or(line);
        first_line(line.strip_suffix("</tool_use_error>").unwrap_or(line))
    };
    let mut lines = output.lines().map(bare).filter(|line| !line.is_empty());
    let first = lines.next()?;
    if first.starts_with("Exit code ") {
        return Some(lines.next().map_or(first.clone(), |next| format!("{first}: {next}")));
    }
    Some(first)
}

/// The line of an output that names the error: after what the agent says about the process, without
/// lines that separate, and of a Python traceback the last line.
pub(super) fn naming_line(output: &str) -> Option<String> {
    let output = envelope::open(output).text;
    let mut exit = None;
    let mut lines = output.lines().map(str::trim).filter(|line| {
        if let Some(found) = exit_line(line) {
            exit.get_or_insert(found);
        }
        exit_line(line).is_none()
            && !is_process_line(line)
            && line.chars().any(char::is_alphanumeric)
    });
    let mut found = lines.next().map(str::to_owned);
    if found.as_deref().is_some_and(|line| line.starts_with("Traceback (most recent call last)")) {
        found = lines.last().map(str::to_owned).or(found);
    } else {
        drop(lines);
    }
    let found = found.map(|line| {
        let line = line.strip_prefix("<tool_use_error>").unwrap_or(&line);
        first_line(line.strip_suffix("</tool_use_error>").unwrap_or(line))
    });
    match (exit, found) {
        (Some(exit), Some(found)) => Some(format!("{exit}: {found}")),
        (exit, found) => exit.or(found),
    }
}

/// What agents say about the end of a process: `Exit code 1`, `Process exited with code 1`.
fn exit_line(line: &str) -> Option<String> {
    let starts = [
        "Exit code: ",
        "Exit code ",
        "Process exited with code ",
        "Error: Command failed (exit code: ",
    ];
    let code = starts.iter().find_map(|start| line.strip_prefix(start))?.trim_end_matches(')');
    code.trim().parse::<i64>().ok().map(|code| format!("Exit code {code}"))
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
    "could not find an exact match",
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
        assert_eq!(line(" \n"), "");
    }

    /// Outputs as the recorded agents write them.
    #[test]
    fn what_stands_around_an_error_does_not_name_it() {
        let line = |output: &str| naming_line(output).unwrap_or_default();
        let codex = "Chunk ID: 3f\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n----\nFAILED (failures=1)";
        assert_eq!(line(codex), "Exit code 1: FAILED (failures=1)");
        let python = "Exit code 1\nTraceback (most recent call last):\n  File \"a.py\", line 3\n    f()\nAssertionError: 31 != 32";
        assert_eq!(line(python), "Exit code 1: AssertionError: 31 != 32");
        let gemini = "<untrusted_context>\nNo such file\n</untrusted_context>";
        assert_eq!(line(gemini), "No such file");
        let droid = "Error: Command failed (exit code: 2)\nls: cannot access 'x'";
        assert_eq!(line(droid), "Exit code 2: ls: cannot access 'x'");
        assert_eq!(
            line("<tool_use_error>File does not exist.</tool_use_error>"),
            "File does not exist."
        );
        assert_eq!(line("Exit code 1"), "Exit code 1");
        assert_eq!(line("====\n"), "");
    }

    #[test]
    fn what_differs_each_time_is_no_part_of_a_failure() {
        assert_eq!(normalise("File does not exist: /a/b.rs"), "File does not exist: …");
        assert_eq!(normalise("line 12:7 of 300"), "line #:# of #");
        assert_eq!(normalise("request 3f2a9c1b-77 failed"), "request # failed");
        assert_eq!(normalise("decade facade"), "decade facade", "words of hexadecimal letters");
    }
}
