//! Draws the hits of a search over all sessions, two lines each.

use ratatui::layout::Rect;
use unspool_query::reader::SearchHit;
use unspool_view::block::Tone;
use unspool_view::lines::{self, Line, Style};
use unspool_view::present::format;

use super::{Canvas, inset, nth};
use crate::state::Search;

pub fn draw(search: &Search, area: Rect, canvas: &mut Canvas<'_>) {
    let muted = Style::tone(Tone::Muted);
    let Some(hits) = &search.hits else {
        canvas.text("searching …", muted, inset(nth(area, 1), 2));
        return;
    };
    if hits.is_empty() {
        let text =
            format!("No hits for {}. Words can be \"exact\", begin*, or -not.", search.query);
        canvas.text(&text, muted, inset(nth(area, 1), 2));
        return;
    }
    let rows = usize::from(area.height) / 2;
    for (y, hit) in hits.iter().skip(search.top).take(rows).enumerate() {
        let (first, second) = (nth(area, 2 * y), nth(area, 2 * y + 1));
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
