//! Prints statistics: a summary, a sparkline of the last weeks, and tables that fit the terminal.
//! The least important columns are dropped first, and a bar fills the remaining width.

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::civil::Date;
use unspool_model::price::Prices;
use unspool_model::session::Usage;
use unspool_store::stats::csv::StatsTable;
use unspool_store::stats::{GroupFigures, Stats, UsageFigures, share};
use unspool_view::lines::{make_visible, truncate, width};
use unspool_view::present::format::{self, compact};

use super::{expensive, heat_map, tools};
use crate::chart::{bar, sparkline};
use crate::paint::Style;
use crate::table::{self, Column, left, right};

/// Rows of each table when all tables are shown.
const MAX_DAYS: usize = 14;
const MAX_PROJECTS: usize = 8;
const MAX_TOOLS: usize = 12;
const MAX_SESSIONS: usize = 5;

/// Maximum length of the sparkline.
const SPARKLINE_WEEKS: usize = 8;

/// Minimum width of names; minimum and maximum width of bars.
const MIN_NAME_WIDTH: usize = 12;
const BAR_WIDTH: (usize, usize) = (6, 24);
const GAP: usize = 2;

/// Below this terminal width, numbers are abbreviated.
const COMPACT_BELOW_WIDTH: usize = 32;

/// From this width on, sums of tokens tell cached ones apart.
const WORDS_FROM_WIDTH: usize = 60;

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
        (StatsTable::Day, Some(MAX_DAYS)),
        (StatsTable::Hour, None),
        (StatsTable::Model, None),
        (StatsTable::Project, Some(MAX_PROJECTS)),
        (StatsTable::Session, Some(MAX_SESSIONS)),
        (StatsTable::Tool, Some(MAX_TOOLS)),
    ];
    for (by, most) in tables {
        let is_empty = match by {
            StatsTable::Session => figures.most_expensive.is_empty(),
            StatsTable::Hour => figures.by_hour.is_empty(),
            StatsTable::Day
            | StatsTable::Week
            | StatsTable::Month
            | StatsTable::Model
            | StatsTable::Agent
            | StatsTable::Project
            | StatsTable::Tool => false,
        };
        if is_empty {
            continue;
        }
        writeln!(out)?;
        let left_out = print_table(figures, by, limit.or(most), style, out)?;
        more(left_out, &format!("--by {} shows all", by.name()), style, out)?;
    }
    Ok(())
}

/// One table, with a line about the rows beyond the limit.
pub fn one(
    figures: &Stats,
    by: StatsTable,
    limit: Option<usize>,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let left_out = print_table(figures, by, limit, style, out)?;
    more(left_out, "raise --limit to see them", style, out)
}

