//! Paints blocks as HTML. The match is exhaustive: a new block variant must be added here.

mod card;
mod diff;
pub(crate) mod terminal;

use maud::{Markup, html};
use unspool_view::block::{
    Alignment, Block, Check, Code, FileReference, Fold, List, ListItem, Node, Notice, Table, Tone,
    Tree, TreeDetail,
};
use unspool_view::present::format;

use crate::html::highlight;
use crate::html::text::{safe, spans, tone_class};

/// Paints blocks in order.
pub fn blocks(list: &[Block]) -> Markup {
    html! { @for one in list { (block(one)) } }
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Paragraph { spans: content } => html! { p { (spans(content)) } },
        Block::Heading { level, spans: content } => heading(*level, spans(content)),
        Block::List(list) => lay_list(list),
        Block::Quote { blocks: inner } => html! { blockquote { (blocks(inner)) } },
        Block::Code(code) => lay_code(code),
        Block::Table(table) => lay_table(table),
        Block::Rule => html! { hr; },
        Block::Diff(diff) => diff::paint(diff),
        Block::Terminal(terminal) => terminal::paint(terminal),
        Block::Fields { fields } => html! {
            dl.fields {
                @for field in fields {
                    div { dt { (safe(&field.name)) } dd { (spans(&field.value)) } }
                }
            }
        },
        Block::Tree(tree) => lay_tree(tree),
        Block::Notice(notice) => lay_notice(notice),
        Block::File(file) => lay_file(file),
        Block::Aside { blocks: inner } => html! { div.aside { (blocks(inner)) } },
        Block::Fold(fold) => lay_fold(fold),
        Block::Card(card) => card::paint(card),
        Block::Question(question) => card::paint_question(question),
    }
}

/// Headings in agent text rank below the page's own headings.
fn heading(level: u8, text: Markup) -> Markup {
    match level {
        0 | 1 => html! { h3.h1 { (text) } },
        2 => html! { h4.h2 { (text) } },
        3 => html! { h5.h3 { (text) } },
        _ => html! { h6.h4 { (text) } },
    }
}

fn lay_list(list: &List) -> Markup {
    let class = if list.tight { "tight" } else { "loose" };
    let items = html! { @for item in &list.items { (lay_item(item)) } };
    match list.start {
        Some(start) => html! { ol class=(class) start=(start) { (items) } },
        None => html! { ul class=(class) { (items) } },
    }
}

fn lay_item(item: &ListItem) -> Markup {
    let Some(check) = item.check else { return html! { li { (blocks(&item.blocks)) } } };
    let (class, name) = match check {
        Check::Open => ("open", "open"),
        Check::Running => ("running", "in progress"),
        Check::Done => ("done", "done"),
        Check::Cancelled => ("cancelled", "cancelled"),
    };
    html! {
        li.check.(class) {
            span.box role="img" aria-label=(name) { (check.glyph()) }
            div { (blocks(&item.blocks)) }
        }
    }
}

/// Code and diffs with more lines are clipped, until the reader opens them.
const MAX_OPEN_LINES: usize = 36;

pub(super) fn is_long(lines: usize) -> bool {
    lines > MAX_OPEN_LINES
}

/// The switch that opens a long figure. The style sheet clips the figure while it is closed.
pub(super) fn whole(lines: usize) -> Markup {
    html! {
        @if is_long(lines) { details.whole { summary { "All " (format::count(lines, "line")) } } }
    }
}

fn lay_code(code: &Code) -> Markup {
    let language = code.language.as_deref().map(safe);
    let lines = code.text.lines().count();
    html! {
        figure.code.long[is_long(lines)] data-language=[language.as_deref()] {
            @if let Some(language) = &language { figcaption { (language) } }
            @match code.first_line {
                Some(first) => (numbered(code, first)),
                None => pre { code { (highlight::paint(code.language.as_deref(), &code.text)) } },
            }
            (whole(lines))
        }
    }
}

