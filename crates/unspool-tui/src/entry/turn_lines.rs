//! The lines above and below a turn.

use unspool_model::session::TurnState;
use unspool_view::block::Tone;
use unspool_view::lines::{self, Line, Style};
use unspool_view::present::notes::{BOOKMARK_GLYPH, NoteView};
use unspool_view::present::{HeaderFactKind, TurnHeader};

/// `── Turn 3 · user · 14:03:22 · claude-opus-4 ──`: the facts known when a turn starts.
pub fn turn_line(header: &TurnHeader, note: Option<&NoteView>, width: usize) -> Line {
    let measure = width.min(lines::MAX_LINE_WIDTH);
    let mut line = Line::of("── ", Style::gutter());
    line.push(&format!("Turn {}", header.number), Style { strong: true, ..Style::default() });
    let muted = Style::tone(Tone::Muted);
    let mut fact = |text: &str, style: Style| {
        line.push(" · ", Style::gutter());
        line.push(text, style);
    };
    let is_shown = |kind: HeaderFactKind| {
        kind != HeaderFactKind::State || header.state != TurnState::Completed
    };
    for label in header.facts().into_iter().filter(|label| is_shown(label.kind)) {
        fact(label.text, Style::tone(label.tone.unwrap_or(Tone::Muted)));
    }
    if let Some(started) = header.started {
        fact(&started.strftime("%H:%M:%S").to_string(), muted.clone());
    }
    if note.is_some_and(NoteView::is_bookmark) {
        fact(BOOKMARK_GLYPH, Style::tone(Tone::Accent));
    }
    for model in &header.models {
        fact(model, muted.clone());
    }
    let mut line = lines::clip(line, measure.saturating_sub(3));
    let rest = measure.saturating_sub(line.width() + 1);
    line.push(&format!(" {}", "─".repeat(rest)), Style::gutter());
    line
}

/// `took 12.4 s · 1,729 tokens`
pub fn foot_line(header: &TurnHeader) -> Line {
    let mut facts = header.metrics();
    // The duration is the first of them. The page has a tooltip instead of the word.
    if header.duration_ms.is_some_and(|took| took > 0)
        && let Some(took) = facts.first_mut()
    {
        *took = format!("took {took}");
    }
    if header.state != TurnState::Completed {
        facts.push(header.state_text().to_owned());
    }
    Line::of(&facts.join(" · "), Style::tone(Tone::Muted))
}
