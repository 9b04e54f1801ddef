//! Paints blocks as Markdown, for reading in issues and pull requests. Agent text is escaped: it
//! cannot open a fence, a list or HTML, and its headings rank below ours.

mod card;
mod inline;
mod note;
mod reasoning;

use inline::{cell, escape, escape_html, head, line, longest_run, spans};
pub use note::head_notes;
use note::note;
use unspool_model::part::Kind;
use unspool_model::session::{Trigger, TurnState};
use unspool_view::block::{
    Alignment, AnsiRun, Block, Code, Diff, DiffKind, Field, FileReference, Fold, List, ListItem,
    Notice, Span, Table, Terminal, Tone, text_of,
};
use unspool_view::present::{HeaderFactKind, Item, PartView, TurnHeader, TurnView, format};

use crate::html::text::safe;

/// Headings in agent text rank below those of the session and its turns.
const HEADING_OFFSET: u8 = 2;
/// Maximum length of a summary in a title.
const MAX_GIST_CHARS: usize = 100;

/// The head of a session: title and fields.
pub fn session(all: &[Block]) -> String {
    join_blocks(all.iter().map(|one| {
        if let Block::Heading { spans, .. } = one {
            format!("# {}", line(spans))
        } else if let Block::Fields { fields } = one {
            let value = |field: &Field| line(&field.value).replace("  ", " · ");
            lay_fields(fields, value)
        } else {
            block(one)
        }
    }))
}

/// A turn: header, user's message, and items in order.
pub fn turn(view: &TurnView) -> String {
    let mut out = heading(&view.header);
    out.extend(view.note.as_ref().map(note));
    out.push(block_quote(&blocks(&view.user)));
    for item in &view.items {
        match item {
            Item::Part(one) => add_part(&mut out, one, part(one)),
            Item::Reasoning(one) => reasoning::add(&mut out, one),
        }
    }
    format!("{}\n", join_blocks(out))
}

/// A part, and the user's note below it.
fn add_part(out: &mut Vec<String>, view: &PartView, painted: String) {
    card::add_part(out, view, painted);
    out.extend(view.note.as_ref().map(note));
}

/// The header of a turn, without default facts (triggered by the user, completed).
fn heading(header: &TurnHeader) -> Vec<String> {
    let is_default = |kind: HeaderFactKind| match kind {
        HeaderFactKind::Trigger => header.number == 0 || header.trigger == Trigger::User,
        HeaderFactKind::State => header.state == TurnState::Completed,
        HeaderFactKind::Abandoned | HeaderFactKind::Inherited => false,
    };
    let facts = header.facts().into_iter().filter(|fact| !is_default(fact.kind));
    let title: Vec<String> =
        [header.label()].into_iter().chain(facts.map(|fact| fact.text.to_owned())).collect();
    let mut small = header.metrics();
    small.extend(header.models.iter().map(|model| escape(model)));
    let small = (!small.is_empty()).then(|| format!("<sub>{}</sub>", small.join(" · ")));
    [format!("## {}", title.join(" · "))].into_iter().chain(small).collect()
}

/// One part.
pub fn part(view: &PartView) -> String {
    if view.kind == Kind::Interjection {
        return join_blocks([
            "**User**, while it ran:".to_owned(),
            block_quote(&blocks(&view.blocks)),
        ]);
    }
    if matches!(view.kind, Kind::Notice | Kind::Error) {
        return join_blocks(
            view.blocks.iter().map(|one| {
                if let Block::Notice(notice) = one { alert(notice) } else { block(one) }
            }),
        );
    }
    inner(view)
}

/// A part inside a fold. GitHub renders no alerts there, and reasoning needs no second fold.
fn inner(view: &PartView) -> String {
    match view.blocks.as_slice() {
        [Block::Fold(fold)] if view.kind == Kind::Reasoning && !fold.blocks.is_empty() => {
            blocks(&fold.blocks)
        }
        all if view.kind == Kind::Agent => card::lay_agents(all),
        all => blocks(all),
    }
}

pub fn blocks(all: &[Block]) -> String {
    join_blocks(all.iter().map(block))
}

/// Joins blocks with blank lines. An invisible comment separates adjacent lists, which Markdown
/// would otherwise merge.
fn join_blocks(pieces: impl IntoIterator<Item = String>) -> String {
    let mut out = String::new();
    for piece in pieces {
        if piece.trim().is_empty() {
            continue;
        }
        if !out.is_empty() {
            let ends_list = out.rsplit('\n').next().is_some_and(is_in_list);
            out.push_str(if ends_list && is_item(&piece) { "\n\n<!-- -->\n\n" } else { "\n\n" });
        }
        out.push_str(piece.trim_end_matches('\n'));
    }
    out
}

/// True if a line of our output is in a list: it starts with a list mark or is indented. Nothing
/// else is indented.
fn is_in_list(line: &str) -> bool {
    line.starts_with(' ') || is_item(line)
}

fn is_item(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < text.len() && rest.starts_with(". ");
    is_numbered || text.starts_with("- ")
}

