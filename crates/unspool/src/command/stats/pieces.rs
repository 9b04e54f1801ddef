//! `unspool stats --by piece`: what the prompts of the model calls of all sessions consisted of.

use std::io::{self, Write};

use anyhow::Result;
use unspool_query::prompts::{ArchiveContextDocument, context_of_sessions};
use unspool_query::times::parse_time;
use unspool_store::blocking::block_on;
use unspool_store::stats::csv;
use unspool_store::store::SessionFilter;
use unspool_view::block::{Block, Span};
use unspool_view::present::format;

use super::Stats;
use crate::archive::Archive;
use crate::command::prompt::context_blocks;
use crate::{paint, terminal_writer};

/// Rows of each table, unless a number is asked for.
const ROWS: usize = 40;

impl Stats {
    pub(super) fn pieces(self, archive: &Archive) -> Result<()> {
        let filter = SessionFilter {
            since: self.since.as_deref().map(parse_time).transpose()?,
            until: self.until.as_deref().map(parse_time).transpose()?,
            agent: self.agent,
            project: self.project,
            ..SessionFilter::default()
        };
        let total = block_on(context_of_sessions(&archive.view()?, filter))?;
        let limit = self.limit.unwrap_or(usize::MAX);
        if self.json {
            return super::super::write_json(&ArchiveContextDocument::new(&total, limit));
        }
        if self.csv {
            let mut out = terminal_writer::stdout();
            let sources = total.context.sources.iter().take(limit);
            out.write_all(csv::pieces(sources).as_bytes())?;
            return Ok(out.flush()?);
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        if total.sessions == 0 {
            stderr_line!(
                "unspool: no session has known prompts; `unspool doctor` says for each agent how to \
                 get them, and `unspool db rebuild --prompts` reads logs again that an earlier \
                 version has read"
            );
            return Ok(());
        }
        let sessions = format::count(usize::try_from(total.sessions)?, "session");
        let calls = format::count(usize::try_from(total.calls)?, "call");
        let mut head = format!("What {calls} of {sessions} were sent.");
        if total.without_prompts > 0 {
            let others = format::count(usize::try_from(total.without_prompts)?, "session");
            head.push_str(&format!(" The prompts of {others} are not known."));
        }
        let mut blocks = vec![Block::Paragraph { spans: vec![Span::plain(head)] }];
        blocks.extend(context_blocks(&total.context, self.limit.unwrap_or(ROWS)));
        let style = super::super::style(self.width, false, true);
        paint::blocks(&blocks, &style, &mut out)?;
        Ok(out.flush()?)
    }
}
