//! Tables that fit the terminal: columns are as wide as their content, and shrinkable columns are
//! truncated if the table is too wide.

use std::io::{self, Write};

use unspool_view::lines::{make_visible, truncate, width};

/// A column.
pub struct Column {
    pub name: &'static str,
    pub align: Align,
    /// Truncated if the table is too wide.
    pub shrinks: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

pub const fn left(name: &'static str) -> Column {
    Column { name, align: Align::Left, shrinks: false }
}

pub const fn right(name: &'static str) -> Column {
    Column { name, align: Align::Right, shrinks: false }
}

pub const fn rest(name: &'static str) -> Column {
    Column { name, align: Align::Left, shrinks: true }
}

const GAP: &str = "  ";
const MIN_COLUMN_WIDTH: usize = 12;

/// Writes a table. Escapes control characters in cells: they come from agents.
pub fn write(
    columns: &[Column],
    rows: &[Vec<String>],
    style: &crate::paint::Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| make_visible(cell).into_owned()).collect())
        .collect();
    let mut widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max();
            cells.unwrap_or(0).max(width(column.name))
        })
        .collect();
    let total: usize = widths.iter().sum::<usize>() + GAP.len() * columns.len().saturating_sub(1);
    let mut over = total.saturating_sub(style.width);
    for (at, column) in columns.iter().enumerate().rev() {
        if column.shrinks && over > 0 {
            let spare = widths[at].saturating_sub(MIN_COLUMN_WIDTH).min(over);
            widths[at] -= spare;
            over -= spare;
        }
    }
    let names: Vec<String> = columns.iter().map(|column| column.name.to_owned()).collect();
    let dim = if style.colour { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
    writeln!(out, "{}{}{}", dim.0, line(columns, &widths, &names), dim.1)?;
    for row in &rows {
        writeln!(out, "{}", line(columns, &widths, row))?;
    }
    Ok(())
}

fn line(columns: &[Column], widths: &[usize], cells: &[String]) -> String {
    let mut line = String::new();
    for (at, (column, room)) in columns.iter().zip(widths).enumerate() {
        let cell = truncate(cells.get(at).map_or("", String::as_str), *room);
        let space = " ".repeat(room.saturating_sub(width(&cell)));
        if at > 0 {
            line.push_str(GAP);
        }
        match column.align {
            Align::Left => line.extend([cell.as_str(), &space]),
            Align::Right => line.extend([space.as_str(), &cell]),
        }
    }
    line.trim_end().to_owned()
}
