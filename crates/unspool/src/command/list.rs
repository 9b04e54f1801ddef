//! `unspool list`: the sessions of the archive, newest first.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use rustc_hash::FxHashSet;
use unspool_model::price::Prices;
use unspool_model::summary::UsageScope;
use unspool_query::activity::{ListDocument, activity, recent_sessions};
use unspool_query::times::parse_time;
use unspool_store::blocking::block_on;
use unspool_store::store::{SessionFilter, StoredSession, View};
use unspool_view::lines::{make_visible, truncate};
use unspool_view::present::activity::Activity;
use unspool_view::present::ending::ending;
use unspool_view::present::{self, format};

use crate::archive::Archive;
use crate::config;
use crate::table::{self, left, rest, right};

/// List the sessions of the archive, newest first
#[derive(Args)]
pub struct List {
    /// Write the sessions as JSON
    #[arg(long)]
    json: bool,
    /// Only sessions of this agent: claude-code, codex, …
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only sessions of projects whose path contains this
    #[arg(long, value_name = "PATH")]
    project: Option<String>,
    /// Only sessions with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only sessions active at this time or later: 2026-05-31, yesterday, monday, 36h, 7d, 2w,
    /// "30 minutes ago", "3 months ago"
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Maximum number of sessions; 50 by default on a terminal, all otherwise
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Width in columns, at least 20; the terminal's width by default, and nothing is cut
    /// where there is none
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
}

/// The limit on a terminal.
const DEFAULT_LIMIT: u64 = 50;

impl List {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let narrow = self.agent.is_some()
            || self.project.is_some()
            || self.tag.is_some()
            || self.since.is_some()
            || self.limit == Some(0);
        let truncate = self.limit.is_none() && !self.json && io::stdout().is_terminal();
        let filter = SessionFilter {
            agent: self.agent,
            project: self.project,
            tag: self.tag,
            since: self.since.as_deref().map(parse_time).transpose()?,
            limit: self.limit.or(truncate.then_some(DEFAULT_LIMIT)),
            ..SessionFilter::default()
        };
        let scope = filter.scope();
        let prices = config::prices()?;
        let view = archive.view()?;
        let sessions = block_on(view.sessions(filter))?;
        if self.json {
            let documents = sessions
                .iter()
                .map(|stored| block_on(ListDocument::of(&view, stored, &prices)))
                .collect::<Result<Vec<_>, _>>()?;
            return super::write_json(&documents);
        }
        let activities = sessions.iter().map(|stored| block_on(activity(&view, stored)));
        let activities: Vec<Option<Activity>> = activities.collect::<Result<_, _>>()?;
        if sessions.is_empty() {
            stderr_line!("unspool: {}", super::nothing_found(narrow));
        }
        let columns = [
            left("ID"),
            left("STARTED"),
            left("AGENT"),
            rest("PROJECT"),
            right("TURNS"),
            right("PARTS"),
            right("TOKENS"),
            right("COST"),
            rest("TITLE"),
        ];
        let rows: Vec<Vec<String>> = sessions
            .iter()
            .zip(&activities)
            .map(|(stored, activity)| row(stored, activity.as_ref(), &prices, scope))
            .collect();
        let mut style = super::style(self.width, false, false);
        // A program that reads the list gets whole titles.
        if self.width.is_none() && !io::stdout().is_terminal() {
            style.width = usize::MAX;
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        if !narrow {
            write_live(&view, &mut out)?;
        }
        if !rows.is_empty() {
            table::write(&columns, &rows, &style, &mut out)?;
        }
        io::Write::flush(&mut out)?;
        super::warn_of_budgets(&view, &prices)?;
        if truncate && rows.len() as u64 == DEFAULT_LIMIT {
            stderr_line!(
                "unspool: only the newest {DEFAULT_LIMIT} sessions are shown; --limit N shows more"
            );
        }
        Ok(())
    }
}

/// What agents do now, one line each and not cut: the table has no room for it. Those that wait
/// first.
fn write_live<V: View>(view: &V, out: &mut impl Write) -> Result<()> {
    let mut live = block_on(recent_sessions(view, &FxHashSet::default()))?;
    live.retain(|session| session.activity.is_some() && !session.stored.is_agent());
    live.sort_by_key(|session| Activity::order(session.activity.as_ref()));
    for session in &live {
        let Some(activity) = &session.activity else { continue };
        let summary = &session.stored.summary;
        let id = summary.session.id.to_string();
        let (glyph, said) = (activity.glyph(0), activity.sentence(Timestamp::now()));
        let line = format!("{glyph} {}  {}  {said}", &id[..8], summary.session.agent);
        writeln!(out, "{}", make_visible(&format::first_line(&line, 400)))?;
    }
    if !live.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

fn row(
    stored: &StoredSession,
    activity: Option<&Activity>,
    prices: &Prices,
    scope: UsageScope,
) -> Vec<String> {
    let summary = &stored.summary;
    let used = summary.usage_in(scope);
    let id = summary.session.id.to_string();
    let started = summary.started.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string());
    let title = summary.title.as_deref().unwrap_or_default();
    let title = format::first_line(title, 200);
    // For a live session, what it does now matters more than its title.
    let title = match (activity, ending(summary.session.state, summary.last_turn)) {
        (Some(activity), _) => format!("[{}] {title}", activity.sentence(Timestamp::now())),
        (None, Some((ending, _))) => format!("[{ending}] {title}"),
        (None, None) => title,
    };
    vec![
        // Eight characters of an id are unique in practice.
        id.chars().take(8).collect(),
        started.unwrap_or_default(),
        summary.session.agent.clone(),
        project(summary.session.facts.project.as_deref().unwrap_or_default()),
        summary.turns.to_string(),
        summary.parts.to_string(),
        format::token_sum(used.fresh(), used.cache_read),
        present::short_cost(summary.spending_in(scope), prices),
        if stored.sub_agent { format!("↳ {title}") } else { title },
    ]
}

/// The last folder of a path.
fn project(path: &str) -> String {
    let name = std::path::Path::new(path).file_name();
    let name = name.map_or_else(|| path.into(), |name| name.to_string_lossy());
    truncate(&name, 20)
}
