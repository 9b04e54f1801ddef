//! Draws the session list, and a preview of the selected session.

use jiff::Timestamp;
use ratatui::layout::Rect;
use unspool_model::id::SessionId;
use unspool_model::session::SessionState;
use unspool_query::reader::SessionRow;
use unspool_view::block::Tone;
use unspool_view::lines::{self, Line, Style};
use unspool_view::present::activity::Activity;
use unspool_view::present::ending::ending;
use unspool_view::present::format;

use super::{Canvas, inset, nth, session};
use crate::list::{Grouping, Row};
use crate::state::State;

pub fn draw(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    let list = &state.list;
    if list.rows.is_empty() {
        empty(state, area, canvas);
        return;
    }
    let columns = Columns::fit(usize::from(area.width), list.grouping);
    let now = Timestamp::now();
    for (y, row) in list.rows.iter().skip(list.top).take(usize::from(area.height)).enumerate() {
        let place = nth(area, y);
        match row {
            Row::Group(name, count) => {
                let mut line = Line::of(" ", Style::default());
                let name = lines::truncate(name, usize::from(area.width).saturating_sub(10));
                line.push(&name, Style { strong: true, ..Style::default() });
                line.push(&format!("  {count}"), Style::tone(Tone::Muted));
                canvas.line(&line, place);
            }
            Row::Session(nth) => {
                let Some(session_row) = list.all.get(*nth) else { continue };
                let chosen = list.top + y == list.at;
                canvas.line(&columns.line(session_row, now, state.animation_frame()), place);
                if chosen {
                    canvas.select(place);
                }
            }
        }
    }
}

fn empty(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    let muted = Style::tone(Tone::Muted);
    let lines = match (&*state.list.filter, state.list.complete) {
        (_, false) => vec!["loading …".to_owned()],
        ("", true) if state.reading => vec!["Looking for sessions …".to_owned()],
        ("", true) => no_sessions(state.offers_demo()),
        (filter, true) => vec![
            format!("No session has “{filter}” in its title, project, agent, model or tags."),
            "Esc shows all sessions; s searches their content.".to_owned(),
        ],
    };
    for (y, text) in lines.iter().enumerate() {
        canvas.text(text, muted.clone(), inset(nth(area, y + 1), 2));
    }
}

/// Short lines: the list may have half of the screen.
fn no_sessions(offers_demo: bool) -> Vec<String> {
    let mut lines = vec![
        "No sessions yet.",
        "",
        "Use an agent as usual: its session appears here while it runs.",
        "`unspool doctor` lists the folders that are searched.",
    ];
    if offers_demo {
        lines.extend(["", "Enter opens the demo: recorded sessions of several agents."]);
    }
    lines.into_iter().map(str::to_owned).collect()
}

/// The list beside an open session: one line each, with what it does, and a dot if it grew since it
/// was open.
pub fn beside(state: &State, open: SessionId, area: Rect, canvas: &mut Canvas<'_>) {
    let border = Rect { x: area.right().saturating_sub(1), width: 1, ..area };
    for y in 0..usize::from(area.height) {
        canvas.text("│", Style::gutter(), nth(border, y));
    }
    let list = &state.list;
    let width = usize::from(area.width).saturating_sub(6);
    let rows = list.rows.iter().skip(list.top).take(usize::from(area.height)).enumerate();
    for (y, row) in rows {
        let place = Rect { width: area.width.saturating_sub(1), ..nth(area, y) };
        let Row::Session(at) = row else {
            if let Row::Group(name, _) = row {
                let strong = Style { strong: true, ..Style::default() };
                canvas.text(&format!(" {name}"), strong, place);
            }
            continue;
        };
        let Some(row) = list.all.get(*at) else { continue };
        let mut line = Line::of(" ", Style::default());
        match &row.activity {
            Some(activity) => {
                line.push(activity.glyph(state.animation_frame()), Style::tone(activity.tone()));
            }
            None if state.is_unread(row.id, row.seq) => line.push("•", Style::tone(Tone::Accent)),
            None => line.push(" ", Style::default()),
        }
        let title = lines::truncate(&format::first_line(&row.title, 200), width);
        let strong = state.is_unread(row.id, row.seq);
        line.push(&format!(" {title}"), Style { strong, ..Style::default() });
        canvas.line(&line, place);
        if row.id == open {
            canvas.select(place);
        }
    }
}

pub fn preview(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    for y in 0..usize::from(area.height) {
        canvas.text("│", Style::gutter(), nth(area, y));
    }
    let Some(preview) = state.preview.as_ref().filter(|preview| preview.is_loaded()) else {
        return;
    };
    let title = preview.session_row.as_ref().map_or("", |session_row| &session_row.title);
    let strong = Style { strong: true, ..Style::default() };
    canvas.text(&format::first_line(title, 200), strong, inset(nth(area, 0), 3));
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    session::entries(state, preview, None, inset(below, 1), canvas);
}

/// The width of `88.1k + 132k cached`.
const TOKEN_SUM_WIDTH: usize = 21;

/// The width of each column; 0 if there is no room for it.
struct Columns {
    title: usize,
    agent: usize,
    project: usize,
    model: usize,
    turns: usize,
    tokens: usize,
    cost: usize,
    age: usize,
}

