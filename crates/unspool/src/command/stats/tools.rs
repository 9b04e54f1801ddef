//! Tools with their calls, errors and durations, as a table.

use std::io::{self, Write};

use unspool_store::stats::ToolFigures;
use unspool_view::lines::truncate;
use unspool_view::present::format;

use super::tables::{self, Field, percent};
use crate::paint::Style;
use crate::table::right;

pub fn write(tools: &[ToolFigures], style: &Style, out: &mut impl Write) -> io::Result<()> {
    let field = |column: &'static str, rank: u8, cell: &dyn Fn(&ToolFigures) -> String| Field {
        column: right(column),
        rank,
        cells: tools.iter().map(cell).collect(),
    };
    let time = |tool: &ToolFigures, took: Option<u64>| {
        let mark = if tool.duration.with_waiting > 0 { "*" } else { "" };
        took.map(|took| format!("{}{mark}", format::duration(took))).unwrap_or_default()
    };
    let mut fields = vec![
        field("CALLS", 0, &|tool| format::number(tool.calls)),
        field("FAILED", 2, &|tool| some(tool.failed)),
        field("DENIED", 6, &|tool| some(tool.denied)),
        field("STOPPED", 6, &|tool| some(tool.interrupted)),
        field("RUNNING", 7, &|tool| some(tool.running)),
        field("ERRORS", 1, &|tool| tool.error_rate.map(percent).unwrap_or_default()),
        field("MEDIAN", 3, &|tool| time(tool, tool.duration.median_ms)),
        field("95 %", 4, &|tool| time(tool, tool.duration.p95_ms)),
        field("TOTAL", 5, &|tool| {
            time(tool, Some(tool.duration.total_ms).filter(|_| tool.duration.measured > 0))
        }),
    ];
    fields.retain(|field| field.cells.iter().any(|cell| !cell.is_empty()));
    let has_waiting = tools.iter().any(|tool| tool.duration.with_waiting > 0);
    let names = tools.iter().map(|tool| tool.name.clone()).collect();
    let values: Vec<u64> = tools.iter().map(|tool| tool.calls).collect();
    tables::write("TOOL", names, fields, &values, style, out)?;
    if has_waiting {
        let note = "* may include waiting for permission";
        writeln!(out, "{}", truncate(note, style.width))?;
    }
    Ok(())
}

/// An empty cell for zero, so that other values stand out.
fn some(value: u64) -> String {
    if value == 0 { String::new() } else { format::number(value) }
}
