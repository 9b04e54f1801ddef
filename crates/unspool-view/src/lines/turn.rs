//! Layout of turns: a header rule with facts, the user's message, and the items in order.

use unspool_model::part::Kind;

use super::wrap::clip;
use super::{Frame, Line, LineOptions, Style, blocks};
use crate::block::{Block, Tone};
use crate::present::notes::{BOOKMARK_GLYPH, NoteView};
use crate::present::{Item, PartView, ReasoningView, TurnView};

/// Lays a turn out in `width` columns.
pub fn turn_lines(view: &TurnView, width: usize, options: &LineOptions<'_>) -> Vec<Line> {
    let frame = Frame::new(width, options);
    let mut lines = vec![header_line(view, width)];
    lines.extend(view.note.iter().flat_map(|note| lay_note(note, &frame)));
    if !view.user.is_empty() {
        lines.push(Line::default());
        lines.extend(lay_user(&view.user, &frame));
    }
    let mut last: Option<&Item> = None;
    for item in &view.items {
        let laid = lay_item(item, &frame);
        if laid.is_empty() {
            continue;
        }
        let joins = |last: &Item| (is_dense(last) && is_dense(item)) || continues_group(item);
        if !last.is_some_and(joins) {
            lines.push(Line::default());
        }
        lines.extend(laid);
        last = Some(item);
    }
    frame.clip_all(lines)
}

/// Lays one item of a turn out in `width` columns.
pub fn item_lines(item: &Item, width: usize, options: &LineOptions<'_>) -> Vec<Line> {
    let frame = Frame::new(width, options);
    frame.clip_all(lay_item(item, &frame))
}

/// The number of lines before the `nth` part of a reasoning block.
pub fn lines_before(
    view: &ReasoningView,
    nth: usize,
    width: usize,
    options: &LineOptions<'_>,
) -> usize {
    let parts = view.parts.get(..nth).unwrap_or_default();
    lay_reasoning(view, parts, &Frame::new(width, options)).len()
}

/// `── Turn 3 · user · completed · 12.4 s · 1,729 tokens ───`
pub fn header_line(view: &TurnView, width: usize) -> Line {
    let header = &view.header;
    let line_width = width.clamp(super::MIN_WIDTH, super::MAX_LINE_WIDTH);
    let mut line = Line::of("── ", Style::gutter());
    line.push(&format!("Turn {}", header.number), Style::default().strong());
    let dot = |line: &mut Line, text: &str, style: Style| {
        line.push(" · ", Style::gutter());
        line.push(text, style);
    };
    let muted = Style::tone(Tone::Muted);
    for fact in header.facts() {
        dot(&mut line, fact.text, Style::tone(fact.tone.unwrap_or(Tone::Muted)));
    }
    for fact in header.metrics() {
        dot(&mut line, &fact, muted.clone());
    }
    if view.note.as_ref().is_some_and(NoteView::is_bookmark) {
        dot(&mut line, BOOKMARK_GLYPH, Style::tone(Tone::Accent));
    }
    // Models come last, and only if they fit without clipping.
    for model in &header.models {
        if line.width() + super::width(model) + 6 <= line_width {
            dot(&mut line, model, muted.clone());
        }
    }
    let mut line = clip(line, line_width.saturating_sub(3));
    let rest = line_width.saturating_sub(line.width() + 1);
    line.push(&format!(" {}", "─".repeat(rest)), Style::gutter());
    line
}

/// Lays the user's message out in `width` columns.
pub fn user_lines(blocks: &[Block], width: usize, options: &LineOptions<'_>) -> Vec<Line> {
    let frame = Frame::new(width, options);
    frame.clip_all(lay_user(blocks, &frame))
}

fn lay_user(blocks: &[Block], frame: &Frame<'_>) -> Vec<Line> {
    let style = Style::tone(Tone::User).strong();
    let mut inner = frame.clone();
    inner.base = Style::tone(Tone::User);
    inner.inside(("❯ ", style), ("  ", Style::default()), |frame| blocks::lay(blocks, frame))
}

/// True for items that need no blank line between them.
pub fn is_dense(item: &Item) -> bool {
    match item {
        Item::Reasoning(_) => false,
        Item::Part(part) => match part.kind {
            Kind::Tool
            | Kind::Agent
            | Kind::Notice
            | Kind::File
            | Kind::Source
            | Kind::SkillLoad
            | Kind::McpSnapshot
            | Kind::ContextInfo
            | Kind::Data => true,
            Kind::Text
            | Kind::Reasoning
            | Kind::Interjection
            | Kind::TaskList
            | Kind::Compaction
            | Kind::Patch
            | Kind::Error => false,
        },
    }
}

