//! The page of one session: head, outline, tasks and a window of its turns. Also the fragments that
//! an open page loads (`window`, `inline`) and that session hubs send (`outline_entry`, `tasks`).

use maud::{Markup, html};
use unspool_export::html::block::blocks;
use unspool_export::html::dom;
use unspool_export::html::session_head::{HeadFigures, session_head};
use unspool_export::html::text::safe;
use unspool_export::html::turn::{Gap, gap, turn};
use unspool_export::project;
use unspool_model::id::{TurnId, digest};
use unspool_model::note::{NoteTarget, PlacedNote};
use unspool_model::price::Prices;
use unspool_model::summary::Summary;
use unspool_model::tools::MEMORY_FILTER;
use unspool_view::present::notes::note_line;
use unspool_view::present::outline::TurnOutline;
use unspool_view::present::tools::Tasks;
use unspool_view::present::{Item, TurnView, UNTITLED, format};

use crate::pages::shell::shell;

/// The data of the page.
pub struct SessionPage<'a> {
    pub summary: &'a Summary,
    pub prices: &'a Prices,
    pub figures: HeadFigures,
    /// An agent runs it now.
    pub is_live: bool,
    /// The seq it was read at.
    pub seq: u64,
    pub window: TranscriptWindow<'a>,
    /// The agent's command that resumes the session.
    pub resume: Option<String>,
    pub tasks: &'a Tasks,
}

/// The end of a transcript whose agent can be driven: open questions without a call, the queue and
/// the composer, inside the scroll area (R-003-43). `chat.js` fills it.
pub fn composer() -> Markup {
    html! {
        section.chat aria-label="Chat" hidden {
            div.chat-questions {}
            div.chat-notices role="status" {}
            ol.chat-plan aria-label="Plan" {}
            ol.chat-queue aria-label="Queue" {}
            form.composer {
                div.composer-status { span.chat-status {} span.chat-options {} }
                textarea rows="1" aria-label="Message" placeholder="Message · / commands · @ files" spellcheck="false" {}
                ul.chat-completions role="listbox" aria-label="Completions" hidden {}
                ul.chat-images aria-label="Images of the message" hidden {}
                div.composer-actions {
                    span.composer-hint {}
                    button.interrupt type="button" hidden { "Interrupt" }
                    button.end-agent.plain type="button" hidden title="End the agent and the chat" { "End" }
                    button.send type="submit" { "Send" }
                }
            }
        }
    }
}

/// The loaded turns of a session.
pub struct TranscriptWindow<'a> {
    pub turns: &'a [TurnView],
    /// The position where earlier turns end.
    pub earlier: Option<String>,
    /// The position where later turns begin.
    pub later: Option<String>,
    /// One outline entry per turn of the session.
    pub prompts: &'a [Prompt],
}

/// The outline entry of a turn that is not loaded.
pub struct Prompt {
    pub turn: TurnId,
    pub number: u32,
    pub said: String,
    pub errors: u64,
}

/// What the page offers beside the content.
pub struct Choice<'a> {
    /// The part filter.
    pub only: Option<&'a str>,
    /// The browser may drive the agent.
    pub may_drive: bool,
}

pub fn session(page: &SessionPage<'_>, choice: &Choice<'_>) -> Markup {
    let summary = page.summary;
    let id = summary.session.id.to_string();
    let title = summary.title.as_deref().unwrap_or(UNTITLED);
    let title = format::first_line(&safe(title), 120);
    let turns = turns(&id, &page.window);
    let head = session_head(summary, page.prices, &page.figures);
    let main = html! {
        div.session data-session=(id) data-seq=(page.seq) data-live-now[page.is_live] data-version=(version(&[&head, &turns, &self::tasks(page.tasks), &notes(&page.figures.notes)]))
            data-only=[choice.only.map(safe)] {
            div.side {
                div.side-switch role="group" aria-label="Side panel" hidden {
                    button type="button" data-side="outline" aria-pressed="true" { "Outline" }
                    button type="button" data-side="sessions" aria-pressed="false" title="Show the list of sessions in the side panel (s)" { "Sessions" }
                }
                nav.outline aria-label="Outline" { (outline(&page.window)) }
                nav.beside aria-label="Sessions" hidden {}
                (notes(&page.figures.notes))
                (tasks(page.tasks))
                aside.notes id="findings" aria-label="Findings" hidden {}
            }
            article.transcript {
                (head)
                (actions(page, choice))
                (find_here())
                div.turns { (turns) }
                @if choice.may_drive { (composer()) }
                div.end aria-hidden="true" {}
            }
            button.news type="button" hidden { "0 new parts" }
        }
    };
    shell(&title, "session.js", main)
}

