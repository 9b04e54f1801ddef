//! Lays an open question out: what it is about, and the answers that can be given.

use unspool_live::form::{FieldChoice, FieldKind};
use unspool_live::protocol::{OpenQuestion, RequestedInput};
use unspool_view::block::Tone;
use unspool_view::lines::{self, Break, Line, LineOptions, Style};
use unspool_view::present::format;
use unspool_view::present::question_subject::question_subject;

use super::layout::{frame, words};
use super::question::{QuestionPane, QuestionRow, SubjectLayout, fields_of};
use super::{ChatPane, Focus};
use crate::text_field::TextField;
use crate::transcript::PlacedQuestion;

/// The lines of a command or diff that are shown before it is opened.
const SUBJECT_LINES: usize = 12;
/// The lines of the question itself that are always shown.
const HEAD_LINES: usize = 4;

/// A question with what it is about and its answers, in a rounded border in the accent colour
/// (R-003-52).
pub fn question(
    chat: &ChatPane,
    open: &OpenQuestion,
    pane: &QuestionPane,
    width: usize,
) -> PlacedQuestion {
    let inner = inner_width(width);
    let focused = chat.focus == Focus::Question(open.id.clone());
    let strong = Style { strong: true, ..Style::default() };
    let subject = pane.subject.as_ref();
    let mut content = subject.map(|subject| subject.head.clone()).unwrap_or_default();
    let subject = subject.map(|subject| subject.lines.as_slice()).unwrap_or_default();
    let cut = if pane.expanded { 0 } else { subject.len().saturating_sub(SUBJECT_LINES) };
    content.extend(subject.iter().take(subject.len() - cut).cloned());
    if cut > 0 {
        let text = format!("… {} more: → shows them", format::count(cut, "line"));
        content.push(Line::of(&text, Style::tone(Tone::Warning)));
    }
    let (mut field, mut chosen_line) = (None, None);
    for (at, row) in pane.rows(open).into_iter().enumerate() {
        let chosen = focused && pane.at == Some(at);
        let (label, heading) = row_label(open, pane, row, focused && chosen, inner);
        if let Some(name) = heading.filter(|name| field.as_ref() != Some(name)) {
            content.push(Line::default());
            content.extend(words(&name, strong.clone(), inner));
            field = Some(name);
        } else if at == 0 && field.is_none() {
            content.push(Line::default());
        }
        if chosen {
            // Behind the border.
            chosen_line = Some(content.len() + 1);
        }
        let mut line = Line::of(if chosen { "▸ " } else { "  " }, Style::tone(Tone::Accent));
        label.runs.into_iter().for_each(|run| line.push(&run.text, run.style));
        content.extend(lines::wrap(line, inner, Break::Words));
    }
    let hint = match (focused, open.kind.clone()) {
        (false, _) => "tab answers",
        (true, RequestedInput::Permission(_)) => {
            "↑ ↓ 1–9 choose · enter answers · esc leaves · ctrl-c declines"
        }
        (true, RequestedInput::Form(_)) => {
            "↑ ↓ 1–9 choose · space marks · enter answers · esc leaves · ctrl-c declines"
        }
    };
    let title = match open.kind {
        RequestedInput::Permission(_) => "? permission",
        RequestedInput::Form(_) => "? question",
    };
    let lines = frame(title, hint, content, width, &Style::tone(Tone::Accent));
    PlacedQuestion { id: open.id.clone(), lines, chosen: chosen_line, ..PlacedQuestion::default() }
}

