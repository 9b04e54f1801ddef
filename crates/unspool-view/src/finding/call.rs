//! One call as the rules see it: what it is about, and digests of its input and output.

use rustc_hash::FxHashSet;
use unspool_model::agent::CallTimes;
use unspool_model::id::digest;
use unspool_model::part::{Decision, Part, Tool, ToolState};
use unspool_model::tool_time::ToolTime;
use unspool_model::tools::{AsksUser, Family};

use super::MAX_LINE_CHARS;
use super::command::Command;
use super::error_text::{first_line, is_missed_edit, naming_line};
use crate::block::{Diff, DiffKind};
use crate::present::tools::edits::{self, FileAction, FileEdit};
use crate::present::tools::{ParsedCall, shell_command};

/// A call without its texts.
#[derive(Clone, Debug)]
pub struct Call {
    pub tool: String,
    pub family: Option<Family>,
    pub state: ToolState,
    /// What it is about, in one line: the command, the file, the pattern.
    pub subject: String,
    /// What checks look at: the command, the path, or the input as JSON. Limited in length.
    checked_input: String,
    pub input: u64,
    /// `None` without an output.
    pub output: Option<Output>,
    /// Of a failed call.
    pub error: Option<String>,
    /// An edit of a text that is not in the file.
    pub missed: bool,
    pub time: Option<ToolTime>,
    /// A person was asked about it.
    pub asked: bool,
    /// What the person or the rule that denied it says.
    pub denial: Option<String>,
    pub command: Option<Command>,
    pub path: Option<String>,
    pub edits: Vec<Edit>,
}

/// An output without its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Output {
    pub digest: u64,
    /// The same for outputs that differ in numbers only: times, counts.
    pub loose_digest: u64,
    pub chars: u64,
}

/// What an edit did to one file: digests of the lines that it took out and put in.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Edit {
    pub path: String,
    pub removed: Vec<u64>,
    pub added: Vec<u64>,
    /// The file has only the added lines afterwards, and what it had before is not recorded.
    pub replaces_all: bool,
}

/// Characters of an input that a check sees.
const MAX_INPUT_CHARS: usize = 4000;
/// A line with fewer letters and digits is a brace or a separator: it says nothing.
const MIN_LINE_LETTERS: usize = 4;

impl Call {
    pub fn new(tool: &Tool, part: &Part, times: CallTimes) -> Call {
        let parsed = ParsedCall::new(tool);
        let command_text = shell_command(tool);
        let command = command_text.as_deref().map(Command::of);
        // Codex runs a command that only calls `apply_patch` as a patch.
        let is_patch = command.as_ref().is_some_and(|command| command.program == "apply_patch");
        let family = if is_patch { Some(Family::ApplyPatch) } else { Family::of(&tool.name) };
        let elapsed = crate::present::elapsed(part.started, part.ended);
        let patch = (family == Some(Family::ApplyPatch))
            .then(|| command_text.as_deref().or_else(|| edits::requested_text(&parsed)));
        let patched = || patch.flatten().and_then(patched_path);
        let path = parsed.path().map(str::to_owned).or_else(patched);
        let output = tool.output.as_deref().or_else(|| parsed.result.as_str());
        let input = tool.input.as_ref().map(|input| input.text()).unwrap_or(&tool.input_text);
        let checked = command_text.as_deref().or(path.as_deref()).unwrap_or(input);
        let asked = tool.question.is_some() || !tool.earlier.is_empty();
        // Somebody was asked about this very call.
        let usual = AsksUser::of(&tool.name);
        let asks = if asked && usual != AsksUser::Always { AsksUser::Usually } else { usual };
        let failed = tool.state == ToolState::Failed;
        let denied = tool.state == ToolState::Denied;
        Call {
            subject: subject(&parsed, command_text.as_deref().or(path.as_deref())),
            checked_input: checked.chars().take(MAX_INPUT_CHARS).collect(),
            input: digest(parsed.input.to_string().as_bytes()),
            output: output.filter(|text| !text.is_empty()).map(Output::of),
            error: output.filter(|_| failed).and_then(naming_line),
            missed: failed && is_missed_edit(tool, family),
            time: ToolTime::of(times, asks, tool.state, tool.duration_ms, elapsed),
            asked,
            denial: denied.then(|| denial(tool)).flatten(),
            command,
            edits: edits_of(&parsed),
            tool: tool.name.clone(),
            state: tool.state,
            family,
            path,
        }
    }

    pub(super) fn checked_input(&self) -> &str {
        &self.checked_input
    }

    /// The tool with the program that it runs: `Bash cargo test`.
    pub fn name(&self) -> String {
        match self.command.as_ref().filter(|command| !command.program.is_empty()) {
            Some(command) => format!("{} {}", self.tool, command.program),
            None => self.tool.clone(),
        }
    }

    /// It puts a file into the prompt.
    pub fn is_read(&self) -> bool {
        self.family == Some(Family::ReadFile)
            || self.command.as_ref().is_some_and(|command| command.reads_files)
    }

