//! Layout of each block variant. The match is exhaustive: a new variant must be added here.

use super::highlighter::HighlightedCode;
use super::wrap::{Break, clip, span_line, span_lines, width, wrap};
use super::{Frame, Line, Style, TextRole, card, diff, table};
use crate::block::{
    Block, Check, Code, Field, FileReference, Fold, List, ListItem, Node, Notice, Span, Terminal,
    Tone, Tree, TreeDetail,
};
use crate::present::format;

/// Lays blocks out from top to bottom.
pub fn lay(blocks: &[Block], frame: &Frame<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut last: Option<&Block> = None;
    for block in blocks {
        let laid = lay_block(block, frame);
        if laid.is_empty() {
            continue;
        }
        // In a card, a notice or file belongs to the block above it: no blank line between them.
        let belongs = frame.in_card && matches!(block, Block::Notice(_) | Block::File(_));
        let is_near = |last| belongs || (is_dense(last) && is_dense(block));
        if last.is_some_and(|last| !is_near(last)) {
            lines.push(Line::default());
        }
        lines.extend(laid);
        last = Some(block);
    }
    lines
}

/// True for blocks that need no blank line between them.
fn is_dense(block: &Block) -> bool {
    match block {
        Block::Notice(_)
        | Block::File(_)
        | Block::Fold(_)
        | Block::Card(_)
        | Block::Terminal(_)
        | Block::Fields { .. }
        | Block::Tree(_)
        | Block::Question(_) => true,
        Block::Paragraph { .. }
        | Block::Heading { .. }
        | Block::List(_)
        | Block::Quote { .. }
        | Block::Code(_)
        | Block::Table(_)
        | Block::Rule
        | Block::Diff(_)
        | Block::Aside { .. } => false,
    }
}

fn lay_block(block: &Block, frame: &Frame<'_>) -> Vec<Line> {
    match block {
        Block::Paragraph { spans } => paragraph(spans, frame),
        Block::Heading { level, spans } => heading(*level, spans, frame),
        Block::List(list) => lay_list(list, frame),
        Block::Quote { blocks } => {
            let rail = ("▎ ", Style::gutter());
            frame.inside(rail.clone(), rail, |frame| lay(blocks, frame))
        }
        Block::Code(code) if frame.in_card => lay_code(code, frame),
        Block::Code(code) => frame.indented(|frame| lay_code(code, frame)),
        Block::Table(table) => table::lay(table, frame),
        Block::Rule => vec![Line::of(&"─".repeat(frame.line_width().min(40)), Style::gutter())],
        Block::Diff(diff) => diff::lay(diff, frame),
        Block::Terminal(terminal) => lay_terminal(terminal, frame),
        Block::Fields { fields } => lay_fields(fields, frame),
        Block::Tree(tree) => lay_tree(tree, frame),
        Block::Notice(notice) => lay_notice(notice, frame),
        Block::File(file) => lay_file(file, frame),
        Block::Aside { blocks } => {
            let rail = ("┊ ", Style::gutter());
            frame.dim().inside(rail.clone(), rail, |frame| lay(blocks, frame))
        }
        Block::Fold(fold) => lay_fold(fold, None, frame),
        Block::Card(card) => card::lay(card, frame),
        Block::Question(question) => card::lay_question(question, frame),
    }
}

pub fn paragraph(spans: &[Span], frame: &Frame<'_>) -> Vec<Line> {
    let lines = span_lines(spans, &frame.base).into_iter();
    lines.flat_map(|line| wrap(line, frame.width, Break::Words)).collect()
}

fn heading(level: u8, spans: &[Span], frame: &Frame<'_>) -> Vec<Line> {
    let mut inner = frame.clone();
    inner.base = Style { dim: frame.base.dim, ..Style::role(TextRole::Heading).strong() };
    let mark = format!("{} ", "#".repeat(usize::from(level.clamp(1, 6))));
    inner.inside((&mark, Style::gutter()), (&" ".repeat(mark.len()), Style::default()), |frame| {
        paragraph(spans, frame)
    })
}

fn lay_list(list: &List, frame: &Frame<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let rest = list.items.len().saturating_sub(1) as u64;
    let last = list.start.map(|start| start.saturating_add(rest));
    let digits = last.map_or(0, |last| last.to_string().len());
    let limit = line_limit(frame).unwrap_or(usize::MAX);
    for (at, item) in list.items.iter().enumerate() {
        if lines.len() >= limit && at + 1 < list.items.len() {
            lines.push(more_line(list.items.len() - at, "item"));
            break;
        }
        if at > 0 && !list.tight {
            lines.push(Line::default());
        }
        let number = list.start.map(|start| start.saturating_add(at as u64));
        lines.extend(lay_item(item, number, digits, frame));
    }
    lines
}

