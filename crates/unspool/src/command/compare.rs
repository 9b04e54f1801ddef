//! `unspool compare`: two sessions side by side.

use std::io;

use anyhow::Result;
use clap::Args;
use unspool_query::compare::comparison;
use unspool_store::blocking::block_on;
use unspool_view::present::compare::blocks;

use crate::archive::{Archive, find};
use crate::{config, paint};

/// Compare two sessions: their turns, tools, costs and files side by side
///
/// Turns with the same prompt stand in one row, in the order of both sessions; the others stand
/// beside each other by their order.
#[derive(Args)]
pub struct Compare {
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id
    first: String,
    /// The session to compare it with
    second: String,
    /// Write the comparison as JSON
    #[arg(long)]
    json: bool,
    /// Write plain text without colours
    #[arg(long)]
    plain: bool,
    /// Width in columns, at least 20; the terminal's width by default
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
}

impl Compare {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let view = archive.view()?;
        let (first, second) = (find(&view, &self.first)?, find(&view, &self.second)?);
        let found = block_on(comparison(&view, &first, &second, &config::prices()?))?;
        if self.json {
            return super::write_json(&found.document());
        }
        let style = super::style(self.width, self.plain, true);
        let mut out = io::BufWriter::new(io::stdout().lock());
        paint::blocks(&blocks(&found), &style, &mut out)?;
        Ok(())
    }
}
