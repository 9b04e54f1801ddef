//! Presents a tool call as a card. The registry maps tool names to presenter functions; a new tool
//! needs one function and one line. Unregistered tools get the generic presenter, so no call is
//! hidden (R-003-53, C-22).

mod call;
mod delegation;
mod files;
mod generic;
mod media;
mod plan;
mod question;
mod search;
mod shell;
mod web;

pub use media::file_reference;
pub use plan::{Tasks, task as task_item};

use call::{CardContent, ParsedCall};

use crate::block::{Badge, Block, Card, FileReference, Icon, Notice, Tone, text_of};
use crate::part::{Tool, ToolState};
use crate::present::{ansi, format};

type Presenter = fn(&ParsedCall) -> CardContent;

/// Names of the planning tools as agents spell them, for index lookups in the archive.
pub const PLAN_TOOL_NAMES: [&str; 6] =
    ["TodoWrite", "todowrite", "TaskCreate", "TaskUpdate", "update_plan", "write_todos"];

/// Presenters of planning tools.
static PLAN_PRESENTERS: &[(&str, Presenter)] = &[
    ("todowrite", plan::todos),
    ("writetodos", plan::todos),
    ("updateplan", plan::todos),
    ("taskcreate", plan::create),
    ("taskupdate", plan::update),
];

/// Presenters of tools that change files.
static EDIT_PRESENTERS: &[(&str, Presenter)] = &[
    ("edit", files::edit),
    ("multiedit", files::edit),
    ("replace", files::edit),
    ("strreplace", files::edit),
    ("editfile", files::edit),
    ("notebookedit", files::edit),
    ("write", files::write),
    ("writefile", files::write),
    ("create", files::write),
    ("applypatch", files::patch),
];

/// All other presenters. Names are normalised: lower case, without `_`, `-` and `.`.
static REGISTRY: &[(&str, Presenter)] = &[
    ("bash", shell::run),
    ("shell", shell::run),
    ("localshell", shell::run),
    ("localshellcall", shell::run),
    ("execcommand", shell::run),
    ("runshellcommand", shell::run),
    ("runinterminal", shell::run),
    ("powershell", shell::run),
    ("bashoutput", shell::background_output),
    ("readbash", shell::background_output),
    ("read", files::read),
    ("readfile", files::read),
    ("view", files::read),
    ("viewimage", files::read),
    ("glob", search::glob),
    ("list", search::glob),
    ("ls", search::glob),
    ("listdirectory", search::glob),
    ("grep", search::grep),
    ("searchfilecontent", search::grep),
    ("grepsearch", search::grep),
    ("rg", search::grep),
    ("toolsearch", search::tools),
    ("tasklist", plan::list),
    ("taskget", plan::list),
    ("exitplanmode", plan::exit),
    ("askuserquestion", question::question),
    ("askuser", question::question),
    ("question", question::question),
    ("requestuserinput", question::question),
    ("websearch", web::search),
    ("googlewebsearch", web::search),
    ("webfetch", web::fetch),
    ("agent", delegation::agent),
    ("task", delegation::agent),
    ("spawnagent", delegation::agent),
    ("invokeagent", delegation::agent),
    ("skill", delegation::skill),
    ("activateskill", delegation::skill),
];

/// Normalises a tool name, since agents spell one tool in different ways.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// True if the tool changes files.
pub fn is_edit(name: &str) -> bool {
    let plain = plain(name);
    EDIT_PRESENTERS.iter().any(|(registered, _)| *registered == plain)
}

/// True if the tool writes a plan or task list.
pub fn is_plan(name: &str) -> bool {
    let plain = plain(name);
    PLAN_PRESENTERS.iter().any(|(registered, _)| *registered == plain)
}

fn presenter(name: &str) -> Presenter {
    let plain = plain(name);
    let found = REGISTRY
        .iter()
        .chain(EDIT_PRESENTERS)
        .chain(PLAN_PRESENTERS)
        .find(|(registered, _)| *registered == plain);
    match found {
        Some((_, presenter)) => *presenter,
        None if name.starts_with("mcp__") => generic::mcp,
        None => generic::unknown,
    }
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
    // Every card needs a summary, even if the input is malformed.
    if text_of(&shown.summary).trim().is_empty() {
        shown.summary = generic::fallback_summary(&call);
    }
    // Question tools build their own question, with more detail than the attached one.
    let question = shown.question.take().or_else(|| question::overlay(&call));
    Card {
        badge: badge(tool.state),
        icon: icon(tool.state),
        title: shown.title,
        summary: shown.summary,
        duration_ms: tool.duration_ms,
        open: question.is_some() || opens_by_default(tool.state, &shown.body),
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
#[path = "../tools_tests.rs"]
mod tests;