fn block(one: &Block) -> String {
    match one {
        Block::Paragraph { spans: content } => spans(content),
        Block::Heading { level, spans: content } => {
            let level = level.saturating_add(HEADING_OFFSET).clamp(HEADING_OFFSET + 1, 6);
            format!("{} {}", "#".repeat(usize::from(level)), line(content))
        }
        Block::List(list) => lay_list(list),
        Block::Quote { blocks: inside } => block_quote(&blocks(inside)),
        Block::Code(Code { language, text, .. }) => fence(language.as_deref(), text),
        Block::Table(table) => lay_table(table),
        Block::Rule => "---".to_owned(),
        Block::Diff(diff) => lay_diff(diff),
        Block::Terminal(terminal) => lay_terminal(terminal),
        Block::Fields { fields } => lay_fields(fields, |field| head(&field.value)),
        Block::Tree(tree) => card::lay_tree(tree),
        Block::Notice(notice) => lay_notice(notice),
        Block::File(file) => lay_file(file),
        // No block quote: those are for the user's message.
        Block::Aside { blocks: inside } if inside.is_empty() => String::new(),
        Block::Aside { blocks: inside } => {
            details(&gist_of("Reasoning", &gist(inside)), &blocks(inside))
        }
        Block::Fold(fold) => lay_fold(fold),
        Block::Card(card) => card::lay(card),
        Block::Question(question) => card::question(question),
    }
}

fn lay_fields(fields: &[Field], value: impl Fn(&Field) -> String) -> String {
    let lines =
        fields.iter().map(|field| format!("- **{}**: {}", escape(&field.name), value(field)));
    lines.collect::<Vec<String>>().join("\n")
}

/// A code block with a fence longer than any run of backticks inside.
fn fence(language: Option<&str>, text: &str) -> String {
    let ticks = "`".repeat((longest_run(text, '`') + 1).max(3));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '#' | '_');
    let language: String = language.unwrap_or_default().chars().filter(|c| plain(*c)).collect();
    let text = safe(text);
    format!("{ticks}{language}\n{}\n{ticks}", text.trim_end_matches('\n'))
}

