//! Blocks as Markdown, for people who paste what an agent did into an issue or a pull request. What
//! an agent wrote stays text: it opens no fence, no list and no HTML of ours.

use unspool_core::block::{
    Block, Card, Check, Code, Decision, Diff, DiffKind, FileReference, List, Node, Question, Span,
    Table, Terminal, text_of,
};
use unspool_core::part::Kind;
use unspool_core::present::{Item, PartView, TurnView, format};

use crate::text::safe;

/// A turn: the user's words, then its parts in order.
pub fn turn(view: &TurnView) -> String {
    let mut out = Vec::new();
    if !view.user.is_empty() {
        out.push(quoted(&blocks(&view.user)));
    }
    for item in &view.items {
        match item {
            Item::Part(part) => out.push(self::part(part)),
            Item::Reasoning(block) => {
                let inside: Vec<String> = block.parts.iter().map(inner).collect();
                out.push(folded(&block.title, &inside.join("\n\n")));
            }
        }
    }
    out.retain(|piece| !piece.trim().is_empty());
    format!("## Turn {}\n\n{}\n", view.header.number, out.join("\n\n"))
}

/// One part. What the user said in between is the user's, as a prompt is.
pub fn part(view: &PartView) -> String {
    let written = blocks(&view.blocks);
    if view.kind == Kind::Interjection { quoted(&written) } else { written }
}

/// A part of a reasoning block: who has opened the block needs no second fold.
fn inner(view: &PartView) -> String {
    match view.blocks.as_slice() {
        [Block::Fold(fold)] if view.kind == Kind::Reasoning && !fold.blocks.is_empty() => {
            blocks(&fold.blocks)
        }
        all => blocks(all),
    }
}

pub fn blocks(all: &[Block]) -> String {
    let written: Vec<String> = all.iter().map(block).filter(|text| !text.is_empty()).collect();
    written.join("\n\n")
}

fn block(one: &Block) -> String {
    match one {
        Block::Paragraph { spans } => spans_of(spans),
        Block::Heading { level, spans } => {
            format!("{} {}", "#".repeat(usize::from(*level).clamp(1, 6)), spans_of(spans))
        }
        Block::List(list) => lay_list(list),
        Block::Quote { blocks: inside } => quoted(&blocks(inside)),
        Block::Code(Code { language, text, .. }) => fence(language.as_deref(), text),
        Block::Table(table) => lay_table(table),
        Block::Rule => "---".to_owned(),
        Block::Diff(diff) => lay_diff(diff),
        Block::Terminal(terminal) => lay_terminal(terminal),
        Block::Fields { fields } => {
            let lines = fields
                .iter()
                .map(|field| format!("- **{}**: {}", escaped(&field.name), spans_of(&field.value)));
            lines.collect::<Vec<String>>().join("\n")
        }
        Block::Tree(tree) => nodes(&tree.nodes, 0).join("\n"),
        Block::Notice(notice) => {
            let code = notice.code.as_ref().map(|code| format!("**{}** ", escaped(code)));
            quoted(&format!("{}{}", code.unwrap_or_default(), escaped(notice.text.trim())))
        }
        Block::File(file) => lay_file(file),
        Block::Aside { blocks: inside } => quoted(&blocks(inside)),
        Block::Fold(fold) if fold.blocks.is_empty() => format!("*{}*", spans_of(&fold.title)),
        Block::Fold(fold) => folded(&text_of(&fold.title), &blocks(&fold.blocks)),
        Block::Card(card) => lay_card(card),
        Block::Question(question) => lay_question(question),
    }
}

/// Characters that would mean something at the place where they stand.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut starts = true;
    let text = safe(text);
    let mut signs = text.chars().peekable();
    while let Some(c) = signs.next() {
        let digits = starts && out.ends_with(|before: char| before.is_ascii_digit());
        match c {
            '\n' => {
                // A line break that stays one.
                out.push_str("  \n");
                starts = true;
                continue;
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' => out.push('\\'),
            '#' | '+' | '-' | '=' if starts && !digits => out.push('\\'),
            // A number at the start of a line, and only before a space.
            '.' | ')' if digits && signs.peek().is_none_or(|next| next.is_whitespace()) => {
                out.push('\\');
            }
            '&' => {
                out.push_str("&amp;");
                continue;
            }
            c if c.is_control() && c != '\t' => continue,
            _ => {}
        }
        starts &= c.is_whitespace() || c.is_ascii_digit();
        out.push(c);
    }
    out
}

fn spans_of(spans: &[Span]) -> String {
    spans.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    let look = &span.look;
    if span.text.trim().is_empty() {
        return span.text.clone();
    }
    let mut text = if look.code || look.path { ticked(&span.text) } else { escaped(&span.text) };
    let wrap = |text: &str, mark: &str| {
        let (before, rest) = text.split_at(text.len() - text.trim_start().len());
        let (inside, after) = rest.split_at(rest.trim_end().len());
        format!("{before}{mark}{inside}{mark}{after}")
    };
    if look.strong {
        text = wrap(&text, "**");
    }
    if look.emphasis {
        text = wrap(&text, "*");
    }
    if look.strike {
        text = wrap(&text, "~~");
    }
    match &look.link {
        Some(link) => format!("[{text}](<{}>)", link.replace(['<', '>'], "")),
        None => text,
    }
}

