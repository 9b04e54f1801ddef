//! Draws the state into a ratatui buffer, and returns the visible hyperlinks. Changes nothing.

mod changes;
mod list;
mod overlay;
mod prompt;
mod search;
mod session;
mod status;
mod tasks;

pub use prompt::{CALLS_HEAD_LINES, call_rows};
pub use search::{SEARCH_HEAD_LINES, hits_per_page};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unspool_view::lines::{Line, Style};

use crate::paint;
use crate::state::{Screen, State};
use crate::theme::Theme;

/// The smallest width, in columns, at which the list shows a preview beside it.
const MIN_PREVIEW_WIDTH: u16 = 110;

/// The smallest width at which an open session has the list beside it, and the list's width.
const MIN_SIDE_WIDTH: u16 = 150;
const SIDE_WIDTH: usize = 40;

/// The smallest height at which the agent's tasks are shown.
const MIN_TASKS_HEIGHT: u16 = 20;

/// The layout of the screen, in lines and columns.
pub struct ScreenLayout {
    /// The first line below the header.
    pub top: usize,
    /// The lines between header and footer.
    pub body: usize,
    /// The columns of the preview at the right.
    pub preview: Option<usize>,
    /// The columns of the list at the left of an open session; 0 if it is not shown.
    pub side: usize,
    /// The lines of the agent's tasks below the transcript.
    pub tasks: usize,
}

pub fn screen_layout(state: &State) -> ScreenLayout {
    let (width, height) = state.size;
    let foot = 1 + u16::from(state.replay.is_some());
    let preview = state.with_preview && width >= MIN_PREVIEW_WIDTH && state.screens.is_empty();
    let side = state.with_side && width >= MIN_SIDE_WIDTH && state.replay.is_none();
    let side = side
        && state.list.all.len() > 1
        && matches!(state.screens.as_slice(), [Screen::Session(_)]);
    let with_tasks = height >= MIN_TASKS_HEIGHT;
    let tasks = if with_tasks { tasks::lay_out(state, usize::from(width)).len() } else { 0 };
    ScreenLayout {
        top: 1,
        tasks,
        body: usize::from(height.saturating_sub(1 + foot)).saturating_sub(tasks),
        preview: preview.then(|| usize::from(width) * 2 / 5),
        side: if side { SIDE_WIDTH } else { 0 },
    }
}

/// A visible hyperlink.
pub use crate::paint::Link;

/// Draws everything. Returns the visible links.
pub fn draw(state: &State, theme: &Theme, area: Rect, buffer: &mut Buffer) -> Vec<Link> {
    buffer.set_style(area, theme.base());
    let mut canvas = Canvas { theme, buffer, links: Vec::new() };
    let screen_layout = screen_layout(state);
    let head = Rect { height: area.height.min(1), ..area };
    let top = area.y + screen_layout.top as u16;
    let body = Rect { y: top, height: screen_layout.body as u16, ..area }.intersection(area);
    status::head(state, head, &mut canvas);
    match state.screens.last() {
        Some(Screen::Session(transcript)) => {
            let side = screen_layout.side as u16;
            if side > 0 {
                list::beside(state, transcript.session, Rect { width: side, ..body }, &mut canvas);
            }
            session::draw(state, transcript, inset(body, side), &mut canvas);
        }
        Some(Screen::Changes(pane)) => changes::draw(pane, body, &mut canvas),
        Some(Screen::Prompt(pane)) => prompt::draw(pane, body, &mut canvas),
        Some(Screen::PromptCalls(pane)) => prompt::draw_calls(pane, body, &mut canvas),
        Some(Screen::Search(search)) => search::draw(search, body, &mut canvas),
        None => {
            let right = screen_layout.preview.map_or(0, |columns| columns as u16);
            let left = Rect { width: body.width.saturating_sub(right), ..body };
            list::draw(state, left, &mut canvas);
            if right > 0 {
                let right = Rect { x: left.right(), width: right, ..body };
                list::preview(state, right, &mut canvas);
            }
        }
    }
    if screen_layout.tasks > 0 {
        let below = Rect { y: body.bottom(), height: screen_layout.tasks as u16, ..area };
        let tasks = tasks::lay_out(state, usize::from(area.width.saturating_sub(4)));
        for (at, line) in tasks.iter().enumerate() {
            canvas.line(line, inset(nth(below.intersection(area), at), 2));
        }
    }
    let body = Rect { height: body.height + screen_layout.tasks as u16, ..body };
    let rest =
        Rect { y: body.bottom(), height: area.bottom().saturating_sub(body.bottom()), ..area };
    status::foot(state, rest, &mut canvas);
    if let Some(overlay) = &state.overlay {
        overlay::draw(state, overlay, area, &mut canvas);
        // The overlay covers the links below it.
        canvas.links.clear();
    }
    canvas.links
}

/// The buffer with the theme, and the links drawn so far.
struct Canvas<'a> {
    theme: &'a Theme,
    buffer: &'a mut Buffer,
    links: Vec<Link>,
}

impl Canvas<'_> {
    /// Draws a line at the top of an area.
    fn line(&mut self, line: &Line, area: Rect) {
        if area.height > 0 && area.width > 0 {
            paint::draw(line, Rect { height: 1, ..area }, self.buffer, self.theme);
        }
    }

    /// Draws text in one style, truncated to the area.
    fn text(&mut self, text: &str, style: Style, area: Rect) {
        let line = Line::of(&unspool_view::lines::truncate(text, usize::from(area.width)), style);
        self.line(&line, area);
    }

    fn fill(&mut self, area: Rect, style: ratatui::style::Style) {
        self.buffer.set_style(area.intersection(self.buffer.area), style);
    }

    /// Highlights the selected row. Muted text becomes plain, since it would be unreadable there.
    fn select(&mut self, area: Rect) {
        let (muted, plain) = (self.theme.muted().fg, self.theme.base().fg);
        let area = area.intersection(self.buffer.area);
        for position in area.positions() {
            if let Some(cell) = self.buffer.cell_mut(position)
                && Some(cell.fg) == muted
                && let Some(plain) = plain
            {
                cell.fg = plain;
            }
        }
        self.fill(area, self.theme.selection());
    }

    fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
        self.fill(area, self.theme.base());
    }
}

/// The n-th line of an area.
fn nth(area: Rect, line: usize) -> Rect {
    let y = area.y.saturating_add(u16::try_from(line).unwrap_or(u16::MAX));
    Rect { y, height: 1, ..area }.intersection(area)
}

fn inset(area: Rect, columns: u16) -> Rect {
    let columns = columns.min(area.width);
    Rect { x: area.x + columns, width: area.width - columns, ..area }
}
