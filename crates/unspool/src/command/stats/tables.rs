//! Prints statistics: a summary, a sparkline of the last weeks, and tables that fit the terminal.
//! The least important columns are dropped first, and a bar fills the remaining width.

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::civil::Date;
use unspool_model::price::Prices;
use unspool_store::stats::{GroupFigures, Stats, ToolFigures, share};
use unspool_view::lines::{make_visible, truncate, width};
use unspool_view::present::format;

use super::By;
use crate::chart::{bar, compact, sparkline};
use crate::paint::Style;
use crate::table::{self, Column, left, right};

/// Rows of each table when all tables are shown.
const MAX_DAYS: usize = 14;
const MAX_PROJECTS: usize = 8;
const MAX_TOOLS: usize = 12;

/// Maximum length of the sparkline.
const SPARKLINE_WEEKS: usize = 8;

/// Minimum width of names; minimum and maximum width of bars.
const MIN_NAME_WIDTH: usize = 12;
const BAR_WIDTH: (usize, usize) = (6, 24);
const GAP: usize = 2;

/// Below this terminal width, numbers are abbreviated.
const COMPACT_BELOW_WIDTH: usize = 32;

/// Columns with this rank or above are dropped before the bar is.
const BAR_RANK: u8 = 4;

/// The summary and the first rows of each table.
pub fn all(
    figures: &Stats,
    limit: Option<usize>,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    summary(figures, style, out)?;
    spark(&figures.by_day, style, out)?;
    let tables = [
        (By::Day, Some(MAX_DAYS)),
        (By::Model, None),
        (By::Project, Some(MAX_PROJECTS)),
        (By::Tool, Some(MAX_TOOLS)),
    ];
    for (by, most) in tables {
        writeln!(out)?;
        one(figures, by, limit.or(most), style, out)?;
    }
    Ok(())
}

/// One table.
pub fn one(
    figures: &Stats,
    by: By,
    limit: Option<usize>,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let limit = limit.unwrap_or(usize::MAX);
    let (name, groups) = match by {
        By::Day => ("day", &figures.by_day),
        By::Model => ("model", &figures.by_model),
        By::Agent => ("agent", &figures.by_agent),
        By::Project => ("project", &figures.by_project),
        By::Tool => {
            let shown = figures.tools.len().min(limit);
            tools(&figures.tools[..shown], style, out)?;
            return more(figures.tools.len() - shown, "tool", style, out);
        }
    };
    let left_out = groups.len().saturating_sub(limit);
    let shown = match by {
        By::Day => &groups[left_out..],
        By::Model | By::Agent | By::Project | By::Tool => &groups[..groups.len() - left_out],
    };
    group_table(by, shown, style, out)?;
    more(left_out, name, style, out)
}

/// Prints how many rows were left out and how to see them.
fn more(left_out: usize, by: &str, style: &Style, out: &mut impl Write) -> io::Result<()> {
    if left_out == 0 {
        return Ok(());
    }
    let line = format!("… and {} more: --by {by}", format::number(left_out as u64));
    writeln!(out, "{}", truncate(&line, style.width))
}

fn summary(figures: &Stats, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let totals = &figures.totals;
    let tokens = totals.usage.tokens;
    let count =
        |value: u64, noun: &str| format::count(usize::try_from(value).unwrap_or(usize::MAX), noun);
    let mut sessions = vec![count(totals.sessions, "session")];
    if totals.sub_agents > 0 {
        sessions.push(format!("including {}", count(totals.sub_agents, "sub-agent")));
    }
    list(&sessions, style, out)?;
    let turns = count(totals.turns, "turn");
    let steps = count(totals.steps, "model call");
    list(&[turns, steps, count(totals.parts, "part")], style, out)?;
    let time = |at: Option<i64>| {
        let at = Timestamp::from_millisecond(at?).ok()?;
        Some(at.strftime("%Y-%m-%d %H:%M").to_string())
    };
    if let (Some(from), Some(to)) = (time(totals.first), time(totals.last)) {
        list(&[format!("from {from} UTC"), format!("to {to}")], style, out)?;
    }
    writeln!(out)?;
    let number = if style.width < COMPACT_BELOW_WIDTH { compact } else { format::number };
    let finished: u64 = figures.tools.iter().map(|tool| tool.calls - tool.running).sum();
    let failed: u64 = figures.tools.iter().map(|tool| tool.failed).sum();
    let reasoning = match tokens.reasoning {
        0 => String::new(),
        reasoning => format!("including {} for reasoning", number(reasoning)),
    };
    let cost = totals.usage.cost_usd.map_or("–".to_owned(), dollars);
    let said = format!("reported by {} of {}", number(totals.sessions_with_cost), sessions[0]);
    let estimated = totals.usage.estimated_cost_usd.map_or("–".to_owned(), dollars);
    let mut by_prices = format!("by the prices of {}", Prices::AS_OF);
    if totals.usage.unpriced_steps > 0 {
        let without = count(totals.usage.unpriced_steps, "call");
        by_prices.push_str(&format!(", excluding {without} of unknown price"));
    }
    let thoughts = of(share(totals.reasoning_parts, totals.parts));
    let rows = [
        ("input", number(tokens.input), "tokens, without cached ones".to_owned()),
        ("output", number(tokens.output), reasoning),
        ("cache read", number(tokens.cache_read), String::new()),
        ("cache write", number(tokens.cache_write), String::new()),
        ("cost", cost, said),
        ("estimated", estimated, by_prices),
        (
            "tool calls",
            number(totals.tool_calls),
            format!("{} failed{}", number(failed), of(share(failed, finished))),
        ),
        ("errors", number(totals.errors), "including failed calls".to_owned()),
        ("reasoning", number(totals.reasoning_parts), format!("of the parts{thoughts}")),
    ];
    let room = rows.iter().map(|(_, value, _)| width(value)).max().unwrap_or_default();
    for (name, value, note) in &rows {
        let figure = format!("{name:<11}  {value:>room$}");
        let whole = format!("{figure}  {note}");
        let line = if width(&whole) > style.width { &figure } else { whole.trim_end() };
        writeln!(out, "{}", truncate(line, style.width))?;
    }
    Ok(())
}

