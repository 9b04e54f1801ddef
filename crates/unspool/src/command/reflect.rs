//! `unspool reflect`: what went wrong in sessions, or cost more than it had to.

mod verify;

use std::io::{self, IsTerminal, Write, stderr};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use unspool_query::findings::{Findings, FindingsDocument};
use unspool_query::times::parse_time;
use unspool_store::blocking::block_on;
use unspool_store::store::SessionFilter;
use unspool_view::finding::Rule;
use unspool_view::present::findings;
use unspool_view::present::format;

use crate::archive::{Archive, find};
use crate::{config, paint};

/// Sessions between two messages about progress.
const PROGRESS_EVERY: usize = 25;

/// Find what went wrong in sessions, or cost more than it had to
///
/// Fixed rules look for failures that repeat, calls and reads that were in vain, edits that missed,
/// denied calls, slow steps, failed model calls and, where prompts are known, lost instructions and
/// unused tools. Each finding names the parts that show it.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Reflect {
    #[command(subcommand)]
    action: Option<Action>,
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id. Without it:
    /// all sessions, with the findings that take several
    #[arg(value_name = "SESSION", conflicts_with_all = ["project", "agent", "since", "until", "limit"])]
    session: Option<String>,
    /// Only sessions whose project's path contains this
    #[arg(long, value_name = "PATH")]
    project: Option<String>,
    /// Only sessions of this agent: claude-code, codex, …
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only sessions that ended at this time or later: 2026-05-31, yesterday, monday, 36h, 7d, 2w
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only sessions that started before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only the findings of this rule, all of them; may be given more than once
    #[arg(long, value_name = "RULE", value_parser = rule)]
    rule: Vec<Rule>,
    /// Only the newest N sessions
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Show all findings, not only the first of each rule
    #[arg(long)]
    all: bool,
    /// Write the findings as JSON
    #[arg(long)]
    json: bool,
    /// Write plain text without colours
    #[arg(long)]
    plain: bool,
    /// Width in columns, at least 20; the terminal's width by default
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
}

#[derive(Subcommand)]
enum Action {
    Verify(verify::Verify),
}

fn rule(name: &str) -> Result<Rule, String> {
    let names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    Rule::of_name(name).ok_or_else(|| format!("choose one of {}", names.join(", ")))
}

impl Reflect {
    pub fn run(self, archive: &Archive) -> Result<()> {
        if let Some(Action::Verify(verify)) = self.action {
            return verify.run(archive);
        }
        let view = archive.view()?;
        let reflection = config::reflection()?;
        let mut found = match &self.session {
            Some(session) => {
                let stored = find(&view, session)?;
                let session = block_on(reflection.session(&view, &stored))?;
                Findings { sessions: vec![session], across: Vec::new() }
            }
            None => {
                let filter = self.filter()?;
                let narrow = filter != SessionFilter::default();
                let found = block_on(reflection.over(&view, filter, progress()))?;
                end_progress(found.sessions.len());
                if found.sessions.is_empty() && !self.json {
                    bail!("{}", super::nothing_found(narrow));
                }
                found
            }
        };
        if !self.rule.is_empty() {
            found.retain(|rule| self.rule.contains(&rule));
        }
        if self.json {
            return super::write_json(&FindingsDocument::new(&found));
        }
        self.paint(&found)
    }

    fn filter(&self) -> Result<SessionFilter> {
        Ok(SessionFilter {
            project: self.project.clone(),
            agent: self.agent.clone(),
            since: self.since.as_deref().map(parse_time).transpose()?,
            until: self.until.as_deref().map(parse_time).transpose()?,
            limit: self.limit,
            ..SessionFilter::default()
        })
    }

    fn paint(&self, found: &Findings) -> Result<()> {
        let placed = found.placed();
        let (count, sessions) = (placed.len(), found.sessions.len());
        let style = super::style(self.width, self.plain, true);
        let mut out = io::BufWriter::new(io::stdout().lock());
        let of = match (found.sessions.as_slice(), &self.session) {
            ([one], Some(_)) => format!("“{}”", format::first_line(&one.title, 60)),
            _ => format::count(sessions, "session"),
        };
        let head = match count {
            0 => format!("Nothing found in {of}"),
            count => format!("{} in {of}", format::count(count, "finding")),
        };
        writeln!(out, "{}\n", unspool_view::lines::make_visible(&head))?;
        let all = self.all || !self.rule.is_empty();
        paint::blocks(&findings::blocks(&placed, all), &style, &mut out)?;
        Ok(())
    }
}

/// Says on a terminal how many sessions were looked at.
fn progress() -> impl FnMut(usize) + Send {
    let shows = stderr().is_terminal();
    move |count| {
        if shows && count % PROGRESS_EVERY == 0 {
            let _ = write!(stderr(), "\runspool: looked at {count} sessions\x1b[K");
        }
    }
}

fn end_progress(count: usize) {
    if stderr().is_terminal() && count >= PROGRESS_EVERY {
        let _ = write!(stderr(), "\r\x1b[K");
    }
}