fn lay_item(item: &ListItem, number: Option<u64>, digits: usize, frame: &Frame<'_>) -> Vec<Line> {
    let (mark, style) = match (item.check, number) {
        (Some(check), _) => {
            let style = match check {
                Check::Open | Check::Cancelled => Style::gutter(),
                Check::Running => Style::tone(Tone::Running),
                Check::Done => Style::tone(Tone::Ok),
            };
            (format!("{} ", check.glyph()), style)
        }
        (None, Some(number)) => (format!("{number:>digits$}. "), Style::gutter()),
        (None, None) => ("• ".to_owned(), Style::gutter()),
    };
    let hang = " ".repeat(width(&mark));
    let laid = frame.inside((&mark, style.clone()), (&hang, Style::default()), |frame| {
        // No blank line between a tight item's text and its sub-list.
        let tight = item.blocks.len() <= 1 || matches!(item.blocks.get(1), Some(Block::List(_)));
        match tight {
            true => item.blocks.iter().flat_map(|block| lay_block(block, frame)).collect(),
            false => lay(&item.blocks, frame),
        }
    });
    if laid.is_empty() { vec![Line::of(mark.trim_end(), style)] } else { laid }
}

/// The line limit inside a card, if there is one.
pub fn line_limit(frame: &Frame<'_>) -> Option<usize> {
    frame.options.output_lines.filter(|_| frame.in_card)
}

/// `… +12 lines`: the count of hidden lines or items.
pub fn more_line(count: usize, noun: &str) -> Line {
    Line::of(&format!("… +{}", format::count(count, noun)), Style::gutter())
}

fn lay_code(code: &Code, frame: &Frame<'_>) -> Vec<Line> {
    let source: Vec<&str> = code.text.split('\n').collect();
    let limit = line_limit(frame).unwrap_or(usize::MAX);
    // Indentation already marks a code block; the code colour is for inline code.
    let style = Style { dim: frame.base.dim, ..Style::default() };
    let digits = code
        .first_line
        .map_or(0, |first| first.saturating_add(source.len().min(limit) as u64).to_string().len());
    let mut colours = HighlightedCode::of(code, frame.options.colours);
    let mut start = 0;
    let mut lines = Vec::new();
    for (at, text) in source.iter().enumerate() {
        if lines.len() >= limit && at + 1 < source.len() {
            lines.push(more_line(source.len() - at, "line"));
            break;
        }
        let from = start;
        start += text.len() + 1;
        let text = text.strip_suffix('\r').unwrap_or(text);
        let number =
            code.first_line.map(|first| format!("{:>digits$}  ", first.saturating_add(at as u64)));
        let number = number.unwrap_or_default();
        let hang = " ".repeat(number.len());
        let room = limit - lines.len().min(limit);
        lines.extend(frame.inside(
            (&number, Style::gutter()),
            (&hang, Style::default()),
            |frame| {
                wrap_limited(colours.line(from, text, &style), frame.width, room, Break::Anywhere)
            },
        ));
    }
    lines
}

/// Wraps one line of output. A line that alone exceeds the limit is clipped.
pub fn wrap_limited(line: Line, width: usize, room: usize, mode: Break) -> Vec<Line> {
    let room = room.max(1);
    if line.width() > width.saturating_mul(room) {
        return wrap(clip(line, width.saturating_mul(room)), width, Break::Anywhere);
    }
    wrap(line, width, mode)
}

fn lay_terminal(terminal: &Terminal, frame: &Frame<'_>) -> Vec<Line> {
    let limit = line_limit(frame).unwrap_or(usize::MAX);
    let total = terminal.lines.len();
    let failed = terminal.exit_code.is_some_and(|code| code != 0);
    let mut lines = Vec::new();
    // Failed command: show the end, which has the error. Otherwise show the start.
    // A single line over the limit is shown instead of being replaced by a count.
    let skipped = if failed && total > limit.saturating_add(1) { total - limit } else { 0 };
    if skipped > 0 {
        lines.push(more_line(skipped, "line"));
    }
    for (at, runs) in terminal.lines.iter().enumerate().skip(skipped) {
        if skipped == 0 && lines.len() >= limit && at + 1 < total {
            lines.push(more_line(total - at + terminal.omitted, "line"));
            break;
        }
        let mut line = Line::default();
        for run in runs {
            let mut style = Style::from_ansi(&run.style);
            style.dim |= frame.base.dim;
            line.push(&run.text, style);
        }
        let room = limit - lines.len().min(limit);
        lines.extend(wrap_limited(line, frame.width, room, Break::Words));
    }
    if terminal.omitted > 0 && limit == usize::MAX {
        lines.push(more_line(terminal.omitted, "line"));
    }
    if let Some(code) = terminal.exit_code.filter(|code| *code != 0) {
        lines.push(Line::of(&format!("exit code {code}"), Style::tone(Tone::Failed)));
    }
    lines
}

fn lay_fields(fields: &[Field], frame: &Frame<'_>) -> Vec<Line> {
    let widest = fields.iter().map(|field| width(&field.name)).max().unwrap_or(0).min(18);
    let mut lines = Vec::new();
    let is_narrow = frame.width < widest + 2 + super::MIN_WIDTH;
    for field in fields {
        if is_narrow {
            lines.push(clip(Line::of(&field.name, Style::gutter()), frame.width));
            lines.extend(paragraph(&field.value, frame));
            continue;
        }
        let mut name = clip(Line::of(&field.name, Style::gutter()), widest).text();
        name.push_str(&" ".repeat(widest.saturating_sub(width(&name)) + 2));
        let hang = " ".repeat(widest + 2);
        let laid = frame.inside((&name, Style::gutter()), (&hang, Style::default()), |frame| {
            paragraph(&field.value, frame)
        });
        lines.extend(laid);
    }
    lines
}