/// True for an item inside a group of parallel calls that directly follows another one of the
/// group: no blank line parts them.
pub fn continues_group(item: &Item) -> bool {
    match item {
        Item::Reasoning(_) => false,
        Item::Part(part) => {
            part.before == 0 && part.group.as_ref().is_some_and(|member| member.title.is_none())
        }
    }
}

fn lay_item(item: &Item, frame: &Frame<'_>) -> Vec<Line> {
    match item {
        Item::Part(part) => lay_part(part, frame),
        Item::Reasoning(reasoning) => lay_reasoning(reasoning, &reasoning.parts, frame),
    }
}

/// Lays a note out in `width` columns. A bookmark has no lines: it is a mark at its target.
pub fn note_lines(note: &NoteView, width: usize, options: &LineOptions<'_>) -> Vec<Line> {
    let frame = Frame::new(width, options);
    frame.clip_all(lay_note(note, &frame))
}

fn lay_note(note: &NoteView, frame: &Frame<'_>) -> Vec<Line> {
    let mut inner = frame.clone();
    inner.base = Style::tone(Tone::Accent);
    inner.in_card = false;
    let first = format!("  {} ", note.glyph());
    let (style, text) = (Style::tone(Tone::Accent), note.blocks());
    inner.inside((&first, style), ("    ", Style::default()), |frame| blocks::lay(&text, frame))
}

/// Adds the note of a part to its lines: a bookmark at the end of the first one, a text below them.
/// A part that shows nothing gets a line for its bookmark.
fn lay_with_note(lines: &mut Vec<Line>, note: &NoteView, frame: &Frame<'_>) {
    if !note.is_bookmark() {
        lines.extend(lay_note(note, frame));
        return;
    }
    if lines.is_empty() {
        lines.push(Line::of(" ", Style::default()));
    }
    if let Some(first) = lines.first_mut() {
        *first = clip(std::mem::take(first), frame.width.saturating_sub(2));
        first.push(&format!(" {BOOKMARK_GLYPH}"), Style::tone(Tone::Accent));
    }
}

/// A part with the user's note.
fn lay_part(part: &PartView, frame: &Frame<'_>) -> Vec<Line> {
    lay_in_group(part, frame, |frame| lay_noted(part, frame, |frame| lay_content(part, frame)))
}

