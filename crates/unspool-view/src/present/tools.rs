//! Presents a tool call as a card, with one presenter function per tool family
//! (`unspool_model::tools::Family`). Tools without a family get the generic presenter, so no call
//! is hidden (R-003-53, C-22).

mod call;
mod delegation;
pub(crate) mod edits;
pub(crate) mod envelope;
mod files;
mod generic;
mod media;
mod plan;
mod question;
mod search;
mod shell;
mod web;

pub(crate) use call::ParsedCall;
pub(super) use envelope::context as added_text;
pub(super) use files::whole_read;
pub use media::file_reference;
pub use plan::{Tasks, task as task_item};

use call::CardContent;
use unspool_model::part::{Body, Decision, Question, Tool, ToolState};
use unspool_model::tools::Family;

use crate::block::{Badge, Block, Card, FileReference, Fold, Icon, Notice, Span, Tone, text_of};
use crate::present::{ansi, format, markdown};

type Presenter = fn(&ParsedCall) -> CardContent;

/// The presenter of a tool. Tools without a family get a generic one, so no call is hidden.
fn presenter(name: &str) -> Presenter {
    let Some(family) = Family::of(name) else {
        return if name.starts_with("mcp__") { generic::mcp } else { generic::unknown };
    };
    match family {
        Family::RunShell => shell::run,
        Family::BackgroundOutput => shell::background_output,
        Family::ReadFile => files::read,
        Family::EditFile => files::edit,
        Family::WriteFile => files::write,
        Family::ApplyPatch => files::patch,
        Family::ListFiles => search::glob,
        Family::SearchFiles => search::grep,
        Family::SearchTools => search::tools,
        Family::WriteTodos => plan::todos,
        Family::CreateTask => plan::create,
        Family::UpdateTask => plan::update,
        Family::ListTasks => plan::list,
        Family::ExitPlanMode => plan::exit,
        Family::AskQuestion => question::question,
        Family::SearchWeb => web::search,
        Family::FetchWeb => web::fetch,
        Family::StartAgent => delegation::agent,
        Family::LoadSkill => delegation::skill,
        Family::Memory if name.starts_with("mcp__") => generic::mcp,
        Family::Memory => generic::unknown,
    }
}

/// The question of a call that has no answer yet.
pub fn open_question(tool: &Tool) -> Option<&Question> {
    tool.question.as_ref().filter(|_| tool.answer.is_none() && !tool.state.is_terminal())
}

/// The command of a call that runs one.
pub fn shell_command(tool: &Tool) -> Option<String> {
    let runs = Family::of(&tool.name) == Some(Family::RunShell);
    runs.then(|| shell::command(&ParsedCall::new(tool)))?
}

/// What a call wrote into files. Empty if it wrote nothing or did not run.
pub(super) fn edits_of(body: &Body) -> Vec<edits::FileEdit> {
    let Body::Tool(tool) = body else { return Vec::new() };
    if !edits::may_have_changed_files(tool) {
        return Vec::new();
    }
    edits::of(&ParsedCall::new(tool))
}

/// The paths of the files that a part changed, as the log has them.
pub fn edited_paths(body: &Body) -> Vec<String> {
    let mut paths = Vec::new();
    if let Body::Patch(patch) = body {
        paths.extend(patch.path.clone());
    }
    for edit in edits_of(body) {
        paths.extend(edit.path);
        paths.extend(edit.moved_to);
    }
    let mut seen = rustc_hash::FxHashSet::default();
    paths.retain(|path: &String| seen.insert(path.clone()));
    paths
}

