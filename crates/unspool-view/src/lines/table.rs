//! Layout of tables. Columns take their natural width and shrink if the table is too wide.

use super::wrap::{Break, span_line, wrap};
use super::{Frame, Line, Style, blocks};
use crate::block::{Alignment, Field, Span, Table};

const SEPARATOR: &str = " │ ";
/// Minimum column width. A table that needs narrower columns becomes a list of records.
const MIN_COLUMN: usize = 6;

pub fn lay(table: &Table, frame: &Frame<'_>) -> Vec<Line> {
    let columns = table.rows.iter().map(Vec::len).chain([table.header.len()]).max().unwrap_or(0);
    if columns == 0 {
        return Vec::new();
    }
    let mut widths = vec![1; columns];
    for row in table.rows.iter().chain([&table.header]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(span_line(cell, &frame.base).width());
        }
    }
    let room = frame.width.saturating_sub(SEPARATOR.chars().count() * (columns - 1));
    if room / columns < MIN_COLUMN && widths.iter().sum::<usize>() > room {
        return records(table, frame);
    }
    shrink(&mut widths, room);
    let head = Style { dim: frame.base.dim, ..Style::default().strong() };
    let mut lines = lay_row(&table.header, &widths, &table.alignments, &head);
    let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    lines.push(Line::of(&rules.join("─┼─"), Style::gutter()));
    for row in &table.rows {
        lines.extend(lay_row(row, &widths, &table.alignments, &frame.base));
    }
    lines
}

/// Shrinks the widest columns until all fit.
fn shrink(widths: &mut [usize], room: usize) {
    let mut total: usize = widths.iter().sum();
    while total > room {
        // Shrink to the second widest in one step, or as far as needed.
        let widest = widths.iter().copied().max().unwrap_or(0);
        let second = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0);
        let tops = widths.iter().filter(|width| **width == widest).count();
        let step = (widest - second).min((total - room).div_ceil(tops)).max(1);
        if widest <= step {
            return;
        }
        for width in widths.iter_mut().filter(|width| **width == widest) {
            *width -= step;
            total -= step;
        }
    }
}

fn lay_row(
    row: &[Vec<Span>],
    widths: &[usize],
    alignments: &[Alignment],
    base: &Style,
) -> Vec<Line> {
    let cells: Vec<Vec<Line>> = widths
        .iter()
        .enumerate()
        .map(|(at, width)| {
            let spans = row.get(at).map(Vec::as_slice).unwrap_or_default();
            wrap(span_line(spans, base), *width, Break::Words)
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut lines = Vec::with_capacity(height);
    for level in 0..height {
        let mut line = Line::default();
        for (at, width) in widths.iter().enumerate() {
            if at > 0 {
                line.push(SEPARATOR, Style::gutter());
            }
            let cell = cells[at].get(level).cloned().unwrap_or_default();
            let space = width.saturating_sub(cell.width());
            let before = match alignments.get(at).copied().unwrap_or_default() {
                Alignment::None | Alignment::Left => 0,
                Alignment::Center => space / 2,
                Alignment::Right => space,
            };
            line.push(&" ".repeat(before), Style::default());
            cell.runs.into_iter().for_each(|run| line.push(&run.text, run.style));
            if at + 1 < widths.len() {
                line.push(&" ".repeat(space - before), Style::default());
            }
        }
        lines.push(line);
    }
    lines
}

/// Each row as a list of fields, for tables that are too wide.
fn records(table: &Table, frame: &Frame<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (at, row) in table.rows.iter().enumerate() {
        if at > 0 {
            lines.push(Line::default());
        }
        let fields = row.iter().enumerate().map(|(column, cell)| {
            let name = table.header.get(column).map(|spans| crate::block::text_of(spans));
            Field::new(name.unwrap_or_default(), cell.clone())
        });
        let fields = crate::block::Block::Fields { fields: fields.collect() };
        lines.extend(blocks::lay(&[fields], frame));
    }
    lines
}
