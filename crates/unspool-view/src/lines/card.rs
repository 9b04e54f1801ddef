//! Layout of tool call cards and of the questions attached to them.

use super::wrap::{Break, clip, span_line, tail, width, wrap};
use super::{Frame, Line, Style, TextRole, blocks};
use crate::block::{Block, Card, Question, QuestionItem, Span, Tone};
use crate::present::format;

/// The head on one line with the badge right-aligned; the body behind a rail.
pub fn lay(card: &Card, frame: &Frame<'_>) -> Vec<Line> {
    let mut lines = head(card, frame);
    let rail = ("  │ ", Style::gutter());
    let mut inner = frame.clone();
    inner.in_card = true;
    let changed = card.body.iter().filter(|block| matches!(block, Block::Diff(_)));
    inner.names_files = changed.count() > 1;
    lines.extend(inner.inside(rail.clone(), rail, |frame| {
        let questions = card.earlier.iter().chain(&card.question);
        let mut body: Vec<Line> =
            questions.flat_map(|question| lay_question(question, frame)).collect();
        body.extend(blocks::lay(&card.body, frame));
        body
    }));
    lines
}

fn head(card: &Card, frame: &Frame<'_>) -> Vec<Line> {
    let mut badge =
        Line::of(&card.badge.word, Style::role(TextRole::Badge(card.badge.tone)).strong());
    if let Some(state) = &card.badge.state {
        badge.push(&format!(" {state}"), Style::tone(card.badge.tone));
    }
    if let Some(duration) = card.duration_ms {
        badge.push(&format!(" {}", format::duration(duration)), Style::gutter());
    }
    let line_width = frame.line_width();
    let room = line_width.saturating_sub(badge.width() + 2);
    let left = title(card, room, frame);
    if room < super::MIN_WIDTH {
        return vec![clip(left, line_width), clip(badge, line_width)];
    }
    let mut line = clip(left, room);
    let space = line_width - badge.width() - line.width();
    line.push(&" ".repeat(space), Style::default());
    badge.runs.into_iter().for_each(|run| line.push(&run.text, run.style));
    vec![line]
}

/// Icon, title and summary. A long path is clipped at its start, to keep the file name visible.
fn title(card: &Card, room: usize, frame: &Frame<'_>) -> Line {
    let mut line = Line::of(&format!("{} ", card.icon.glyph()), Style::tone(card.icon.tone()));
    line.push(&card.title, frame.base.clone().strong());
    let mut summary = span_line(&card.summary, &frame.base);
    let excess = (line.width() + 2 + summary.width()).saturating_sub(room);
    let path = summary.runs.iter_mut().find(|run| run.style.role == TextRole::Path);
    if let Some(path) = path.filter(|path| excess > 0 && width(&path.text) > excess + 8) {
        path.text = tail(&path.text, width(&path.text) - excess);
    }
    if !summary.is_blank() {
        line.push("  ", Style::default());
        summary.runs.into_iter().for_each(|run| line.push(&run.text, run.style));
    }
    line
}

/// An open question in full; an answered one as a compact record (R-003-12).
pub fn lay_question(question: &Question, frame: &Frame<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let is_open = question.answer.is_none();
    for item in &question.items {
        let mut spans = Vec::new();
        if let Some(header) = &item.header {
            spans.push(Span::plain(format!("{header}  ")).dim());
        }
        spans.push(Span::plain(item.question.trim()));
        let has_options = (is_open || frame.options.expand) && !item.options.is_empty();
        let answer = item.answer.as_ref().map(|answer| Span::plain(answer.trim()).strong());
        // With options listed, the answer follows them; otherwise it follows the question.
        let (beside, below) = if has_options { (None, answer) } else { (answer, None) };
        if let Some(answer) = beside {
            spans.extend([Span::plain(" → ").dim(), answer]);
        }
        let mark = ("? ", Style::tone(Tone::Accent).strong());
        lines.extend(
            frame.inside(mark, ("  ", Style::default()), |frame| blocks::paragraph(&spans, frame)),
        );
        if has_options {
            lines.extend(frame.indented(|frame| options(item, frame)));
        }
        if let Some(answer) = below {
            let mark = ("→ ", Style::gutter());
            lines.extend(frame.inside(mark, ("  ", Style::default()), |frame| {
                blocks::paragraph(std::slice::from_ref(&answer), frame)
            }));
        }
    }
    // Answers beside their items need no line of their own, except for who gave them.
    if let Some(answer) = question.overall_answer() {
        let (mark, tone) = (format!("{} ", answer.glyph()), answer.tone());
        let (decision, remark) = answer.decision_text();
        let mut spans = vec![Span::plain(decision).toned(tone)];
        spans.extend(remark.map(|remark| Span::plain(format!("  {remark}"))));
        if answer.is_inferred() {
            spans.push(Span::plain("  (answer not in the log)").dim());
        }
        spans.extend(question.answered_by().map(|by| Span::plain(format!("  {by}")).dim()));
        lines.extend(frame.inside((&mark, Style::tone(tone)), ("  ", Style::default()), |frame| {
            blocks::paragraph(&spans, frame)
        }));
    } else if let Some(by) = question.answered_by() {
        let span = Span::plain(by).dim();
        lines.extend(frame.indented(|frame| blocks::paragraph(std::slice::from_ref(&span), frame)));
    }
    if let Some(instruction) = question.instruction() {
        let span = Span::plain(instruction).dim();
        lines.extend(frame.indented(|frame| blocks::paragraph(std::slice::from_ref(&span), frame)));
    }
    lines
}

fn options(item: &QuestionItem, frame: &Frame<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for option in &item.options {
        let mut line = Line::of(&format!("{} ", item.glyph(option.chosen)), Style::gutter());
        line.push(&option.label, frame.base.clone());
        if let Some(description) = &option.description {
            line.push(&format!("  {description}"), Style::gutter());
        }
        lines.extend(wrap(line, frame.width, Break::Words));
    }
    lines
}