    /// It asks how something goes that runs in the background, or waits for it.
    pub fn is_waiting(&self) -> bool {
        const WAITING: &[&str] = &[
            "wait",
            "write_stdin",
            "TaskOutput",
            "wait_agent",
            "read_agent",
            "agentoutput",
            "command_status",
        ];
        self.family == Some(Family::BackgroundOutput)
            || WAITING.contains(&self.tool.as_str())
            || self.command.as_ref().is_some_and(|command| command.sleeps.is_some())
    }

    /// It may have changed files, or something else that a later call sees.
    pub fn may_change_files(&self) -> bool {
        match self.family {
            Some(Family::RunShell) => {
                self.command.as_ref().is_none_or(|command| !command.only_reads)
            }
            Some(
                Family::EditFile | Family::WriteFile | Family::ApplyPatch | Family::StartAgent,
            ) => true,
            Some(
                Family::BackgroundOutput
                | Family::ReadFile
                | Family::ListFiles
                | Family::SearchFiles
                | Family::SearchTools
                | Family::WriteTodos
                | Family::CreateTask
                | Family::UpdateTask
                | Family::ListTasks
                | Family::ExitPlanMode
                | Family::AskQuestion
                | Family::SearchWeb
                | Family::FetchWeb
                | Family::LoadSkill,
            ) => false,
            // What was kept is found later.
            Some(Family::Memory) | None => true,
        }
    }

    /// It was made to change files.
    pub fn is_edit(&self) -> bool {
        self.family.is_some_and(Family::is_edit)
    }

    pub fn output_chars(&self) -> u64 {
        self.output.map_or(0, |output| output.chars)
    }
}

impl Output {
    fn of(text: &str) -> Output {
        let mut loose = String::with_capacity(text.len());
        let mut chars = 0;
        for c in text.chars() {
            chars += 1;
            if !c.is_ascii_digit() {
                loose.push(c);
            }
        }
        let (digest, loose_digest) = (digest(text.as_bytes()), digest(loose.as_bytes()));
        Output { digest, loose_digest, chars }
    }
}

/// The first file of a patch.
fn patched_path(patch: &str) -> Option<String> {
    let marks = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"];
    let path =
        patch.lines().find_map(|line| marks.iter().find_map(|mark| line.strip_prefix(mark)))?;
    Some(path.trim().to_owned())
}

/// `about` is its command or its path.
fn subject(call: &ParsedCall, about: Option<&str>) -> String {
    let keys = [
        "pattern",
        "query",
        "url",
        "q",
        "name",
        "skill",
        "subject",
        "description",
        "prompt",
        "task",
    ];
    let found = about.or_else(|| call.text(&keys));
    let found = found.or(call.tool.title.as_deref()).map(str::to_owned);
    first_line(&found.unwrap_or_else(|| {
        let input = call.tool.input.as_ref().map(|input| input.text()).unwrap_or_default();
        input.chars().take(MAX_LINE_CHARS + 1).collect()
    }))
}

/// Why a call was denied, if that is known.
fn denial(tool: &Tool) -> Option<String> {
    let answer = tool.answer.as_ref().filter(|answer| answer.decision == Decision::Denied);
    let text = answer.map(|answer| answer.text.as_str()).or(tool.output.as_deref())?;
    naming_line(text)
}

fn edits_of(call: &ParsedCall) -> Vec<Edit> {
    if call.tool.state != ToolState::Completed || !edits::may_have_changed_files(call.tool) {
        return Vec::new();
    }
    edits::of(call).iter().filter_map(edit).collect()
}

fn edit(edit: &FileEdit) -> Option<Edit> {
    let path = edit.moved_to.as_ref().or(edit.path.as_ref())?.clone();
    if let FileAction::Write(text) = &edit.action {
        let added = text.lines().filter_map(line_digest).collect();
        return Some(Edit { path, removed: Vec::new(), added, replaces_all: true });
    }
    let Some(diff) = edit.diff() else { return Some(Edit { path, ..Edit::default() }) };
    let (removed, added) = (lines(&diff, DiffKind::Removed), lines(&diff, DiffKind::Added));
    // A line that an edit moves is neither new nor gone.
    let both: FxHashSet<u64> = removed.iter().copied().collect();
    let kept: FxHashSet<u64> = added.iter().copied().filter(|line| both.contains(line)).collect();
    let changed = |lines: Vec<u64>| lines.into_iter().filter(|line| !kept.contains(line)).collect();
    Some(Edit { path, removed: changed(removed), added: changed(added), replaces_all: false })
}

fn lines(diff: &Diff, kind: DiffKind) -> Vec<u64> {
    let lines = diff.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind);
    lines.filter_map(|line| line_digest(&line.text())).collect()
}

/// `None` for a line that says nothing.
fn line_digest(line: &str) -> Option<u64> {
    let line = line.trim();
    let letters = line.chars().filter(|c| c.is_alphanumeric()).take(MIN_LINE_LETTERS).count();
    (letters == MIN_LINE_LETTERS).then(|| digest(line.as_bytes()))
}
