//! `unspool changes`: the files that a session changed, with the net diff of each.

use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::Args;
use unspool_query::changes::changes;
use unspool_store::blocking::block_on;
use unspool_view::block::{Block, Span};
use unspool_view::present::changes::Changes as FileChanges;

use crate::archive::{Archive, find};
use crate::paint;

/// Show which files a session changed, with the net diff of each
#[derive(Args)]
pub struct Changes {
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id
    session: String,
    /// Only the changes of the turn with this number
    #[arg(long, value_name = "N")]
    turn: Option<u32>,
    /// Only file names and the numbers of changed lines
    #[arg(long, conflicts_with_all = ["patch", "json"])]
    stat: bool,
    /// Write a patch for `git apply`. Files whose net change is unknown are not in it; they are
    /// named on standard error
    #[arg(long, conflicts_with = "json")]
    patch: bool,
    /// Write the changes as JSON
    #[arg(long)]
    json: bool,
    /// Write plain text without colours
    #[arg(long)]
    plain: bool,
    /// Width in columns, at least 20; the terminal's width by default
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
}

impl Changes {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let view = archive.view()?;
        let stored = find(&view, &self.session)?;
        let Some(changes) = block_on(changes(&view, &stored, self.turn))? else {
            let turn = self.turn.unwrap_or_default();
            bail!("this session has no turn {turn}; `unspool show` lists its turns");
        };
        if self.json {
            return super::write_json(&changes.document());
        }
        if self.patch {
            return write_patch(&changes);
        }
        let style = super::style(self.width, self.plain, true);
        let mut out = io::BufWriter::new(io::stdout().lock());
        let paragraph = |spans: Vec<Span>| Block::Paragraph { spans };
        let mut blocks = vec![paragraph(changes.summary())];
        blocks.extend(changes.notes().into_iter().map(|note| paragraph(vec![Span::plain(note)])));
        for file in &changes.files {
            blocks.push(paragraph(file.head()));
            if !self.stat {
                blocks.extend(file.body());
            }
        }
        paint::blocks(&blocks, &style, &mut out)?;
        Ok(())
    }
}

fn write_patch(changes: &FileChanges) -> Result<()> {
    io::stdout().lock().write_all(changes.patch().as_bytes())?;
    for file in &changes.files {
        if let Some(note) = file.left_out_of_patch() {
            stderr_line!("unspool: {} is not in the patch. {note}", file.name.escape_debug());
        }
    }
    for note in changes.notes() {
        stderr_line!("unspool: {note}");
    }
    Ok(())
}