/// A digest that changes with the content of a window.
fn version(pieces: &[&Markup]) -> String {
    let add = |sum: u64, piece: &&Markup| sum.rotate_left(1) ^ digest(piece.0.as_bytes());
    format!("{:016x}", pieces.iter().fold(0, add))
}

/// The turns, with links to those around them.
fn turns(session: &str, window: &TranscriptWindow<'_>) -> Markup {
    // A partially loaded turn has its own gap element, so omit the outer one at that end.
    let cut = |item: &Item| match item {
        Item::Part(part) => part.before > 0,
        Item::Reasoning(block) => block.before > 0,
    };
    let cut_above = window.turns.first().is_some_and(|view| view.items.first().is_some_and(cut));
    let cut_below = window.turns.last().is_some_and(|view| view.after > 0);
    html! {
        @if let Some(position) = window.earlier.as_ref().filter(|_| !cut_above) {
            (gap(Gap::Before, session, position, "Earlier turns"))
        }
        @for view in window.turns { (turn(session, view)) }
        @if let Some(position) = window.later.as_ref().filter(|_| !cut_below) {
            (gap(Gap::After, session, position, "Later turns"))
        }
    }
}

/// The outline. Loaded turns also show their marks.
fn outline(window: &TranscriptWindow<'_>) -> Markup {
    let loaded = |id: TurnId| window.turns.iter().find(|view| view.id == id);
    let is_listed = |view: &&TurnView| window.prompts.iter().any(|prompt| prompt.turn == view.id);
    html! {
        ol {
            @for prompt in window.prompts {
                @match loaded(prompt.turn) {
                    Some(view) => (outline_entry(view)),
                    None => (entry(prompt)),
                }
            }
            @for view in window.turns.iter().filter(|view| !is_listed(view)) { (outline_entry(view)) }
        }
    }
}

fn entry(prompt: &Prompt) -> Markup {
    let id = dom::turn(prompt.turn);
    let Prompt { number, said, errors, .. } = prompt;
    let errors = usize::try_from(*errors).unwrap_or(usize::MAX);
    let said = format::first_line(said, 80);
    line(&id, *number, &said, &[(errors, "tone-failed", "✕", "error")])
}

/// The part filters besides single tools.
const PART_FILTERS: [(&str, &str); 9] = [
    ("errors", "Errors"),
    ("edits", "Edits"),
    ("tool:memory", "Memory"),
    ("kind:text", "Replies"),
    ("kind:reasoning", "Reasoning"),
    ("kind:tool", "Tool calls"),
    ("kind:agent", "Sub-agents"),
    ("kind:interjection", "Interjections"),
    ("kind:compaction", "Compactions"),
];