/// The content of a part and the user's note. A bookmark has its own columns, so that it covers
/// nothing.
fn lay_noted(
    part: &PartView,
    frame: &Frame<'_>,
    lay: impl FnOnce(&Frame<'_>) -> Vec<Line>,
) -> Vec<Line> {
    let Some(note) = &part.note else { return lay(frame) };
    let mut inner = frame.clone();
    if note.is_bookmark() {
        inner.width = inner.width.saturating_sub(2).max(super::MIN_WIDTH);
    }
    let mut lines = lay(&inner);
    lay_with_note(&mut lines, note, frame);
    lines
}

/// The content of a part; of a group of parallel calls indented behind a rail, the first one below
/// the group's title.
fn lay_in_group(
    part: &PartView,
    frame: &Frame<'_>,
    lay: impl FnOnce(&Frame<'_>) -> Vec<Line>,
) -> Vec<Line> {
    let Some(member) = part.group.as_ref().filter(|_| !part.blocks.is_empty()) else {
        return lay(frame);
    };
    let mut lines = Vec::new();
    if let Some(title) = &member.title {
        let mut head = Line::of("┌ ", Style::gutter());
        head.push(title, Style::tone(Tone::Muted));
        lines.push(clip(head, frame.line_width()));
    }
    // Behind a reasoning block the rail continues in the column that it has inside the block.
    let rail = (if member.after_block { "  │ " } else { "│ " }, Style::gutter());
    lines.extend(frame.inside(rail.clone(), rail, lay));
    lines
}

fn lay_content(part: &PartView, frame: &Frame<'_>) -> Vec<Line> {
    match part.kind {
        Kind::Text => {
            let mark = if part.bullet { "◆ " } else { "  " };
            let mark = (mark, Style::tone(Tone::Accent));
            frame.inside(mark, ("  ", Style::default()), |frame| blocks::lay(&part.blocks, frame))
        }
        Kind::Reasoning => part.blocks.iter().flat_map(|block| lay_thought(block, frame)).collect(),
        Kind::Interjection => lay_user(&part.blocks, frame),
        Kind::Agent => lay_agents(&part.blocks, frame),
        Kind::Tool
        | Kind::TaskList
        | Kind::SkillLoad
        | Kind::McpSnapshot
        | Kind::ContextInfo
        | Kind::Compaction
        | Kind::File
        | Kind::Source
        | Kind::Patch
        | Kind::Notice
        | Kind::Error
        | Kind::Data => blocks::lay(&part.blocks, frame),
    }
}

/// The agent tree, then the prompts and reports of the agents behind a rail, as in a card.
fn lay_agents(blocks: &[Block], frame: &Frame<'_>) -> Vec<Line> {
    let Some((tree, rest)) = blocks.split_first() else { return Vec::new() };
    let mut lines = blocks::lay(std::slice::from_ref(tree), frame);
    let mut inner = frame.clone();
    inner.in_card = true;
    let rail = ("  │ ", Style::gutter());
    lines.extend(inner.inside(rail.clone(), rail, |frame| blocks::lay(rest, frame)));
    lines
}

fn lay_thought(block: &Block, frame: &Frame<'_>) -> Vec<Line> {
    if let Block::Fold(fold) = block {
        return blocks::lay_fold(fold, Some("◌"), frame);
    }
    blocks::lay(std::slice::from_ref(block), frame)
}

/// A closed reasoning block: its title, then a line for each call and agent. Only its words are
/// folded (C-23), unless the reader wants calls folded too.
pub fn closed_reasoning_lines(
    view: &ReasoningView,
    width: usize,
    options: &LineOptions<'_>,
) -> Vec<Line> {
    let frame = Frame::new(width, options);
    let mut lines = lay_reasoning(view, &[], &frame);
    let rail = ("┊ ", Style::gutter());
    for part in &view.parts {
        let laid = frame.inside(rail.clone(), rail.clone(), |frame| {
            if part.kind == Kind::Reasoning || view.folds_calls {
                // Of what is folded the user's note stays visible; that of the first is at the title.
                let note = part.note.as_ref().filter(|_| part.id != view.id);
                let mut lines = Vec::new();
                note.into_iter().for_each(|note| lay_with_note(&mut lines, note, frame));
                return lines;
            }
            if part.kind == Kind::Agent {
                // Each agent of the tree has a line of its own.
                let tree = part.blocks.get(..1).unwrap_or_default().to_vec();
                return lay_part(&PartView { blocks: tree, ..part.clone() }, frame);
            }
            lay_closed(part, frame)
        });
        lines.extend(laid);
    }
    frame.clip_all(lines)
}

/// Lays out a closed part: one line, and the user's note.
pub fn closed_part_lines(part: &PartView, width: usize, options: &LineOptions<'_>) -> Vec<Line> {
    let frame = Frame::new(width, options);
    frame.clip_all(lay_closed(part, &frame))
}

fn lay_closed(part: &PartView, frame: &Frame<'_>) -> Vec<Line> {
    lay_in_group(part, frame, |frame| {
        lay_noted(part, frame, |frame| lay_content(part, frame).into_iter().take(1).collect())
    })
}

/// The title with the first words of the reasoning, then the block's tools and the reasoning
/// between them, in order. When expanded, it also shows the first reasoning part in full.
fn lay_reasoning(view: &ReasoningView, parts: &[PartView], frame: &Frame<'_>) -> Vec<Line> {
    let muted = Style::tone(Tone::Muted);
    let mut head = Line::of("◌ ", muted.clone());
    head.push(&view.title, Style { emphasis: true, ..muted.clone() });
    let open = frame.options.expand;
    if !open && !view.summary.is_empty() {
        head.push(" — ", Style::gutter());
        head.push(&view.summary, Style { dim: true, ..muted });
    }
    let mut lines = vec![clip(head, frame.line_width())];
    if !open && let Some(note) = view.parts.first().and_then(|first| first.note.as_ref()) {
        lay_with_note(&mut lines, note, frame);
    }
    // When closed, the title already summarises the first part.
    let parts = if open { parts } else { parts.get(1..).unwrap_or_default() };
    let rail = ("┊ ", Style::gutter());
    for part in parts {
        lines.extend(frame.inside(rail.clone(), rail.clone(), |frame| lay_part(part, frame)));
    }
    lines
}
