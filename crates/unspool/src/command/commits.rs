//! `unspool commits` and `unspool log`: which commits hold lines of which sessions.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use unspool_query::blame::commits::{CommitShares, range_commits, titles};
use unspool_query::blame::range_document;
use unspool_query::blame::standing::standing;
use unspool_query::changes::changes;
use unspool_store::blocking::block_on;
use unspool_view::block::Span;
use unspool_view::lines::make_visible;

use crate::archive::{Archive, find};
use crate::terminal_writer;

/// Show the commits that hold lines of a session
#[derive(Args)]
pub struct Commits {
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id
    session: String,
    /// Write the commits as JSON
    #[arg(long)]
    json: bool,
}

impl Commits {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let view = archive.view()?;
        let stored = find(&view, &self.session)?;
        let changes = block_on(changes(&view, &stored, None))?.unwrap_or_default();
        let found = block_on(standing(&view, &stored, &changes))?;
        if self.json {
            return super::write_json(&found.document());
        }
        let mut out = terminal_writer::stdout();
        for commit in &found.standing.commits {
            writeln!(out, "{}", text_of(&commit.line()))?;
        }
        out.flush()?;
        if found.standing.commits.is_empty() {
            stderr_line!("unspool: no commit holds a line of this session");
        }
        let summary = found.standing.summary();
        if !summary.is_empty() {
            stderr_line!("unspool: {}", text_of(&summary));
        }
        if !found.outside.is_empty() {
            let count = found.outside.len();
            stderr_line!("unspool: {count} edited files are in no git repository of this machine");
        }
        Ok(())
    }
}

fn text_of(spans: &[Span]) -> String {
    let text: String = spans.iter().map(|span| span.text.as_str()).collect();
    make_visible(&text).into_owned()
}

/// Show which sessions made the commits of a range
#[derive(Args)]
pub struct Log {
    /// The commits, as git names them: `main~10..main`, or a branch
    #[arg(long, value_name = "RANGE")]
    git: String,
    /// A folder of the repository; the current folder by default
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// Write the commits as JSON
    #[arg(long)]
    json: bool,
}

impl Log {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let view = archive.view()?;
        let commits = block_on(range_commits(&view, &self.project, &self.git))?;
        let titles = block_on(titles(&view, &commits))?;
        if self.json {
            return super::write_json(&range_document(&commits, &titles));
        }
        let mut out = terminal_writer::stdout();
        for commit in &commits {
            writeln!(out, "{}  {}", head(commit), subject(commit))?;
            for share in &commit.sessions {
                let id: String = share.session.to_string().chars().take(8).collect();
                let (agent, title) = titles
                    .get(&share.session)
                    .map(|(agent, title)| (agent.as_str(), title.as_deref().unwrap_or_default()))
                    .unwrap_or_default();
                let text = format!("{agent}  {title}");
                let text = make_visible(&text);
                writeln!(out, "    {id}  {} of {} lines  {text}", share.lines, commit.added)?;
            }
        }
        Ok(out.flush()?)
    }
}

fn head(commit: &CommitShares) -> String {
    let id: String = commit.id.chars().take(10).collect();
    let at = Timestamp::from_second(commit.author_time).ok();
    let day = at.map(|at| at.strftime("%Y-%m-%d").to_string()).unwrap_or_default();
    format!("{id}  {day}")
}

fn subject(commit: &CommitShares) -> String {
    make_visible(&commit.subject).into_owned()
}