fn actions(page: &SessionPage<'_>, choice: &Choice<'_>) -> Markup {
    let id = page.summary.session.id;
    let is_chosen = |value: &str| choice.only == Some(value);
    html! {
        div.actions role="toolbar" aria-label="Session" {
            button type="button" data-act="fold" { "Collapse all" }
            button type="button" data-act="unfold" { "Expand all" }
            button type="button" data-act="brief" aria-pressed="false" { "Hide intermediate work" }
            button type="button" data-act="usage" aria-pressed="false" { "Usage per step" }
            button type="button" data-act="find" { "Find" }
            button type="button" data-act="rename" { "Rename" }
            button type="button" data-act="tags" { "Tags" }
            button type="button" data-act="note" { "Note" }
            label.only {
                span.visually-hidden { "Show only" }
                select name="only" {
                    option value="" selected[choice.only.is_none()] { "Everything" }
                    @for (value, name) in PART_FILTERS {
                        option value=(value) selected[is_chosen(value)] { (name) }
                    }
                    // The other tools are loaded when the menu opens.
                    @if let Some(tool) = choice.only.and_then(|only| only.strip_prefix("tool:")).filter(|tool| *tool != MEMORY_FILTER) {
                        option value=(safe(choice.only.unwrap_or_default())) selected { (safe(tool)) }
                    }
                }
            }
            @if let Some(resume) = &page.resume {
                button type="button" data-copy=(resume) { "Copy resume command" }
            }
            a href={ "/s/" (id) "/changes" } { "What changed" }
            a href={ "/compare?a=" (id) } { "Compare" }
            a href={ "/s/" (id) "/prompts" } { "Prompts" }
            a href={ "/s/" (id) "/findings" } { "Findings" }
            a href={ "/s/" (id) "/thoughtflow" } { "ThoughtFlow" }
            details.menu {
                summary { "Export" }
                ul {
                    li { button type="button" data-act="markdown" { "Copy as Markdown" } }
                    li { button type="button" data-act="share" title="Some turns as a file or a link (x)" { "Share turns …" } }
                    @for form in project::ALL {
                        li {
                            a href={ "/api/sessions/" (id) "/export?to=" (form.name) }
                                download={ "unspool-" (id) "." (form.extension) } title=(form.about) {
                                (form.title)
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The task list, beside the transcript and always visible (R-003-43).
pub fn tasks(tasks: &Tasks) -> Markup {
    let (count, done) = tasks.counts();
    html! {
        aside.tasks id="tasks" aria-label="Tasks" hidden[count == 0] {
            @if count > 0 {
                details open {
                    summary { "Tasks " span.dim { (done) " of " (count) } }
                    (blocks(&[tasks.block()]))
                }
            }
        }
    }
}

/// The user's notes on turns and parts, beside the transcript, each with a link to its place. Those
/// on the session as a whole are in its head.
fn notes(all: &[PlacedNote]) -> Markup {
    let placed: Vec<(&PlacedNote, String, u32)> = all
        .iter()
        .filter_map(|placed| {
            let place = match placed.note.target {
                NoteTarget::Session => return None,
                NoteTarget::Turn(id) => dom::turn(id),
                NoteTarget::Part(id) => dom::part(id),
            };
            Some((placed, place, placed.turn?))
        })
        .collect();
    html! {
        aside.notes id="notes" aria-label="Notes" hidden[placed.is_empty()] {
            @if !placed.is_empty() {
                details open {
                    summary { "Notes " span.dim { (placed.len()) } }
                    ul {
                        @for (placed, place, turn) in &placed {
                            li data-number=(turn) {
                                a href={ "#" (place) } {
                                    span.number { (turn) }
                                    span.said { (safe(&note_line(placed, 80))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The find bar.
fn find_here() -> Markup {
    html! {
        form.find-here hidden role="search" aria-label="This session" {
            input type="search" name="here" placeholder="Find in this session" autocomplete="off"
                aria-label="Find in this session";
            span.count role="status" {}
            button type="button" aria-label="Close" { "×" }
        }
    }
}

/// The outline entry of a turn, with the counts of errors, edits and sub-agent calls.
pub fn outline_entry(view: &TurnView) -> Markup {
    let TurnOutline { number, said, errors, edits, agents, .. } = &view.outline;
    let marks = [
        (*errors, "tone-failed", "✕", "error"),
        (*edits, "tone-added", "±", "edit"),
        (*agents, "tone-running", "◈", "sub-agent call"),
    ];
    line(&dom::turn(view.id), *number, said, &marks)
}

fn line(id: &str, number: u32, said: &str, marks: &[(usize, &str, &str, &str)]) -> Markup {
    html! {
        li data-turn=(id) data-number=(number) {
            a href={ "#" (id) } {
                span.number { (number) }
                span.said { (safe(said)) }
            }
            @for (count, class, sign, noun) in marks {
                @if *count > 0 {
                    span.mark.(class) title=(format::count(*count, noun)) { (sign) (count) }
                }
            }
        }
    }
}

/// A window as a fragment for an open page, and its version.
pub fn window(page: &SessionPage<'_>) -> (Markup, String) {
    let id = page.summary.session.id.to_string();
    let turns = turns(&id, &page.window);
    let head = session_head(page.summary, page.prices, &page.figures);
    let notes = notes(&page.figures.notes);
    let version = version(&[&head, &turns, &self::tasks(page.tasks), &notes]);
    let painted = html! {
        div.window data-seq=(page.seq) data-version=(version) {
            (head)
            (self::tasks(page.tasks))
            (notes)
            ol.entries { @for view in page.window.turns { (outline_entry(view)) } }
            div.turns { (turns) }
        }
    };
    (painted, version)
}

/// A sub-agent's session as a fragment inside the page of its parent.
pub fn inline(page: &SessionPage<'_>) -> Markup {
    let id = page.summary.session.id.to_string();
    let turns = turns(&id, &page.window);
    html! {
        div.session.inline data-session=(id) data-seq=(page.seq) {
            div.turns { (turns) }
        }
    }
}