/// The text of a row, and the question of its field.
fn row_label(
    open: &OpenQuestion,
    pane: &QuestionPane,
    row: QuestionRow,
    cursor: bool,
    width: usize,
) -> (Line, Option<String>) {
    let muted = Style::tone(Tone::Muted);
    let fields = fields_of(open);
    let several = fields.len() > 1;
    match row {
        QuestionRow::Option(at) => {
            let RequestedInput::Permission(options) = &open.kind else {
                return (Line::default(), None);
            };
            let Some(option) = options.get(at) else { return (Line::default(), None) };
            let tone = if option.kind.refuses() { Tone::Failed } else { Tone::Ok };
            let mut line = Line::of(&format!("{} ", at + 1), muted.clone());
            line.push(option.kind.word(), Style { strong: true, ..Style::tone(tone) });
            let widest = options.iter().map(|option| option.kind.word().len()).max().unwrap_or(0);
            let gap = " ".repeat(widest.saturating_sub(option.kind.word().len()) + 2);
            line.push(&format!("{gap}{}", option.label), muted);
            (line, None)
        }
        QuestionRow::Choice { field, choice } => {
            let Some(held) = fields.get(field) else { return (Line::default(), None) };
            let Some(offered) = held.offered_choices().into_iter().nth(choice) else {
                return (Line::default(), None);
            };
            let FieldChoice { value, label, description } = offered;
            let marked = pane.is_chosen(field, &value);
            let mark = match (held.kind == FieldKind::Several, marked) {
                (true, true) => "☑ ",
                (true, false) => "☐ ",
                (false, true) => "◉ ",
                (false, false) => "○ ",
            };
            let mut line = Line::of(&format!("{} ", choice + 1), muted.clone());
            line.push(mark, Style::tone(if marked { Tone::Accent } else { Tone::Muted }));
            line.push(&label, Style { strong: marked, ..Style::default() });
            if let Some(description) = description {
                line.push(&format!("  {description}"), muted);
            }
            (line, several.then(|| held.text.clone()))
        }
        QuestionRow::Text { field } => {
            let Some(held) = fields.get(field) else { return (Line::default(), None) };
            let label = if held.choices.is_empty() { "" } else { "own words: " };
            let mut line = Line::of(label, muted.clone());
            let room = width.saturating_sub(lines::width(label) + 2);
            let text = pane.texts.get(field);
            line_of_text(&mut line, text, room, cursor);
            (line, several.then(|| held.text.clone()))
        }
        QuestionRow::Send => {
            (Line::of("send the answers", Style { strong: true, ..Style::default() }), None)
        }
        QuestionRow::Discuss | QuestionRow::Reason => {
            let number = match &open.kind {
                RequestedInput::Permission(options) => format!("{} ", options.len() + 1),
                RequestedInput::Form(_) => String::new(),
            };
            let mut line = Line::of(&number, muted.clone());
            match &pane.reason {
                None => line.push("chat about this", muted),
                Some(reason) => {
                    let label = "no, and say: ";
                    line.push(label, muted.clone());
                    let room = width.saturating_sub(line.width() + 2);
                    line_of_text(&mut line, Some(reason), room, cursor);
                }
            }
            (line, None)
        }
    }
}

/// Adds the one line of a text field.
fn line_of_text(line: &mut Line, text: Option<&TextField>, room: usize, cursor: bool) {
    let shown = text.and_then(|text| text.lines(room, 1, cursor).into_iter().next());
    let shown = shown.unwrap_or_default();
    if shown.is_blank() && !cursor {
        line.push("…", Style::tone(Tone::Muted));
    }
    shown.runs.into_iter().for_each(|run| line.push(&run.text, run.style));
}

/// True if what a question is about is too long to be part of it.
pub fn omits_subject(open: &OpenQuestion) -> bool {
    open.subject["omitted_bytes"].is_u64()
}

/// Lays out what a question is about, once per width: it may be long.
pub fn lay_out_subject(open: &OpenQuestion, pane: &mut QuestionPane, width: usize) {
    if pane.subject.as_ref().is_some_and(|subject| subject.width == width) {
        return;
    }
    let inner = inner_width(width);
    let blocks = question_subject(&open.subject, &open.text);
    let strong = Style { strong: true, ..Style::default() };
    let text = open.text.trim().lines();
    let mut head: Vec<Line> = text.flat_map(|line| words(line, strong.clone(), inner)).collect();
    // Agents put whole scripts into titles.
    let mut lines = head.split_off(head.len().min(HEAD_LINES));
    lines.extend(lines::layout(&blocks, inner, &LineOptions::everything()));
    if let Some(bytes) = open.subject["omitted_bytes"].as_u64() {
        let text = format!(
            "The call has {} bytes and is shown above: esc, then open it with enter.",
            format::number(bytes)
        );
        lines.extend(words(&text, Style::tone(Tone::Warning), inner));
    }
    pane.truncated = lines.len() > SUBJECT_LINES || omits_subject(open);
    pane.subject = Some(SubjectLayout { width, head, lines });
}

fn inner_width(width: usize) -> usize {
    width.saturating_sub(4).max(1)
}
