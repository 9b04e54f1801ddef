//! Draws the hits of a search over all sessions, two lines each.

use ratatui::layout::Rect;
use unspool_query::reader::SearchHit;
use unspool_query::search::Suggestion;
use unspool_view::block::Tone;
use unspool_view::lines::{self, Line, Style};
use unspool_view::present::format;

use super::{Canvas, inset, nth};
use crate::state::Search;

/// The lines above the hits: how the search was understood, and another reading.
pub const SEARCH_HEAD_LINES: usize = 2;
/// Other searches to offer if there are no hits.
const MAX_SUGGESTIONS: usize = 5;

/// How many hits fit into so many lines.
pub fn hits_per_page(lines: usize) -> usize {
    lines.saturating_sub(SEARCH_HEAD_LINES) / 2
}

pub fn draw(search: &Search, area: Rect, canvas: &mut Canvas<'_>) {
    let muted = Style::tone(Tone::Muted);
    let Some(hits) = &search.hits else {
        canvas.text("searching …", muted, inset(nth(area, 1), 2));
        return;
    };
    let other = |other: &Suggestion| format!("{}: type {}", other.label, other.query);
    if hits.is_empty() {
        let reading = &search.reading;
        canvas.text(&reading.understood, Style::default(), inset(nth(area, 1), 2));
        let ways = reading.suggestions.iter().map(other);
        let fallback = reading.suggestions.is_empty();
        let ways = ways.chain(fallback.then(|| "Try another word or a part of it.".to_owned()));
        for (row, way) in ways.take(MAX_SUGGESTIONS).enumerate() {
            canvas.text(&way, muted.clone(), inset(nth(area, 3 + row), 2));
        }
        return;
    }
    canvas.text(&search.reading.understood, muted.clone(), inset(nth(area, 0), 1));
    if let Some(first) = search.reading.suggestions.first() {
        canvas.text(&other(first), muted.clone(), inset(nth(area, 1), 1));
    }
    let rows = hits_per_page(usize::from(area.height));
    for (y, hit) in hits.iter().skip(search.top).take(rows).enumerate() {
        let at = SEARCH_HEAD_LINES + 2 * y;
        let (first, second) = (nth(area, at), nth(area, at + 1));
        let chosen = search.top + y == search.at;
        // Show a session's title once for adjacent hits.
        let before = (search.top + y).checked_sub(1).filter(|_| y > 0);
        let before = before.and_then(|at| hits.get(at)).map(|hit| hit.session);
        let titled = before != Some(hit.session);
        canvas.line(&head(hit, titled, usize::from(area.width)), inset(first, 1));
        let cells = inset(second, 3);
        let line = Line::of(&hit.snippet, Style::default());
        canvas.line(&lines::clip(line, usize::from(cells.width)), cells);
        if chosen {
            canvas.select(first);
            canvas.select(second);
        }
        mark(hit, chosen, cells, canvas);
    }
}

fn head(hit: &SearchHit, titled: bool, width: usize) -> Line {
    let muted = Style::tone(Tone::Muted);
    let mut line = Line::default();
    if titled {
        let title = format::first_line(hit.title.as_deref().unwrap_or("untitled"), 120);
        let strong = Style { strong: true, ..Style::default() };
        line.push(&lines::truncate(&title, width / 2), strong);
    }
    let what = hit.tool.as_deref().unwrap_or(&hit.kind);
    line.push(&format!("  {what}"), Style::tone(Tone::Accent));
    if let Some(state) = &hit.state {
        line.push(&format!("  {state}"), Style::tone(Tone::Warning));
    }
    if let Some(turn) = hit.turn {
        line.push(&format!("  turn {turn}"), muted.clone());
    }
    line.push(&format!("  {}", hit.agent), muted.clone());
    let at = hit.at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    if let Some(at) = at {
        line.push(&format!("  {}", at.strftime("%Y-%m-%d %H:%M")), muted);
    }
    line
}

/// Highlights the matches. Byte ranges map to columns: a snippet has no characters without a cell.
fn mark(hit: &SearchHit, chosen: bool, area: Rect, canvas: &mut Canvas<'_>) {
    for (start, end) in &hit.ranges {
        let before = hit.snippet.get(..*start).map_or(0, lines::width);
        let width = hit.snippet.get(*start..*end).map_or(0, lines::width);
        let x = area.x.saturating_add(before as u16);
        let place = Rect { x, width: width as u16, ..area }.intersection(area);
        let style = if chosen { canvas.theme.current_hit() } else { canvas.theme.hit() };
        canvas.fill(place, style);
    }
}