fn lay_tree(tree: &Tree, frame: &Frame<'_>) -> Vec<Line> {
    let shown = if frame.options.expand { tree.nodes.len() } else { tree.shown };
    // Top-level agents have no branch lines, like cards; only their children do.
    let mut lines: Vec<Line> = tree
        .nodes
        .iter()
        .take(shown)
        .flat_map(|node| lay_node(node, "  ", tree.detail, frame))
        .collect();
    if tree.nodes.len() > shown {
        lines.push(Line::of(&format!("+{}", tree.nodes.len() - shown), Style::gutter()));
    }
    lines
}

fn lay_nodes(nodes: &[Node], detail: TreeDetail, frame: &Frame<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let is_last = at + 1 == nodes.len();
        let (branch, trunk) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        lines.extend(frame.inside((branch, Style::gutter()), (trunk, Style::gutter()), |frame| {
            lay_node(node, "", detail, frame)
        }));
    }
    lines
}

/// A node with its note and children below it, indented by `below`.
fn lay_node(node: &Node, below: &str, detail: TreeDetail, frame: &Frame<'_>) -> Vec<Line> {
    let mut head = Line::of(node.icon.glyph(), Style::tone(node.icon.tone()));
    head.push(" ", Style::default());
    let label = span_line(&node.label, &frame.base);
    label.runs.into_iter().for_each(|run| head.push(&run.text, run.style));
    head.push(&format!("  {}", node.state), Style::tone(node.icon.tone()));
    let mut lines = vec![clip(head, frame.width)];
    let space = (below, Style::default());
    lines.extend(frame.inside(space.clone(), space, |frame| {
        let mut lines = Vec::new();
        if detail == TreeDetail::Full && !node.note.is_empty() {
            let note = span_line(&node.note, &frame.dim().base);
            lines.extend(frame.indented(|frame| vec![clip(note, frame.width)]));
        }
        lines.extend(lay_nodes(&node.children, detail, frame));
        lines
    }));
    lines
}

fn lay_notice(notice: &Notice, frame: &Frame<'_>) -> Vec<Line> {
    let mark = format!("{} ", notice.glyph());
    let mut spans = Vec::new();
    if let Some(code) = &notice.code {
        let space = if notice.text.is_empty() { "" } else { "  " };
        spans.push(Span::plain(format!("{code}{space}")).strong());
    }
    spans.push(Span::plain(notice.text.trim()));
    let style = Style::tone(notice.tone);
    let mut inner = frame.clone();
    inner.base = Style { dim: frame.base.dim, ..style.clone() };
    let mut lines =
        inner.inside((&mark, style), ("  ", Style::default()), |frame| paragraph(&spans, frame));
    if let Some(limit) = line_limit(frame).filter(|limit| lines.len() > limit + 1) {
        let hidden = lines.len() - limit;
        lines.truncate(limit);
        lines.push(more_line(hidden, "line"));
    }
    lines
}

fn lay_file(file: &FileReference, frame: &Frame<'_>) -> Vec<Line> {
    let name = file.name.as_deref().or(file.media_type.as_deref()).unwrap_or("file");
    let mut spans = vec![Span::plain("▣ ").dim(), Span::plain(name).path()];
    if let (Some(span), Some(link)) = (spans.last_mut(), &file.link) {
        span.style.link = Some(link.clone());
    }
    let media_type = file.media_type.clone().filter(|_| file.name.is_some());
    for fact in media_type.into_iter().chain(file.bytes.map(format::size)) {
        spans.push(Span::plain(format!(" · {fact}")).dim());
    }
    paragraph(&spans, frame)
}

/// A fold; one line while closed. `glyph` replaces the triangle.
pub fn lay_fold(fold: &Fold, glyph: Option<&str>, frame: &Frame<'_>) -> Vec<Line> {
    let open = fold.open || frame.options.expand;
    let has_body = !fold.blocks.is_empty();
    let usual = if open && has_body { "▾" } else { "▸" };
    let style = Style::tone(fold.tone);
    let mut head = Line::of(&format!("{} ", glyph.unwrap_or(usual)), style.clone());
    let title = span_line(&fold.title, &style);
    title.runs.into_iter().for_each(|run| head.push(&run.text, run.style));
    let is_shown = open && has_body;
    if !is_shown && !fold.summary.is_empty() {
        head.push(" — ", Style::gutter());
        head.push(&fold.summary, Style { dim: true, ..style });
    }
    let mut lines = vec![clip(head, frame.width)];
    if open {
        let inner = if fold.tone == Tone::Muted { frame.dim() } else { frame.clone() };
        lines.extend(inner.indented(|frame| lay(&fold.blocks, frame)));
    }
    lines
}
