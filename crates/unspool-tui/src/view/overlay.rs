//! Draws overlays: the help, the input line, the delete question, the choice of sub-agents.

use ratatui::layout::Rect;
use unspool_live::protocol::OptionChoice;
use unspool_query::findings::FindingEntry;
use unspool_view::block::Tone;
use unspool_view::lines::{self, Line, Style};

use super::{Canvas, inset, nth};
use crate::keys::ACTIONS;
use crate::state::{Input, InputPurpose, Overlay, State};

pub fn draw(state: &State, overlay: &Overlay, area: Rect, canvas: &mut Canvas<'_>) {
    match overlay {
        Overlay::Help { top } => help(state, *top, area, canvas),
        Overlay::Input(input) => input_line(input, area, canvas),
        Overlay::Delete(_, title) => {
            let title = lines::truncate(title, usize::from(area.width).saturating_sub(40).max(8));
            let text = format!(" delete “{title}” from the archive?  y yes · any other key no ");
            let row = nth(area, usize::from(area.height).saturating_sub(1));
            canvas.clear(row);
            canvas.text(&text, Style { strong: true, ..Style::tone(Tone::Failed) }, row);
        }
        Overlay::Option { option, at } => {
            let row = |(nth, choice): (usize, &OptionChoice)| {
                let mark = if nth == *at { "▸ " } else { "  " };
                let mut line = Line::of(mark, Style::tone(Tone::Accent));
                line.push(&choice.name, Style::default());
                if let Some(description) = &choice.description {
                    line.push(&format!("  {description}"), Style::tone(Tone::Muted));
                }
                line
            };
            let rows: Vec<Line> = option.choices.iter().enumerate().map(row).collect();
            boxed(&option.name, &rows, *at, area, canvas);
        }
        Overlay::Agents { of, at } => {
            let rows: Vec<Line> = of
                .iter()
                .enumerate()
                .map(|(nth, (name, _))| {
                    let mark = if nth == *at { "▸ " } else { "  " };
                    let mut line = Line::of(mark, Style::tone(Tone::Accent));
                    line.push(name, Style::default());
                    line
                })
                .collect();
            boxed("Sub-agents", &rows, *at, area, canvas);
        }
        Overlay::Findings { found, at, .. } => {
            let row = |(nth, entry): (usize, &FindingEntry)| {
                let mark = if nth == *at { "▸ " } else { "  " };
                let mut line = Line::of(mark, Style::tone(Tone::Accent));
                line.push(&entry.title, Style::default());
                line.push(&format!("  {}", entry.figures), Style::tone(Tone::Muted));
                line
            };
            let rows: Vec<Line> = found.iter().enumerate().map(row).collect();
            boxed("Findings", &rows, *at, area, canvas);
        }
    }
}

fn help(state: &State, top: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let keys_of = |action| state.keys.of(action).join(" ");
    let widest = ACTIONS.iter().map(|action| lines::width(&keys_of(action.0))).max().unwrap_or(0);
    let mut rows: Vec<Line> = ACTIONS
        .iter()
        .map(|(action, _, _, what)| {
            let keys = keys_of(*action);
            let pad = widest.saturating_sub(lines::width(&keys));
            let mut line =
                Line::of(&format!("{keys}{}", " ".repeat(pad)), Style::tone(Tone::Accent));
            line.push(&format!("  {what}"), Style::default());
            line
        })
        .collect();
    rows.push(Line::default());
    for note in [
        "During a replay: space pauses, comma and period step by one part, + and - change the",
        "speed, 0 to 9 jump to that tenth of the session, esc ends the replay.",
        "Mouse: the wheel scrolls, a click opens. Hold shift to select text, or press m.",
    ] {
        rows.push(Line::of(note, Style::tone(Tone::Muted)));
    }
    boxed_from("Keys", &rows, top, area, canvas);
}

fn boxed(title: &str, rows: &[Line], at: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let room = usize::from(area.height).saturating_sub(2).max(1);
    boxed_from(title, rows, at.saturating_sub(room.saturating_sub(1)), area, canvas);
}

/// Rows in a centred box.
fn boxed_from(title: &str, rows: &[Line], top: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let widest = rows.iter().map(Line::width).max().unwrap_or(0) + 4;
    let width = widest.min(usize::from(area.width)) as u16;
    let height = (rows.len() + 2).min(usize::from(area.height)) as u16;
    let frame = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    canvas.clear(frame);
    let inner = usize::from(width).saturating_sub(2);
    let bar = |left: &str, right: &str, text: &str| {
        let text = lines::truncate(text, inner.saturating_sub(2));
        let rest = inner.saturating_sub(lines::width(&text) + usize::from(!text.is_empty()) * 2);
        let text = if text.is_empty() { text } else { format!(" {text} ") };
        format!("{left}{text}{}{right}", "─".repeat(rest))
    };
    let edge = Style::gutter();
    let last = usize::from(height).saturating_sub(1);
    let shown = usize::from(height).saturating_sub(2);
    let top = top.min(rows.len().saturating_sub(shown));
    let more = if top + shown < rows.len() { "↓ more" } else { "" };
    canvas.text(&bar("╭", "╮", title), edge.clone(), nth(frame, 0));
    canvas.text(&bar("╰", "╯", more), edge.clone(), nth(frame, last));
    for (y, row) in rows.iter().skip(top).take(shown).enumerate() {
        let place = nth(frame, y + 1);
        canvas.text("│", edge.clone(), place);
        canvas.text("│", edge.clone(), inset(place, width.saturating_sub(1)));
        let room = Rect { width: width.saturating_sub(4), ..inset(place, 2) };
        canvas.line(&lines::clip(row.clone(), usize::from(room.width)), room);
    }
}

fn input_line(input: &Input, area: Rect, canvas: &mut Canvas<'_>) {
    let (label, hint) = match input.what {
        InputPurpose::Filter => ("filter", "title, project, agent, model, tag"),
        InputPurpose::Find => ("find", "in this session"),
        InputPurpose::PromptFind => ("find", "a text, exactly as it was sent"),
        InputPurpose::Search => ("search", "words, \"exact text\", begin*, rm -rf, NOT word"),
        InputPurpose::Tag(_) => ("tag", "tags separated by spaces or commas; -tag removes one"),
        InputPurpose::Note(..) => ("note", "leave it empty to remove it; B sets a bookmark"),
        InputPurpose::Rename(_) => ("name", "leave it empty for the agent's own title"),
    };
    let row = nth(area, usize::from(area.height).saturating_sub(1));
    canvas.clear(row);
    canvas.fill(row, canvas.theme.status());
    let mut line =
        Line::of(&format!(" {label} "), Style { strong: true, ..Style::tone(Tone::Accent) });
    let before = input.field.before_cursor();
    // Keep the cursor visible: drop characters from the start of the text.
    let room = usize::from(row.width).saturating_sub(line.width() + 2);
    let mut shown = before;
    while lines::width(shown) > room {
        let mut letters = shown.chars();
        letters.next();
        shown = letters.as_str();
    }
    line.push(shown, Style::default());
    let cursor = line.width();
    line.push(input.field.after_cursor(), Style::default());
    if input.field.is_empty() {
        line.push(&format!(" {hint}"), Style::tone(Tone::Muted));
    }
    canvas.line(&line, row);
    let x = row.x.saturating_add(cursor as u16).min(row.right().saturating_sub(1));
    if let Some(cell) = canvas.buffer.cell_mut((x, row.y)) {
        cell.modifier.insert(ratatui::style::Modifier::REVERSED);
    }
}