/// Joins phrases with commas and wraps them.
fn list(pieces: &[String], style: &Style, out: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    for piece in pieces {
        if line.is_empty() {
            line = piece.clone();
        } else if width(&line) + width(piece) + 2 <= style.width {
            line = format!("{line}, {piece}");
        } else {
            writeln!(out, "{}", truncate(&line, style.width))?;
            line = piece.clone();
        }
    }
    writeln!(out, "{}", truncate(&line, style.width))
}

/// A sparkline of tokens per day, ending with the last day in the data.
fn spark(days: &[GroupFigures], style: &Style, out: &mut impl Write) -> io::Result<()> {
    let date = |group: &GroupFigures| group.name.as_deref()?.parse::<Date>().ok();
    let Some(last) = days.iter().rev().find_map(date) else { return Ok(()) };
    let words = "tokens per day  ";
    let room = style.width.saturating_sub(width(words)).clamp(1, SPARKLINE_WEEKS * 7);
    let mut values = vec![0; room];
    let mut oldest = 0;
    for group in days {
        let ago = date(group).and_then(|date| usize::try_from((last - date).get_days()).ok());
        if let Some(ago) = ago.filter(|ago| *ago < room) {
            values[room - 1 - ago] = group.usage.tokens.total();
            oldest = oldest.max(ago);
        }
    }
    let line = format!("{words}{}", sparkline(&values[room - 1 - oldest..]));
    writeln!(out, "\n{}", truncate(&line, style.width))
}

/// A column and its cells.
struct Field {
    column: Column,
    /// The highest rank is dropped first; 0 is never dropped.
    rank: u8,
    cells: Vec<String>,
}

impl Field {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| width(cell)).max().unwrap_or_default();
        cells.max(width(self.column.name))
    }
}

/// A table of names and figures, with a bar for each row.
fn write(
    name: &'static str,
    names: Vec<String>,
    mut fields: Vec<Field>,
    values: &[u64],
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let room = (style.width * 2 / 5).max(MIN_NAME_WIDTH);
    let cells = names.iter().map(|name| truncate(&make_visible(name), room)).collect();
    fields.insert(0, Field { column: left(name), rank: 0, cells });
    let total = |fields: &[Field]| {
        fields.iter().map(|field| field.width() + GAP).sum::<usize>().saturating_sub(GAP)
    };
    while let Some(rank) = fields.iter().map(|field| field.rank).max().filter(|rank| *rank > 0) {
        let picture = if rank >= BAR_RANK { GAP + BAR_WIDTH.0 } else { 0 };
        if total(&fields) + picture <= style.width {
            break;
        }
        fields.retain(|field| field.rank != rank);
    }
    let room = style.width.saturating_sub(total(&fields) + GAP).min(BAR_WIDTH.1);
    if room >= BAR_WIDTH.0 {
        let most = values.iter().copied().max().unwrap_or_default();
        let cells = values.iter().map(|value| bar(*value, most, room)).collect();
        fields.push(Field { column: left(""), rank: 0, cells });
    }
    let rows: Vec<Vec<String>> = (0..names.len())
        .map(|row| fields.iter().map(|field| field.cells[row].clone()).collect())
        .collect();
    let columns: Vec<Column> = fields.into_iter().map(|field| field.column).collect();
    table::write(&columns, &rows, style, out)
}