/// Code in a line, whatever ticks stand in it.
fn ticked(text: &str) -> String {
    let text = safe(text).replace('\n', " ");
    let ticks = "`".repeat(longest_run(&text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str, mark: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == mark { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Code between fences that nothing in it closes.
fn fence(language: Option<&str>, text: &str) -> String {
    let ticks = "`".repeat((longest_run(text, '`') + 1).max(3));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '#' | '_');
    let language: String = language.unwrap_or_default().chars().filter(|c| plain(*c)).collect();
    let text = safe(text);
    format!("{ticks}{language}\n{}\n{ticks}", text.trim_end_matches('\n'))
}

fn quoted(text: &str) -> String {
    text.lines()
        .map(|line| format!("> {line}").trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

fn folded(title: &str, inside: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    format!("<details><summary>{title}</summary>\n\n{inside}\n\n</details>")
}

fn indented(text: &str, width: usize) -> String {
    let pad = " ".repeat(width);
    let lines = text.lines().enumerate().map(|(at, line)| match (at, line) {
        (0, line) => line.to_owned(),
        (_, "") => String::new(),
        (_, line) => format!("{pad}{line}"),
    });
    lines.collect::<Vec<String>>().join("\n")
}

fn lay_list(list: &List) -> String {
    let items = list.items.iter().enumerate().map(|(at, item)| {
        let mark = match list.start {
            Some(start) => format!("{}. ", start.saturating_add(at as u64)),
            None => "- ".to_owned(),
        };
        let check = match item.check {
            None => "",
            Some(Check::Open | Check::Running) => "[ ] ",
            Some(Check::Done) => "[x] ",
            Some(Check::Cancelled) => "[ ] (cancelled) ",
        };
        format!("{mark}{check}{}", indented(&blocks(&item.blocks), mark.len()))
    });
    items.collect::<Vec<String>>().join(if list.tight { "\n" } else { "\n\n" })
}

fn lay_table(table: &Table) -> String {
    let row = |cells: &[Vec<Span>]| {
        let cells = cells.iter().map(|cell| spans_of(cell).replace('\n', " "));
        format!("| {} |", cells.collect::<Vec<String>>().join(" | "))
    };
    let rule = format!("|{}", " --- |".repeat(table.header.len()));
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
    let line = |runs: &Vec<_>| -> String {
        runs.iter().map(|run: &unspool_core::block::AnsiRun| run.text.as_str()).collect()
    };
    let lines: Vec<String> = terminal.lines.iter().map(line).collect();
    let mut out = if lines.is_empty() { Vec::new() } else { vec![fence(None, &lines.join("\n"))] };
    if terminal.omitted > 0 {
        out.push(format!("*{} not shown*", format::count(terminal.omitted, "line")));
    }
    if let Some(code) = terminal.exit_code.filter(|code| *code != 0) {
        out.push(format!("exit code {code}"));
    }
    out.join("\n\n")
}

fn nodes(all: &[Node], depth: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for node in all {
        let (pad, label) = ("  ".repeat(depth), spans_of(&node.label));
        lines.push(format!("{pad}- {} {label} ({})", node.icon.glyph(), node.state));
        lines.extend(nodes(&node.children, depth + 1));
    }
    lines
}

fn lay_file(file: &FileReference) -> String {
    let name = file.name.as_deref().or(file.media_type.as_deref()).unwrap_or("file");
    match &file.link {
        Some(link) => format!("[{}](<{}>)", escaped(name), link.replace(['<', '>'], "")),
        None => format!("*{}*", escaped(name)),
    }
}

fn lay_card(card: &Card) -> String {
    let state = card.badge.state.as_ref().map(|state| format!(" {state}")).unwrap_or_default();
    let head = format!(
        "**{}** {} `{}`{state}",
        escaped(&card.title),
        spans_of(&card.summary),
        card.badge.word
    );
    let asked = card.question.as_ref().map(lay_question);
    let body = blocks(&card.body);
    let body = (!body.is_empty()).then(|| folded("Details", &body));
    [Some(head), asked, body].into_iter().flatten().collect::<Vec<String>>().join("\n\n")
}

fn lay_question(question: &Question) -> String {
    let mut lines = Vec::new();
    for item in &question.items {
        lines.push(format!("**{}**", escaped(item.question.trim())));
        for option in &item.options {
            let mark = if option.chosen { "x" } else { " " };
            lines.push(format!("- [{mark}] {}", escaped(&option.label)));
        }
        lines.extend(item.answer.as_ref().map(|answer| format!("→ {}", escaped(answer.trim()))));
    }
    if let Some(answer) = &question.answer {
        let word = match answer.decision {
            Decision::Allowed | Decision::Answered => "✓",
            Decision::Denied | Decision::Declined => "✕",
        };
        lines.push(format!("{word} {} {}", answer.decision.name(), escaped(answer.text.trim())));
    }
    quoted(&lines.join("\n\n"))
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