/// The card of a tool call.
pub fn card(tool: &Tool) -> Card {
    let call = ParsedCall::new(tool);
    let mut shown =
        if call.is_streaming() { generic::streaming(&call) } else { presenter(&tool.name)(&call) };
    // The reason for a denial is already shown with the answer.
    let answered = tool.answer.as_ref().map(|answer| answer.text.as_str());
    if !shown.error_shown
        && let Some(text) = call.error().filter(|text| Some(text.as_str()) != answered)
    {
        shown.body.push(Block::Notice(Notice {
            tone: badge(tool.state).tone,
            code: None,
            text: ansi::plain_text(&text),
        }));
    }
    shown.body.extend(media::blocks(&call));
    if let Some(reminder) = call.reminder() {
        shown.body.push(Block::Fold(Fold {
            title: vec![Span::plain("Reminder to the model")],
            summary: format::first_line(reminder, 120),
            open: false,
            tone: Tone::Muted,
            blocks: markdown::blocks(reminder),
        }));
    }
    // Every card needs a summary, even if the input is malformed.
    if text_of(&shown.summary).trim().is_empty() {
        shown.summary = generic::fallback_summary(&call);
    }
    // Question tools build their own question, with more detail than the attached one.
    let mut question = shown.question.take().or_else(|| question::overlay(&call));
    if let Some(question) = &mut question {
        let answered =
            question.answer.is_some() || question.items.iter().any(|item| item.answer.is_some());
        question.open = !answered && !tool.state.is_terminal();
        // What cut the call off left the question open, whatever the model takes for its answer.
        if let Some(answer) = question.answer.as_mut().filter(|answer| !answer.observed) {
            answer.missing =
                tool.state == ToolState::Interrupted && answer.decision == Decision::Declined;
        }
    }
    let badge = match question.as_ref().filter(|question| question.open) {
        Some(_) => Badge { word: "[WAITING]".into(), tone: Tone::Warning, state: None },
        None => {
            let printed = shown.body.iter().find_map(|block| {
                if let Block::Terminal(terminal) = block { terminal.exit_code } else { None }
            });
            let code = tool.exit_code.or(printed).filter(|code| *code != 0);
            let failed = code.filter(|_| tool.state == ToolState::Failed);
            let state = failed.map(|code| format!("exit {code}").into());
            let badge = badge(tool.state);
            Badge { state: badge.state.or(state), ..badge }
        }
    };
    Card {
        badge,
        icon: icon(tool.state),
        title: shown.title,
        summary: shown.summary,
        // Zero if the log has one time for the start and the end: not a duration.
        duration_ms: tool.duration_ms.filter(|took| *took > 0),
        open: question.is_some() || opens_by_default(tool.state, &shown.body),
        earlier: question::earlier(tool),
        question,
        body: shown.body,
    }
}

/// Calls that did not end well, diffs, lists and pictures are open by default, as are questions
/// with their answers: readers look for these first.
fn opens_by_default(state: ToolState, body: &[Block]) -> bool {
    let ended_badly = match state {
        ToolState::Failed | ToolState::Denied | ToolState::Interrupted => true,
        ToolState::Pending | ToolState::Running | ToolState::Completed => false,
    };
    let has_preview = |file: &FileReference| file.preview.is_some();
    let shows = |block: &Block| {
        matches!(block, Block::Diff(_) | Block::List(_))
            || matches!(block, Block::File(file) if has_preview(file))
    };
    ended_badly || body.iter().any(shows)
}

/// The badge of a state (R-000-21).
pub fn badge(state: ToolState) -> Badge {
    let (word, tone) = match state {
        ToolState::Pending | ToolState::Running => ("[RUNNING]", Tone::Running),
        ToolState::Completed => ("[OK]", Tone::Ok),
        ToolState::Failed | ToolState::Denied | ToolState::Interrupted => {
            ("[FAILED]", Tone::Failed)
        }
    };
    let says_more = matches!(state, ToolState::Denied | ToolState::Interrupted);
    Badge { word: word.into(), tone, state: says_more.then(|| state.name().into()) }
}

fn icon(state: ToolState) -> Icon {
    match state {
        ToolState::Pending => Icon::Pending,
        ToolState::Running => Icon::Running,
        ToolState::Completed => Icon::Completed,
        ToolState::Failed | ToolState::Denied => Icon::Failed,
        ToolState::Interrupted => Icon::Interrupted,
    }
}

/// A text as one summary line.
fn line(text: &str) -> String {
    format::first_line(text, 300)
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
