//! Two sessions side by side: figures, turns, tools and files. On a narrow screen the turns of a row
//! stand below each other.

use maud::{Markup, html};
use unspool_export::html::text::{safe, tone_class};
use unspool_model::id::SessionId;
use unspool_model::price::Prices;
use unspool_model::summary::Summary;
use unspool_query::compare::Candidate;
use unspool_view::present::compare::{
    ComparedFile, ComparedHead, ComparedRow, ComparedTool, Comparison, FileCell, TurnCell,
};
use unspool_view::present::{UNTITLED, format, short_cost};

use crate::pages::filters::last_segment;
use crate::pages::shell::shell;

const SIDES: [&str; 2] = ["First", "Second"];

pub fn compare(comparison: &Comparison) -> Markup {
    let [left, right] = &comparison.heads;
    let main = html! {
        article.compare-page data-transcript=(left.id) {
            header.changes-head {
                h1 { "Two sessions side by side" }
                @for note in &comparison.notes { p.dim { (note) } }
            }
            div.actions role="toolbar" aria-label="Comparison" {
                a href={ "/compare?a=" (right.id) "&b=" (left.id) } { "Swap" }
                a href={ "/compare?a=" (left.id) } { "Compare with another session" }
                button type="button" data-row="1" title="Next turn (n)" { "Next turn" }
                button type="button" data-row="-1" title="Previous turn (p)" { "Previous turn" }
                button type="button" data-copy={ "unspool compare " (left.id) " " (right.id) } { "Copy command" }
            }
            (figures(comparison))
            h2 { "Turns" }
            @if comparison.turns.is_empty() { p.dim { "Neither session has a turn yet." } }
            ol.compared-turns {
                @for row in &comparison.turns { (turns(row, &comparison.heads)) }
            }
            h2 { "Tools" }
            @if comparison.tools.is_empty() { p.dim { "Neither session called a tool." } }
            @else { (tools(&comparison.tools)) }
            h2 { "Files" }
            @if comparison.files.is_empty() { p.dim { "No tool call of these sessions edited a file." } }
            @else { (files(&comparison.files, &comparison.heads)) }
        }
    };
    shell(&format!("{} and {}", safe(&left.title), safe(&right.title)), "compare.js", main)
}

/// The heads of the columns.
fn column_heads(first: &str) -> Markup {
    html! {
        tr {
            th scope="col" { (first) }
            @for side in SIDES { th scope="col" { (side) } }
        }
    }
}

fn figures(comparison: &Comparison) -> Markup {
    html! {
        table.compared {
            caption.visually-hidden { "Figures of both sessions" }
            thead {
                tr {
                    th scope="col" { span.visually-hidden { "Figure" } }
                    @for (side, head) in SIDES.iter().zip(&comparison.heads) {
                        th scope="col" {
                            span.side-name { (side) }
                            a href={ "/s/" (head.id) } { (safe(&head.title)) }
                            span.dim { (safe(&head.agent)) }
                        }
                    }
                }
            }
            tbody {
                @for figure in &comparison.figures {
                    tr {
                        th scope="row" { (figure.name) }
                        @for value in &figure.values { td { (or_dash(&safe(value))) } }
                    }
                }
            }
        }
    }
}

fn or_dash(text: &str) -> Markup {
    html! {
        @if text.is_empty() { span.dim aria-label="none" { "–" } } @else { (text) }
    }
}

fn turns(row: &ComparedRow, heads: &[ComparedHead; 2]) -> Markup {
    let said = row.turns.iter().flatten().find(|_| row.is_same);
    html! {
        li.compared-row.same[row.is_same] tabindex="-1" {
            @if let Some(turn) = said { h3 { (prompt(turn)) } }
            div.compared-columns {
                @for ((turn, head), side) in row.turns.iter().zip(heads).zip(SIDES) {
                    div.compared-turn {
                        @match turn {
                            Some(turn) => (cell(turn, head.id, side, !row.is_same)),
                            None => p.dim { (side) ": no such turn" },
                        }
                    }
                }
            }
        }
    }
}

