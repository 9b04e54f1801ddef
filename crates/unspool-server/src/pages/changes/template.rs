//! What a session changed: a list of files, and the net diff of each with the calls that made it.

use maud::{Markup, html};
use unspool_export::html::block::blocks;
use unspool_export::html::dom;
use unspool_export::html::text::{safe, spans};
use unspool_model::summary::Summary;
use unspool_view::present::changes::{
    Changes, EditRef, FileChange, FileStanding, LineStanding, LineState, Standing,
};
use unspool_view::present::{UNTITLED, format};

use crate::api::percent_encode;
use crate::pages::shell::shell;

/// The data of the page.
pub struct ChangesPage<'a> {
    pub summary: &'a Summary,
    /// Only this turn.
    pub turn: Option<u32>,
    pub changes: &'a Changes,
}

/// Links to calls beyond this number are not written.
const MAX_LINKS: usize = 12;
/// Commits beyond this number are not listed.
const MAX_COMMITS: usize = 50;

pub fn changes(page: &ChangesPage<'_>) -> Markup {
    let id = page.summary.session.id.to_string();
    let title = page.summary.title.as_deref().unwrap_or(UNTITLED);
    let title = format::first_line(&safe(title), 120);
    let files = &page.changes.files;
    let main = html! {
        div.session.changes-page data-changes=(id) data-turn=[page.turn] {
            div.side {
                nav.outline aria-label="Changed files" {
                    ol {
                        @for (at, file) in files.iter().enumerate() {
                            li { a href={ "#file-" (at) } { span.said { (spans(&file.head())) } } }
                        }
                    }
                }
            }
            article.transcript {
                header.changes-head {
                    p.kicker { a href={ "/s/" (id) } { (title) } }
                    h1 {
                        "What changed"
                        @if let Some(turn) = page.turn { " in turn " (turn) }
                    }
                    p { (spans(&page.changes.summary())) }
                    @for note in page.changes.notes() { p.dim { (note) } }
                }
                div.actions role="toolbar" aria-label="Changes" {
                    a href={ "/s/" (id) } { "Transcript" }
                    @if page.turn.is_some() { a href={ "/s/" (id) "/changes" } { "Whole session" } }
                    button type="button" data-file="1" title="Next file (n)" { "Next file" }
                    button type="button" data-file="-1" title="Previous file (p)" { "Previous file" }
                    @let turn = page.turn.map(|turn| format!(" --turn {turn}")).unwrap_or_default();
                    button type="button" data-copy={ "unspool changes " (id) (turn) " --patch" } {
                        "Copy patch command"
                    }
                }
                div #in-git hidden {}
                @if files.is_empty() {
                    p.dim { "No tool call of this session edited a file." }
                }
                @for (at, file) in files.iter().enumerate() { (section(at, file)) }
            }
        }
    };
    shell(&format!("What changed: {title}"), "changes.js", main)
}

fn section(at: usize, file: &FileChange) -> Markup {
    html! {
        section.changed-file id={ "file-" (at) } tabindex="-1" {
            h2 { (spans(&file.head())) }
            p.changed-by {
                @for (index, edit) in file.edits.iter().take(MAX_LINKS).enumerate() {
                    a href=(link(edit)) title="Show this edit in the transcript" {
                        "Edit " (index + 1) " (turn " (edit.turn) ")"
                    } " "
                }
                @if file.edits.len() > MAX_LINKS { span.dim { "of " (file.edits.len()) " edits " } }
                @if let Some(url) = editor_url(file) {
                    a.editor href=(url) title="Open the file in VS Code on this computer" {
                        "Open in editor"
                    }
                }
            }
            (blocks(&file.body()))
        }
    }
}

/// What git has of the changes: the commits, and for each file the states of its added lines, which
/// the script moves to the file.
pub fn in_git(standing: &Standing) -> Markup {
    html! {
        @if !standing.is_empty() {
            h2 { "In git" }
            p { (spans(&standing.summary())) }
            @if !standing.commits.is_empty() {
                ul.commits {
                    @for commit in standing.commits.iter().take(MAX_COMMITS) {
                        li title={ (commit.id) " by " (safe(&commit.author)) } { (spans(&commit.line())) }
                    }
                }
                @if standing.commits.len() > MAX_COMMITS {
                    p.dim { "and " (standing.commits.len() - MAX_COMMITS) " older commits" }
                }
            }
            @for (at, file) in standing.files.iter().enumerate() {
                @if let Some(file) = file.as_ref().filter(|file| !file.lines.is_empty()) {
                    p.standing data-file-of=(at) data-states=(states(file)) { (spans(&file.summary())) }
                }
            }
        }
    }
}

/// The states of a file's added lines in the order of its diff: `stands:<commit>`, `gone`, ….
fn states(file: &FileStanding) -> String {
    let state = |line: &LineStanding| match (line.state, line.commit.as_deref()) {
        (LineState::Stands, commit) => {
            let commit = commit.unwrap_or_default();
            format!("stands:{}", commit.get(..10).unwrap_or(commit))
        }
        (LineState::Uncommitted, _) => "uncommitted".to_owned(),
        (LineState::Gone, _) => "gone".to_owned(),
        (LineState::Unknown, _) => "unknown".to_owned(),
    };
    file.lines.iter().map(state).collect::<Vec<_>>().join(" ")
}

fn link(edit: &EditRef) -> String {
    let EditRef { session, turn, part, .. } = edit;
    format!("/s/{session}?turn={turn}&part={part}#{}", dom::part(part))
}

/// The file at its first changed line.
fn editor_url(file: &FileChange) -> Option<String> {
    let path = file.path.strip_prefix('/')?;
    let path: Vec<String> = path.split('/').map(percent_encode).collect();
    Some(format!("vscode://file/{}:{}", path.join("/"), file.first_changed_line()))
}