impl Columns {
    fn fit(width: usize, grouping: Grouping) -> Columns {
        let mut columns = Columns {
            title: 0,
            agent: 0,
            project: 0,
            model: 0,
            turns: 0,
            tokens: 0,
            cost: 0,
            age: 5,
        };
        // The glyph on the left and the spaces around it.
        let mut left = width.saturating_sub(5 + columns.age);
        let min_title_width = 38;
        // Most useful first; each only if the title keeps its minimum width.
        let project = if grouping == Grouping::Project { 0 } else { 16 };
        let wanted: [(&mut usize, usize); 6] = [
            (&mut columns.agent, 12),
            (&mut columns.project, project),
            (&mut columns.tokens, 7),
            (&mut columns.cost, 8),
            (&mut columns.turns, 5),
            (&mut columns.model, 18),
        ];
        for (column, width) in wanted {
            if width > 0 && left >= min_title_width + width + 2 {
                *column = width;
                left -= width + 2;
            }
        }
        // With room left, cached tokens stand apart.
        if columns.tokens > 0 && left >= min_title_width + TOKEN_SUM_WIDTH - columns.tokens {
            left -= TOKEN_SUM_WIDTH - columns.tokens;
            columns.tokens = TOKEN_SUM_WIDTH;
        }
        columns.title = left;
        columns
    }

    fn line(&self, session_row: &SessionRow, now: Timestamp, animation_frame: usize) -> Line {
        let (glyph, tone) = match (&session_row.activity, session_row.state) {
            (Some(activity), _) => (activity.glyph(animation_frame), activity.tone()),
            (None, SessionState::Live) => ("◐", Tone::Running),
            (None, SessionState::Idle | SessionState::Ended) if session_row.errors > 0 => {
                ("●", Tone::Warning)
            }
            (None, SessionState::Idle | SessionState::Ended) => ("●", Tone::Ok),
        };
        let mut line = Line::of(" ", Style::default());
        line.push(glyph, Style::tone(tone));
        line.push(" ", Style::default());
        let mut more = Line::default();
        if let Some((ending, tone)) = ending(session_row.state, session_row.last_turn) {
            more.push(&format!("  {ending}"), Style::tone(tone));
        }
        if session_row.findings > 0 {
            more.push(&format!("  !{}", session_row.findings), Style::tone(Tone::Warning));
        }
        for tag in &session_row.tags {
            more.push(&format!("  #{tag}"), Style::tone(Tone::Accent));
        }
        // For a live session, its current activity matters more than its title.
        if let Some(activity) = &session_row.activity {
            more.push(&format!("  {}", activity.sentence(now)), Style::tone(activity.tone()));
        }
        let title = Line::of(&format::first_line(&session_row.title, 200), Style::default());
        // What a session waits for is what the reader looks for.
        let waits = session_row.activity.as_ref().is_some_and(Activity::is_waiting);
        let least = if waits { self.title / 5 } else { self.title / 2 };
        let room = self.title.saturating_sub(more.width()).max(least);
        let mut title = lines::clip(title, room);
        more.runs.into_iter().for_each(|run| title.push(&run.text, run.style));
        let title = lines::clip(title, self.title);
        let pad = self.title.saturating_sub(title.width());
        title.runs.into_iter().for_each(|run| line.push(&run.text, run.style));
        line.push(&" ".repeat(pad), Style::default());
        let muted = Style::tone(Tone::Muted);
        let project = session_row.project.as_deref().unwrap_or_default();
        let project = project.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or_default();
        let model = session_row.models.last().map_or("", String::as_str);
        left(&mut line, &session_row.agent, self.agent, muted.clone());
        left(&mut line, project, self.project, muted.clone());
        left(&mut line, model, self.model, muted.clone());
        right(&mut line, &format::number(session_row.turns), self.turns, muted.clone());
        let tokens = match self.tokens {
            TOKEN_SUM_WIDTH => {
                format::token_sum(session_row.fresh_tokens(), session_row.cached_tokens)
            }
            _ if session_row.tokens == 0 => String::new(),
            _ => format::compact(session_row.tokens),
        };
        right(&mut line, &tokens, self.tokens, muted.clone());
        right(&mut line, &session_row.cost, self.cost, muted.clone());
        let age = session_row.last_heard.map(|last| age(last, now)).unwrap_or_default();
        right(&mut line, &age, self.age.saturating_sub(1), muted);
        line
    }
}

fn left(line: &mut Line, text: &str, width: usize, style: Style) {
    if width > 0 {
        let text = lines::truncate(text, width);
        let pad = width.saturating_sub(lines::width(&text));
        line.push(&format!("  {text}{}", " ".repeat(pad)), style);
    }
}

fn right(line: &mut Line, text: &str, width: usize, style: Style) {
    if width > 0 {
        let text = lines::truncate(text, width);
        let pad = width.saturating_sub(lines::width(&text));
        line.push(&format!("  {}{text}", " ".repeat(pad)), style);
    }
}

/// `3m`, `5h`, `2d`, `4w`, `2y`
pub fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    let (minute, hour, day) = (60, 3600, 86400);
    match seconds {
        s if s < minute => "now".to_owned(),
        s if s < hour => format!("{}m", s / minute),
        s if s < day => format!("{}h", s / hour),
        s if s < 14 * day => format!("{}d", s / day),
        s if s < 364 * day => format!("{}w", s / (7 * day)),
        s => format!("{}y", s / (364 * day)),
    }
}