fn group_table(
    by: By,
    groups: &[GroupFigures],
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let field = |column: &'static str, rank: u8, cell: &dyn Fn(&GroupFigures) -> String| Field {
        column: right(column),
        rank,
        cells: groups.iter().map(cell).collect(),
    };
    let mut fields = vec![
        field("TURNS", 2, &|group| format::number(group.turns)),
        field("INPUT", 5, &|group| compact(group.usage.tokens.input)),
        field("OUTPUT", 4, &|group| compact(group.usage.tokens.output)),
        field("CACHE R", 6, &|group| compact(group.usage.tokens.cache_read)),
        field("CACHE W", 6, &|group| compact(group.usage.tokens.cache_write)),
        field("TOKENS", 0, &|group| compact(group.usage.tokens.total())),
    ];
    if groups.iter().any(|group| group.usage.tokens.reasoning > 0) {
        let cell = |group: &GroupFigures| compact(group.usage.tokens.reasoning);
        fields.insert(3, field("REASONING", 7, &cell));
    }
    if groups.iter().any(|group| group.usage.cost_usd.is_some()) {
        fields
            .push(field("COST", 3, &|group| group.usage.cost_usd.map(dollars).unwrap_or_default()));
    }
    if groups.iter().any(|group| group.usage.estimated_cost_usd.is_some()) {
        let cell =
            |group: &GroupFigures| group.usage.estimated_cost_usd.map(dollars).unwrap_or_default();
        fields.push(field("ESTIMATED", 4, &cell));
    }
    let name = match by {
        By::Day => "DAY",
        By::Model => "MODEL",
        By::Agent => "AGENT",
        By::Project => "PROJECT",
        By::Tool => "TOOL",
    };
    let names = groups.iter().map(|group| group_name(group, by)).collect();
    let values: Vec<u64> = groups.iter().map(|group| group.usage.tokens.total()).collect();
    write(name, names, fields, &values, style, out)
}

fn group_name(group: &GroupFigures, by: By) -> String {
    match (&group.name, by) {
        (Some(path), By::Project) => end_of(path),
        (Some(name), By::Day | By::Model | By::Agent | By::Tool) => name.clone(),
        (None, By::Day) => "(no time)".to_owned(),
        (None, By::Model) => "(no model)".to_owned(),
        (None, By::Agent | By::Tool) => "(no name)".to_owned(),
        (None, By::Project) => "(no project)".to_owned(),
    }
}

/// The last two folders of a path, enough to distinguish most projects.
fn end_of(path: &str) -> String {
    let mut folders: Vec<&str> =
        path.rsplit(['/', '\\']).filter(|folder| !folder.is_empty()).take(2).collect();
    folders.reverse();
    if folders.is_empty() { path.to_owned() } else { folders.join("/") }
}

fn tools(tools: &[ToolFigures], style: &Style, out: &mut impl Write) -> io::Result<()> {
    let field = |column: &'static str, rank: u8, cell: &dyn Fn(&ToolFigures) -> String| Field {
        column: right(column),
        rank,
        cells: tools.iter().map(cell).collect(),
    };
    let took = |took: Option<u64>| took.map(format::duration).unwrap_or_default();
    let mut fields = vec![
        field("CALLS", 0, &|tool| format::number(tool.calls)),
        field("FAILED", 2, &|tool| some(tool.failed)),
        field("DENIED", 6, &|tool| some(tool.denied)),
        field("STOPPED", 6, &|tool| some(tool.interrupted)),
        field("RUNNING", 7, &|tool| some(tool.running)),
        field("ERRORS", 1, &|tool| tool.error_rate.map(percent).unwrap_or_default()),
        field("MEDIAN", 3, &|tool| took(tool.duration.median_ms)),
        field("95 %", 4, &|tool| took(tool.duration.p95_ms)),
        field("TOTAL", 5, &|tool| {
            took(Some(tool.duration.total_ms).filter(|_| tool.duration.measured > 0))
        }),
    ];
    fields.retain(|field| field.cells.iter().any(|cell| !cell.is_empty()));
    let names = tools.iter().map(|tool| tool.name.clone()).collect();
    let values: Vec<u64> = tools.iter().map(|tool| tool.calls).collect();
    write("TOOL", names, fields, &values, style, out)
}

/// An empty cell for zero, so that other values stand out.
fn some(value: u64) -> String {
    if value == 0 { String::new() } else { format::number(value) }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn of(share: Option<f64>) -> String {
    share.map_or(String::new(), |share| format!(" ({})", percent(share)))
}

fn dollars(cost: f64) -> String {
    format!("${cost:.2}")
}