/// Prints a table. Returns the number of rows beyond the limit.
fn print_table(
    figures: &Stats,
    by: StatsTable,
    limit: Option<usize>,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<usize> {
    let limit = limit.unwrap_or(usize::MAX);
    let groups = match by {
        StatsTable::Day => &figures.by_day,
        StatsTable::Week => &figures.by_week,
        StatsTable::Month => &figures.by_month,
        StatsTable::Model => &figures.by_model,
        StatsTable::Agent => &figures.by_agent,
        StatsTable::Project => &figures.by_project,
        StatsTable::Hour => {
            heat_map::write(&figures.by_hour, style, out)?;
            return Ok(0);
        }
        StatsTable::Session => {
            let shown = figures.most_expensive.len().min(limit);
            expensive::write(&figures.most_expensive[..shown], style, out)?;
            return Ok(figures.most_expensive.len() - shown);
        }
        StatsTable::Tool => {
            let shown = figures.tools.len().min(limit);
            tools::write(&figures.tools[..shown], style, out)?;
            return Ok(figures.tools.len() - shown);
        }
    };
    let left_out = groups.len().saturating_sub(limit);
    let shown = match is_period(by) {
        true => &groups[left_out..],
        false => &groups[..groups.len() - left_out],
    };
    group_table(by, shown, style, out)?;
    Ok(left_out)
}

/// True if the rows are in the order of time: the last ones are shown.
fn is_period(by: StatsTable) -> bool {
    matches!(by, StatsTable::Day | StatsTable::Week | StatsTable::Month)
}

/// Prints how many rows were left out and how to see them.
fn more(left_out: usize, how: &str, style: &Style, out: &mut impl Write) -> io::Result<()> {
    if left_out == 0 {
        return Ok(());
    }
    let line = format!("… and {} more; {how}", format::number(left_out as u64));
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
    let said = format!("reported by {} of {}", number(totals.sessions_with_cost), sessions[0]);
    let unpriced = totals.usage.unpriced_steps;
    let without = match unpriced {
        0 => String::new(),
        calls => format!(", except {} without a price", count(calls, "call")),
    };
    let said = match totals.usage.is_estimated {
        true => format!("{said}, estimated for the others{without}"),
        false => said,
    };
    let estimated = totals.usage.estimated_cost_usd.map_or("–".to_owned(), dollars);
    let by_prices = format!("all model calls at the list prices of {}{without}", Prices::AS_OF);
    let thoughts = of(share(totals.reasoning_parts, totals.parts));
    let rows = [
        ("input", number(tokens.input), "tokens that were not cached".to_owned()),
        ("output", number(tokens.output), reasoning),
        ("cache read", number(tokens.cache_read), String::new()),
        ("cache write", number(tokens.cache_write), String::new()),
        ("cost", or_dash(spent(&totals.usage)), said),
        ("list price", estimated, by_prices),
        (
            "tool calls",
            number(totals.tool_calls),
            format!("{} failed{}", number(failed), of(share(failed, finished))),
        ),
        ("errors", number(totals.errors), "including failed tool calls".to_owned()),
        ("reasoning", number(totals.reasoning_parts), format!("reasoning parts{thoughts}")),
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
pub(super) struct Field {
    pub column: Column,
    /// The highest rank is dropped first; 0 is never dropped.
    pub rank: u8,
    pub cells: Vec<String>,
}

impl Field {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| width(cell)).max().unwrap_or_default();
        cells.max(width(self.column.name))
    }
}

/// A table of names and figures, with a bar for each row.
pub(super) fn write(
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
    by: StatsTable,
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
        field("TOKENS", 0, &|group| tokens(group.usage.tokens, style)),
    ];
    if groups.iter().any(|group| group.usage.tokens.reasoning > 0) {
        let cell = |group: &GroupFigures| compact(group.usage.tokens.reasoning);
        fields.insert(3, field("REASONING", 7, &cell));
    }
    if groups.iter().any(|group| group.usage.spent_usd.is_some()) {
        fields.push(field("COST", 3, &|group| spent(&group.usage)));
    }
    let name = match by {
        StatsTable::Day => "DAY",
        StatsTable::Week => "WEEK FROM",
        StatsTable::Month => "MONTH",
        StatsTable::Model => "MODEL",
        StatsTable::Agent => "AGENT",
        StatsTable::Project => "PROJECT",
        StatsTable::Hour | StatsTable::Tool | StatsTable::Session => "",
    };
    let names = groups.iter().map(|group| group_name(group, by)).collect();
    let values: Vec<u64> = groups.iter().map(|group| group.usage.tokens.total()).collect();
    write(name, names, fields, &values, style, out)
}

fn group_name(group: &GroupFigures, by: StatsTable) -> String {
    match (&group.name, by) {
        (Some(path), StatsTable::Project) => end_of(path),
        (Some(name), _) => name.clone(),
        (None, StatsTable::Model) => "(no model)".to_owned(),
        (None, StatsTable::Project) => "(no project)".to_owned(),
        (None, _) if is_period(by) => "(no time)".to_owned(),
        (None, _) => "(no name)".to_owned(),
    }
}

/// A sum of tokens. Where there is little room, without the words.
pub(super) fn tokens(used: Usage, style: &Style) -> String {
    match style.width < WORDS_FROM_WIDTH {
        true => compact(used.total()),
        false => format::token_sum(used.fresh(), used.cache_read),
    }
}

/// `$1.20`, or `~$1.20` if a part of it is estimated.
pub(super) fn spent(usage: &UsageFigures) -> String {
    let spent = usage.spent_usd.map(|cost| format::cost(cost, usage.is_estimated));
    spent.unwrap_or_default()
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "–".to_owned() } else { text }
}

/// The last two folders of a path, enough to distinguish most projects.
fn end_of(path: &str) -> String {
    let mut folders: Vec<&str> =
        path.rsplit(['/', '\\']).filter(|folder| !folder.is_empty()).take(2).collect();
    folders.reverse();
    if folders.is_empty() { path.to_owned() } else { folders.join("/") }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn of(share: Option<f64>) -> String {
    share.map_or(String::new(), |share| format!(" ({})", percent(share)))
}

fn dollars(cost: f64) -> String {
    format::cost(cost, false)
}
