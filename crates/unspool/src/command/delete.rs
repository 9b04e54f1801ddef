//! `unspool delete`: removes a session from the archive, its bytes included.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Result, bail};
use clap::Args;
use unspool_ingest::service::request::RequestOutcome;
use unspool_view::lines::make_visible;
use unspool_view::present::format;

use crate::archive::{Archive, delete, find};

/// Delete a session and its sub-agents from the archive; `unspool sync` does not restore it
///
/// Its content is overwritten in the archive's file. Its words stay in the search index until you
/// run `unspool db vacuum`. The agent's own log, exported files and backups are not changed.
/// `unspool import --restore PATH` restores a session from its log.
#[derive(Args)]
pub struct Delete {
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id
    session: String,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

impl Delete {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let stored = find(&archive.view()?, &self.session)?;
        let summary = &stored.summary;
        let title = summary.title.as_deref().unwrap_or("untitled");
        let what = format!(
            "session {} ({}), {} turns, {} parts",
            summary.session.id, title, summary.turns, summary.parts
        );
        if !self.yes {
            if !io::stdin().is_terminal() {
                bail!("cannot ask for confirmation without a terminal; add --yes to delete {what}");
            }
            eprint!("Delete {} and its sub-agents? [y/N] ", make_visible(&what));
            io::stderr().flush()?;
            let mut answer = String::new();
            io::stdin().lock().read_line(&mut answer)?;
            if !matches!(answer.trim(), "y" | "Y" | "yes") {
                stderr_line!("unspool: nothing was deleted");
                return Ok(());
            }
        }
        match delete(archive, summary.session.id)? {
            RequestOutcome::Deleted(more) if more > 1 => {
                let sub_agents = format::count((more - 1) as usize, "sub-agent");
                writeln!(io::stdout(), "deleted {} and {sub_agents}", make_visible(&what))?;
            }
            RequestOutcome::Deleted(_)
            | RequestOutcome::Written
            | RequestOutcome::Synced(_)
            | RequestOutcome::Agents(_)
            | RequestOutcome::Received(..) => {
                writeln!(io::stdout(), "deleted {}", make_visible(&what))?;
            }
        }
        Ok(())
    }
}