fn prompt(turn: &TurnCell) -> Markup {
    html! {
        @if turn.said.is_empty() { span.dim { "No prompt" } } @else { (safe(&turn.said)) }
    }
}

fn cell(turn: &TurnCell, session: SessionId, side: &str, with_prompt: bool) -> Markup {
    let href = format!("/s/{session}?turn={}", turn.number);
    html! {
        @if with_prompt { h3 { (prompt(turn)) } }
        p {
            span.side-name { (side) }
            a href=(href) { "Turn " (turn.number) }
            span class=(tone_class(turn.tone)) { (turn.state) }
        }
        p.facts { @for fact in turn.facts() { span { (fact) } } }
    }
}

fn tools(tools: &[ComparedTool]) -> Markup {
    html! {
        table.compared.numbers {
            caption.visually-hidden { "Tool calls of both sessions" }
            thead { (column_heads("Tool")) }
            tbody {
                @for tool in tools {
                    tr {
                        th scope="row" { (safe(&tool.name)) }
                        @for calls in tool.calls { td.tone-failed[calls.failed > 0] { (calls.text()) } }
                    }
                }
            }
        }
    }
}

fn files(files: &[ComparedFile], heads: &[ComparedHead; 2]) -> Markup {
    html! {
        p {
            "Net changes of: "
            @for (side, head) in SIDES.iter().zip(heads) {
                a href={ "/s/" (head.id) "/changes" } { (side) } " "
            }
        }
        table.compared {
            caption.visually-hidden { "Files that the sessions changed" }
            thead {
                tr {
                    th scope="col" { "File" }
                    @for side in SIDES { th scope="col" { (side) } }
                    th scope="col" { "Compared" }
                }
            }
            tbody {
                @for file in files {
                    tr data-verdict=(file.verdict.name()) {
                        th.path scope="row" { (safe(&file.name)) }
                        @for change in file.changes {
                            td { (or_dash(&change.map(FileCell::text).unwrap_or_default())) }
                        }
                        td { (file.verdict.text()) }
                    }
                }
            }
        }
    }
}

/// The sessions that one may be compared with.
pub fn choice(summary: &Summary, offered: &[Candidate], prices: &Prices) -> Markup {
    let id = summary.session.id;
    let title = summary.title.as_deref().unwrap_or(UNTITLED);
    let title = format::first_line(&safe(title), 120);
    let main = html! {
        article.compare-page data-transcript=(id) {
            header.changes-head {
                p.kicker { a href={ "/s/" (id) } { (title) } }
                h1 { "Compare with which session?" }
            }
            form.compare-with action="/compare" method="get" {
                input type="hidden" name="a" value=(id);
                label { "Id of the other session, or the beginning of it "
                    input name="b" autocomplete="off" spellcheck="false" required; }
                button type="submit" { "Compare" }
            }
            @if offered.is_empty() { p.dim { "The archive has no other session." } }
            ol.rows {
                @for candidate in offered { (offer(id, candidate, prices)) }
            }
        }
    };
    shell(&format!("Compare: {title}"), "compare.js", main)
}

fn offer(id: SessionId, candidate: &Candidate, prices: &Prices) -> Markup {
    let summary = &candidate.stored.summary;
    let session = &summary.session;
    let title = summary.title.as_deref().unwrap_or(UNTITLED);
    html! {
        li.row {
            a href={ "/compare?a=" (id) "&b=" (session.id) } {
                span.title { (safe(&format::first_line(title, 200))) }
                span.facts {
                    @if let Some(reason) = candidate.reason { span.tag { (reason) } }
                    span.agent-name data-agent=(safe(&session.agent)) { (safe(&session.agent)) }
                    @if let Some(project) = &session.facts.project {
                        span.project title=(safe(project)) { (safe(last_segment(project))) }
                    }
                    span { (format::count(summary.turns as usize, "turn")) }
                }
                span.figures {
                    @if let Some(started) = summary.started {
                        time datetime=(started) { (started.strftime("%Y-%m-%d %H:%M")) }
                    }
                    span.cost { (short_cost(&summary.spending_with_agents, prices)) }
                }
            }
        }
    }
}
