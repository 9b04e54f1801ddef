//! `unspool stats`: usage and activity by day, week, month, hour, model, agent, project, tool and
//! session.

mod expensive;
mod heat_map;
mod pieces;
mod tables;
mod tools;

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use unspool_query::times::parse_time;
use unspool_store::blocking::block_on;
use unspool_store::stats::StatsRequest;
use unspool_store::stats::csv::StatsTable;
use unspool_store::store::View;

use crate::archive::Archive;
use crate::{config, terminal_writer};

/// Show tokens, cost, turns, tool calls and errors by day, model, agent, project, tool and session
///
/// The tokens of a model call count on the day (UTC) on which its turn started. The cost is what
/// the agent reported if that covers the whole session; otherwise it is an estimate from the price
/// list, marked with ~. Prices in the config file ([prices]) override the list.
#[derive(Args)]
pub struct Stats {
    /// Write all tables as JSON
    #[arg(long)]
    json: bool,
    /// Write one table as CSV: the one of --by, or the days
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Only sessions of this agent: claude-code, codex, …
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only sessions of projects whose path contains this
    #[arg(long, value_name = "PATH")]
    project: Option<String>,
    /// Only turns that started at this time or later: 2026-05-31, yesterday, monday, 36h, 7d, 2w,
    /// "30 minutes ago", "3 months ago"
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only turns that started before this time; a day means its start (00:00 UTC)
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Show only this table, with all of its rows. `piece` is what the prompts of the model calls
    /// consisted of: kinds, MCP servers, files, hooks and tools
    #[arg(long, value_name = "TABLE", value_parser = table_parser())]
    by: Option<Table>,
    /// Maximum number of rows of each table: the latest days, weeks or months, else the largest rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Width in columns, at least 20; the terminal's width by default
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
}

/// A table that `--by` names.
#[derive(Clone, Copy)]
enum Table {
    Stats(StatsTable),
    /// Of prompts, which only some agents write down.
    Pieces,
}

const PIECES: &str = "piece";

fn table_parser() -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(StatsTable::NAMES.iter().copied().chain([PIECES]))
        .map(|name| StatsTable::of_name(&name).map_or(Table::Pieces, Table::Stats))
}

impl Stats {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let by = match self.by {
            Some(Table::Pieces) => return self.pieces(archive),
            Some(Table::Stats(by)) => Some(by),
            None => None,
        };
        let request = StatsRequest {
            agent: self.agent,
            project: self.project,
            folder: None,
            since: self.since.as_deref().map(parse_time).transpose()?,
            until: self.until.as_deref().map(parse_time).transpose()?,
            without_tag: None,
            prices: config::prices()?,
        };
        let narrow = request.is_narrow();
        let view = archive.view()?;
        let mut figures = block_on(view.stats(request))?;
        if self.json || self.csv {
            if let Some(limit) = self.limit {
                figures.truncate(limit);
            }
            if self.json {
                return super::write_json(&figures);
            }
            let mut out = terminal_writer::stdout();
            out.write_all(figures.csv(by.unwrap_or(StatsTable::Day)).as_bytes())?;
            return Ok(out.flush()?);
        }
        super::warn_of_budgets(&view, &config::prices()?)?;
        if figures.totals.sessions == 0 {
            stderr_line!("unspool: {}", super::nothing_found(narrow));
            return Ok(());
        }
        let style = super::style(self.width, false, false);
        let mut out = io::BufWriter::new(io::stdout().lock());
        match by {
            Some(by) => tables::one(&figures, by, self.limit, &style, &mut out)?,
            None => tables::all(&figures, self.limit, &style, &mut out)?,
        }
        Ok(out.flush()?)
    }
}
