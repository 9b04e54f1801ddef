//! Shell tools: a command and its output.

use unspool_model::part::ToolState;

use super::call::{CardContent, ParsedCall};
use super::envelope;
use crate::block::{Block, Code, Notice, Span, Terminal, Tone};
use crate::present::{ansi, format};

/// Bash and other shells.
pub fn run(call: &ParsedCall) -> CardContent {
    let command = command(call).unwrap_or_default();
    let mut lines = command.trim().lines();
    let first = super::line(lines.next().unwrap_or_default());
    let is_long = lines.next().is_some();
    let mut summary = vec![Span::plain(if is_long { format!("{first} …") } else { first }).code()];
    if call.input.get("run_in_background").is_some_and(|flag| flag == true) {
        summary.push(Span::plain("  in the background").dim());
    }
    let mut shown = CardContent::new(call.name(), summary);
    if is_long {
        let text = command.trim_end().to_owned();
        shown.body.push(Block::Code(Code {
            language: Some("bash".into()),
            text,
            first_line: None,
        }));
    }
    let (printed, exit_code) = printed(call);
    let mut terminal = ansi::terminal(&printed);
    terminal.exit_code = exit_code;
    if has_content(&terminal) {
        shown.body.push(Block::Terminal(terminal));
    }
    if let Some(path) = call.result.get("persistedOutputPath").and_then(|path| path.as_str()) {
        let bytes = call.result.get("persistedOutputSize").and_then(|size| size.as_u64());
        let bytes = bytes.map(|bytes| format!(" ({})", format::size(bytes))).unwrap_or_default();
        let text = format!("The whole output{bytes} is in {path}");
        shown.body.push(Block::Notice(Notice { tone: Tone::Muted, code: None, text }));
    }
    // A command that ran shows its output; one that never ran shows the error.
    shown.error_shown =
        exit_code.is_some() || call.tool.state == ToolState::Failed && !printed.is_empty();
    shown
}

/// Reads the output of a background command.
pub fn background_output(call: &ParsedCall) -> CardContent {
    let id = call.text(&["bash_id", "shell_id", "shellId", "task_id"]).unwrap_or_default();
    let mut shown = CardContent::new(call.name(), vec![Span::plain(super::line(id)).code()]);
    shown.body.extend(call.output().map(|output| Block::Terminal(ansi::terminal(output))));
    shown
}

fn has_content(terminal: &Terminal) -> bool {
    !terminal.lines.is_empty() || terminal.exit_code.is_some_and(|code| code != 0)
}

/// The command as one string; Codex passes some as an argument list, Cline several at once.
pub fn command(call: &ParsedCall) -> Option<String> {
    if let Some(text) = call.text(&["command", "cmd", "script"]) {
        return Some(text.to_owned());
    }
    if let Some(commands) = call.input.get("commands").and_then(|commands| commands.as_array()) {
        let commands: Vec<&str> = commands.iter().filter_map(|command| command.as_str()).collect();
        return Some(commands.join("\n"));
    }
    let words = call.input.get("command").or_else(|| call.input.get("cmd"))?.as_array()?;
    let words: Vec<&str> = words.iter().filter_map(|word| word.as_str()).collect();
    match words.as_slice() {
        ["bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh", "-c" | "-lc", script] => {
            Some((*script).to_owned())
        }
        _ => Some(words.join(" ")),
    }
}

/// The output of the command and its exit code.
fn printed(call: &ParsedCall) -> (String, Option<i64>) {
    let output = call.tool.output.as_deref().unwrap_or_default();
    let mut exit_code = call.tool.exit_code;
    // Claude Code stores more of a large output in the result than it passes to the model.
    if output.starts_with("<persisted-output>")
        && let Some(stdout) = call.result.get("stdout").and_then(|stdout| stdout.as_str())
    {
        return (stdout.to_owned(), exit_code);
    }
    // Claude Code 2.1 prefixes the output of a failed command with `Exit code 3`.
    if let Some(rest) = output.strip_prefix("Exit code ") {
        let (code, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        if let Ok(code) = code.trim().parse::<i64>() {
            return (rest.to_owned(), exit_code.or(Some(code)));
        }
    }
    // Codex prefixes the output with a few lines about the process.
    if output.starts_with("Chunk ID")
        && let Some((head, rest)) = output.split_once("\nOutput:\n")
    {
        let exit_text =
            head.lines().find_map(|line| line.strip_prefix("Process exited with code "));
        exit_code = exit_code.or_else(|| exit_text?.trim().parse().ok());
        return (rest.to_owned(), exit_code);
    }
    // A denied call printed nothing: its output is the denial.
    let ran = call.tool.state == ToolState::Failed && !output.starts_with("<tool_use_error>");
    if call.is_failed() && exit_code.is_none() && !ran {
        return (String::new(), None);
    }
    (envelope::open(output).text.to_owned(), exit_code)
}
