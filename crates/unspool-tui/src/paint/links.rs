//! Hyperlinks (OSC 8). A ratatui cell cannot hold one, so after a frame is drawn the cells of each
//! link are printed again inside the escape sequence, but only if they changed since the last
//! frame.

use std::io::{self, Write};

use crossterm::cursor::{RestorePosition, SavePosition};
use crossterm::queue;
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use unspool_model::id::digest;
use unspool_view::block::safe_link;
use unspool_view::lines::{Line, width};

use super::for_each_grapheme;

/// Some terminals cut longer URLs off, so that they lead elsewhere.
const MAX_URL_BYTES: usize = 2000;

/// One row of a link on the screen.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    pub x: u16,
    pub y: u16,
    pub width: u16,
    /// Its visible text.
    pub text: String,
    pub url: String,
}

/// The links of lines, each drawn into the first row of its area.
pub fn links<'a>(lines: impl IntoIterator<Item = (&'a Line, Rect)>) -> Vec<Link> {
    let mut found: Vec<Link> = Vec::new();
    for (line, area) in lines {
        if area.is_empty() || line.runs.iter().all(|run| run.style.link.is_none()) {
            continue;
        }
        for_each_grapheme(line, area, |run, grapheme, x, width| {
            let url = line.runs.get(run).and_then(|run| run.style.link.as_deref());
            let Some(url) = url else { return };
            match found.last_mut() {
                Some(link) if link.y == area.y && link.x + link.width == x && link.url == url => {
                    link.text.push_str(grapheme);
                    link.width += width;
                }
                Some(_) | None => found.push(Link {
                    x,
                    y: area.y,
                    width,
                    text: grapheme.to_owned(),
                    url: url.to_owned(),
                }),
            }
        });
    }
    found
}

/// The links written to the terminal.
#[derive(Debug, Default)]
pub struct Links {
    written: Vec<WrittenLink>,
}

#[derive(Clone, PartialEq, Debug)]
struct WrittenLink {
    x: u16,
    y: u16,
    url: String,
    /// The cells as written. When a cell changes, ratatui reprints it without the link.
    cells: Vec<Cell>,
}

impl Links {
    /// Forgets all links: the screen was cleared.
    pub fn forget(&mut self) {
        self.written.clear();
    }

    /// Writes the links of the frame that was just drawn. A link that is partly covered is left
    /// out.
    pub fn write(
        &mut self,
        out: &mut impl Write,
        links: &[Link],
        buffer: &Buffer,
    ) -> io::Result<()> {
        let now: Vec<WrittenLink> =
            links.iter().filter_map(|link| on_screen(link, buffer)).collect();
        let before = std::mem::take(&mut self.written);
        let gone: Vec<WrittenLink> = before
            .iter()
            .filter(|link| !now.contains(link))
            .map(|link| WrittenLink { cells: row(buffer, link), ..link.clone() })
            .collect();
        // Write a link again if one that is gone overlapped it.
        let is_new = |link: &&WrittenLink| {
            !before.contains(link) || gone.iter().any(|gone| overlaps(gone, link))
        };
        let new: Vec<&WrittenLink> = now.iter().filter(is_new).collect();
        if !gone.is_empty() || !new.is_empty() {
            queue!(out, SavePosition)?;
            for link in &gone {
                print(out, link)?;
            }
            for link in new {
                write!(out, "\x1b]8;id={:x};{}\x1b\\", digest(link.url.as_bytes()), link.url)?;
                print(out, link)?;
                out.write_all(b"\x1b]8;;\x1b\\")?;
            }
            queue!(out, RestorePosition)?;
            out.flush()?;
        }
        self.written = now;
        Ok(())
    }
}

/// The link as drawn, if its URL is safe and nothing covers it.
fn on_screen(link: &Link, buffer: &Buffer) -> Option<WrittenLink> {
    let url = printable(&link.url)?;
    let cells = cells(buffer, link.x, link.y, link.width);
    let shown: String = visible_cells(link.x, &cells).map(|(_, cell)| cell.symbol()).collect();
    (shown == link.text).then_some(WrittenLink { x: link.x, y: link.y, url, cells })
}

/// The URL percent-encoded to printable ASCII, so that it cannot end the escape sequence.
fn printable(url: &str) -> Option<String> {
    let url = safe_link(url)?;
    let mut out = String::with_capacity(url.len());
    for byte in url.bytes() {
        match byte {
            0x21..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    (out.len() <= MAX_URL_BYTES).then_some(out)
}

fn row(buffer: &Buffer, link: &WrittenLink) -> Vec<Cell> {
    cells(buffer, link.x, link.y, u16::try_from(link.cells.len()).unwrap_or(u16::MAX))
}

fn cells(buffer: &Buffer, x: u16, y: u16, width: u16) -> Vec<Cell> {
    let columns = x..x.saturating_add(width);
    columns.filter_map(|x| buffer.cell((x, y)).cloned()).collect()
}

fn overlaps(one: &WrittenLink, other: &WrittenLink) -> bool {
    let end = |link: &WrittenLink| usize::from(link.x) + link.cells.len();
    one.y == other.y && usize::from(one.x) < end(other) && usize::from(other.x) < end(one)
}

/// The cells from a column on, without the second cells of wide characters.
fn visible_cells(x: u16, cells: &[Cell]) -> impl Iterator<Item = (u16, &Cell)> {
    let mut hidden = 0;
    (x..).zip(cells).filter(move |(_, cell)| {
        let is_seen = hidden == 0;
        hidden = if is_seen { width(cell.symbol()) } else { hidden }.saturating_sub(1);
        is_seen
    })
}

fn print(out: &mut impl Write, link: &WrittenLink) -> io::Result<()> {
    let visible_cells = visible_cells(link.x, &link.cells).map(|(x, cell)| (x, link.y, cell));
    CrosstermBackend::new(out).draw(visible_cells)
}