fn block_quote(text: &str) -> String {
    text.lines()
        .map(|line| format!("> {line}").trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

fn details(title: &str, inside: &str) -> String {
    format!("<details><summary>{}</summary>\n\n{inside}\n\n</details>", escape_html(title))
}

fn lay_fold(fold: &Fold) -> String {
    let title = text_of(&fold.title);
    let inside = blocks(&fold.blocks);
    if !inside.is_empty() {
        return details(&gist_of(&title, &fold.summary), &inside);
    }
    let summary = Some(&fold.summary).filter(|summary| !summary.is_empty());
    let summary = summary.map(|summary| format!(" — {}", escape(summary))).unwrap_or_default();
    format!("*{}*{summary}", escape(title.trim()))
}

/// A title with a short summary.
fn gist_of(title: &str, gist: &str) -> String {
    let gist = format::first_line(gist, MAX_GIST_CHARS);
    if gist.is_empty() { title.to_owned() } else { format!("{title} — {gist}") }
}

/// The first line of text in the blocks.
fn gist(all: &[Block]) -> String {
    let words = all.iter().find_map(|block| match block {
        Block::Paragraph { spans } | Block::Heading { spans, .. } => Some(text_of(spans)),
        Block::Notice(notice) => Some(notice.text.clone()),
        Block::List(list) => Some(gist(&list.items.first()?.blocks)),
        Block::Terminal(terminal) => Some(terminal_line(terminal.lines.first()?)),
        Block::Quote { blocks } | Block::Aside { blocks } => Some(gist(blocks)),
        Block::Code(_)
        | Block::Table(_)
        | Block::Rule
        | Block::Diff(_)
        | Block::Fields { .. }
        | Block::Tree(_)
        | Block::File(_)
        | Block::Fold(_)
        | Block::Card(_)
        | Block::Question(_) => None,
    });
    words.unwrap_or_default()
}

fn indent(text: &str, width: usize) -> String {
    let pad = " ".repeat(width);
    let lines = text.lines().enumerate().map(|(at, line)| match (at, line) {
        (0, line) => line.to_owned(),
        (_, "") => String::new(),
        (_, line) => format!("{pad}{line}"),
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Check boxes are Unicode glyphs: GitHub would count `[ ]` as tasks of the pull request.
fn lay_list(list: &List) -> String {
    let items = list.items.iter().enumerate().map(|(at, item)| {
        let mark = match list.start {
            Some(start) => format!("{}. ", start.saturating_add(at as u64)),
            None => "- ".to_owned(),
        };
        let check = item.check.map(|check| format!("{} ", check.glyph())).unwrap_or_default();
        let inside = indent(&lay_item(item, list.tight), mark.len());
        format!("{mark}{check}{inside}").trim_end().to_owned()
    });
    items.collect::<Vec<String>>().join(if list.tight { "\n" } else { "\n\n" })
}

/// In a tight list a sub-list follows without a blank line, or the list would become loose.
fn lay_item(item: &ListItem, is_tight: bool) -> String {
    match item.blocks.as_slice() {
        [text @ Block::Paragraph { .. }, Block::List(list)]
            if is_tight
                && list.start.is_none_or(|start| start == 1)
                && list.items.first().is_some_and(|first| !first.blocks.is_empty()) =>
        {
            format!("{}\n{}", block(text), lay_list(list))
        }
        all => blocks(all),
    }
}

fn lay_table(table: &Table) -> String {
    let row = |cells: &[Vec<Span>]| {
        let cells = cells.iter().map(|spans| cell(spans));
        format!("| {} |", cells.collect::<Vec<String>>().join(" | "))
    };
    let column = |at: usize| match table.alignments.get(at).copied().unwrap_or_default() {
        Alignment::None => "---",
        Alignment::Left => ":--",
        Alignment::Center => ":-:",
        Alignment::Right => "--:",
    };
    let columns: Vec<&str> = (0..table.header.len()).map(column).collect();
    let rule = format!("| {} |", columns.join(" | "));
    let rows = table.rows.iter().map(|cells| row(cells));
    [row(&table.header), rule].into_iter().chain(rows).collect::<Vec<String>>().join("\n")
}

fn lay_diff(diff: &Diff) -> String {
    let mut lines = Vec::new();
    if let Some(path) = &diff.path {
        lines.push(format!("--- {path}\n+++ {path}"));
    }
    for hunk in &diff.hunks {
        lines.push("@@".to_owned());
        for line in &hunk.lines {
            let sign = match line.kind {
                DiffKind::Context => ' ',
                DiffKind::Added => '+',
                DiffKind::Removed => '-',
            };
            let text: String = line.spans.iter().map(|span| span.text.as_str()).collect();
            lines.push(format!("{sign}{text}"));
        }
    }
    fence(Some("diff"), &lines.join("\n"))
}

fn lay_terminal(terminal: &Terminal) -> String {
    let lines: Vec<String> = terminal.lines.iter().map(|runs| terminal_line(runs)).collect();
    let printed = (!lines.is_empty()).then(|| fence(None, &lines.join("\n")));
    let omitted = (terminal.omitted > 0)
        .then(|| format!("*{} not shown*", format::count(terminal.omitted, "line")));
    let exit_code = terminal.exit_code.filter(|code| *code != 0);
    let exit_code = exit_code.map(|code| format!("exit code {code}"));
    join_blocks([printed, omitted, exit_code].into_iter().flatten())
}

fn terminal_line(runs: &[AnsiRun]) -> String {
    runs.iter().map(|run| run.text.as_str()).collect()
}

fn lay_file(file: &FileReference) -> String {
    let name = file.name.as_deref().or(file.media_type.as_deref()).unwrap_or("file");
    let mut spans = vec![Span::plain(name).path()];
    if let (Some(span), Some(link)) = (spans.last_mut(), &file.link) {
        span.style.link = Some(link.clone());
    }
    let media_type = file.media_type.clone().filter(|_| file.name.is_some());
    let facts = media_type.into_iter().chain(file.bytes.map(format::size));
    let facts: String = facts.map(|fact| format!(" · {}", escape(&fact))).collect();
    format!("▣ {}{facts}", line(&spans))
}

/// Single-line text is inline; multi-line text is program output and goes into a code block.
fn lay_notice(notice: &Notice) -> String {
    let mark = Some(notice.glyph()).filter(|_| notice.tone != Tone::Muted);
    join_blocks(content(notice, mark))
}

fn content(notice: &Notice, mark: Option<&str>) -> Vec<String> {
    let text = notice.text.trim();
    let label = label(notice).map(|code| format!("**{}**", escape(code)));
    let mark = mark.map(|mark| format!("{mark} ")).unwrap_or_default();
    if text.contains('\n') {
        let label = label.map(|label| format!("{mark}{label}"));
        return label.into_iter().chain([fence(None, text)]).collect();
    }
    let text = Some(escape(text)).filter(|text| !text.is_empty());
    let words: Vec<String> = label.into_iter().chain(text).collect();
    vec![format!("{mark}{}", words.join(" · "))]
}

/// The notice's code, unless the text contains it.
fn label(notice: &Notice) -> Option<&str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], " ");
    let code = notice.code.as_deref().map(str::trim).filter(|code| !code.is_empty())?;
    (!plain(&notice.text).contains(&plain(code))).then_some(code)
}

/// A top-level notice as a GitHub alert.
fn alert(notice: &Notice) -> String {
    let kind = match notice.tone {
        Tone::Failed => "CAUTION",
        Tone::Warning | Tone::Interrupted => "WARNING",
        Tone::Pending
        | Tone::Running
        | Tone::Ok
        | Tone::Background
        | Tone::Muted
        | Tone::Accent
        | Tone::User
        | Tone::Added
        | Tone::Removed => "NOTE",
    };
    block_quote(&format!("[!{kind}]\n{}", join_blocks(content(notice, None))))
}

/// True for texts that need no fold.
fn is_short(text: &str) -> bool {
    let text = text.trim();
    !text.contains('\n') && text.chars().nth(200).is_none()
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