/// Line numbers go into a separate column, so that copying selects only the text.
fn numbered(code: &Code, first: u64) -> Markup {
    let count = code.text.split('\n').count() as u64;
    let numbers: Vec<String> = (0..count).map(|at| first.saturating_add(at).to_string()).collect();
    html! {
        div.numbered {
            pre.numbers aria-hidden="true" { (numbers.join("\n")) }
            pre { code { (highlight::paint(code.language.as_deref(), &code.text)) } }
        }
    }
}

fn lay_table(table: &Table) -> Markup {
    let class = |at: usize| match table.alignments.get(at).copied().unwrap_or_default() {
        Alignment::None => None,
        Alignment::Left => Some("left"),
        Alignment::Center => Some("center"),
        Alignment::Right => Some("right"),
    };
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr {
                    @for (at, cell) in table.header.iter().enumerate() {
                        th class=[class(at)] { (spans(cell)) }
                    }
                } }
                tbody {
                    @for row in &table.rows {
                        tr { @for (at, cell) in row.iter().enumerate() {
                            td class=[class(at)] { (spans(cell)) }
                        } }
                    }
                }
            }
        }
    }
}

fn lay_tree(tree: &Tree) -> Markup {
    let (shown, rest) = tree.nodes.split_at(tree.shown.min(tree.nodes.len()));
    html! {
        div.tree {
            (lay_nodes(shown, tree.detail))
            @if !rest.is_empty() {
                details.more {
                    summary { "+" (rest.len()) }
                    (lay_nodes(rest, tree.detail))
                }
            }
        }
    }
}

fn lay_nodes(nodes: &[Node], detail: TreeDetail) -> Markup {
    html! {
        ul {
            @for node in nodes {
                li.node data-agent=(safe(&node.key)) {
                    span.icon.(tone_class(node.icon.tone())) aria-hidden="true" {
                        (node.icon.glyph())
                    }
                    span.label { (spans(&node.label)) }
                    span.state.(tone_class(node.icon.tone())) { (node.state) }
                    @if let Some(session) = node.session {
                        " " a.transcript-of href={ "/s/" (session) } data-inline=(session) { "transcript" }
                    }
                    @if detail == TreeDetail::Full {
                        @if !node.note.is_empty() { div.note { (spans(&node.note)) } }
                    }
                    @if !node.children.is_empty() { (lay_nodes(&node.children, detail)) }
                }
            }
        }
    }
}

fn lay_notice(notice: &Notice) -> Markup {
    let is_loud = matches!(notice.tone, Tone::Failed | Tone::Warning | Tone::Interrupted);
    html! {
        div.notice.loud[is_loud].(tone_class(notice.tone)) {
            @if let Some(code) = &notice.code { strong { (safe(code)) } " " }
            span { (safe(notice.text.trim())) }
        }
    }
}

fn lay_file(file: &FileReference) -> Markup {
    let name = file.name.as_deref().or(file.media_type.as_deref()).unwrap_or("file");
    let media_type = file.media_type.as_deref().filter(|_| file.name.is_some());
    let size = file.bytes.map(format::size);
    html! {
        figure.file {
            @if let Some(preview) = &file.preview {
                img src=(preview) alt=(safe(name)) loading="lazy";
            }
            figcaption {
                span.path {
                    @match &file.link {
                        Some(link) => {
                            a href=(link) rel="noreferrer noopener nofollow" target="_blank" {
                                (safe(name))
                            }
                        },
                        None => (safe(name)),
                    }
                }
                @for fact in media_type.into_iter().chain(size.as_deref()) {
                    span.dim { " · " (safe(fact)) }
                }
            }
        }
    }
}

fn lay_fold(fold: &Fold) -> Markup {
    let title = html! {
        span.title.(tone_class(fold.tone)) { (spans(&fold.title)) }
        @if !fold.summary.is_empty() { span.gist { (safe(&fold.summary)) } }
    };
    if fold.blocks.is_empty() {
        return html! { div.fold.flat { (title) } };
    }
    html! {
        details.fold.quiet[fold.tone == Tone::Muted] open[fold.open] {
            summary { (title) }
            div.inside { (blocks(&fold.blocks)) }
        }
    }
}
