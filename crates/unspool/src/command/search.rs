//! `unspool search`: full-text search over all sessions.

use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use unspool_query::params::{SEARCH_KINDS, parse_time};
use unspool_store::blocking::block_on;
use unspool_store::search::{Hit, HitDocument, SearchRequest, SearchResults};
use unspool_store::store::View;
use unspool_view::lines::{make_visible, truncate};
use unspool_view::present::format;

use crate::archive::Archive;
use crate::paint::Style;

/// Search everything that agents and users said, read and wrote
///
/// All words must occur in one part. `pars*` matches words with that prefix, "exact fragment"
/// matches literally, punctuation included (src/main.rs needs no quotes), and -word excludes parts.
/// Put a query that starts with - after --.
#[derive(Args)]
pub struct Search {
    /// What to look for
    #[arg(required = true)]
    query: Vec<String>,
    /// Write the hits as JSON
    #[arg(long)]
    json: bool,
    /// Only in sessions of this agent: claude-code, codex, …
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only in projects whose path contains this
    #[arg(long, value_name = "PATH")]
    project: Option<String>,
    /// Only in parts of this kind: user, text, reasoning, tool, error, …, or title
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only in calls of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only in calls with this state: completed, failed, denied, interrupted
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only in output of models whose name contains this
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only then or later: 2026-05-31, 2026-05-31T12:00:00Z, 36h, 7d, 2w
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only before then
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Maximum number of hits
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Width in columns, at least 20; the terminal's width by default
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
}

impl Search {
    pub fn run(self, archive: &Archive) -> Result<()> {
        if let Some(kind) = self.kind.as_deref().filter(|kind| !SEARCH_KINDS.contains(kind)) {
            bail!("unknown kind {kind}; known kinds are {}", SEARCH_KINDS.join(", "));
        }
        let style = super::style(self.width, false, false);
        let request = SearchRequest {
            session: None,
            query: self.query.join(" "),
            agent: self.agent,
            project: self.project,
            kind: self.kind,
            tool: self.tool,
            state: self.state,
            model: self.model,
            since: self.since.as_deref().map(parse_time).transpose()?,
            until: self.until.as_deref().map(parse_time).transpose()?,
            limit: self.limit,
            // The snippet is indented below the location line.
            width: if self.json {
                HitDocument::WIDTH
            } else {
                style.width.saturating_sub(6).max(40)
            },
        };
        let query = request.query.clone();
        let findings = block_on(archive.view()?.search(request))?;
        if self.json {
            let hits: Vec<HitDocument<'_>> = findings.hits.iter().map(HitDocument::of).collect();
            return super::write_json(&hits);
        }
        if findings.hits.is_empty() {
            bail!("nothing was found for {query}; try fewer or shorter words");
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        for hit in &findings.hits {
            paint(hit, &style, &mut out)?;
        }
        out.flush()?;
        note(&findings);
        Ok(())
    }
}

/// Explains on stderr how the hits were chosen.
fn note(findings: &SearchResults) {
    if findings.widened {
        eprintln!("unspool: no whole-word match; these contain it inside a longer word");
    }
    if findings.newest_first {
        eprintln!("unspool: too many matches to rank; these are the newest");
    } else if findings.more {
        eprintln!("unspool: there may be more; raise --limit to see them");
    }
}

fn time(hit: &Hit) -> Option<Timestamp> {
    hit.at.and_then(|at| Timestamp::from_millisecond(at).ok())
}

/// Prints a hit: its location, then the snippet.
fn paint(hit: &Hit, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let (bold, dim, mark, end) = match style.colour {
        true => ("\x1b[1m", "\x1b[2m", "\x1b[1;33m", "\x1b[0m"),
        false => ("", "", "", ""),
    };
    let id: String = hit.session.to_string().chars().take(8).collect();
    let turn = hit.turn.map_or(String::new(), |turn| format!(" turn {turn}"));
    let tool = hit.tool.as_ref().map_or(String::new(), |tool| format!(" {tool}"));
    let at = time(hit).map_or(String::new(), |at| at.strftime("%Y-%m-%d %H:%M").to_string());
    let title = format::first_line(hit.title.as_deref().unwrap_or_default(), 200);
    let place = format!("{id}{turn}  {}{tool}  {at}  ", hit.kind);
    let place = make_visible(&place).into_owned();
    let room = style.width.saturating_sub(unspool_view::lines::width(&place));
    let title = truncate(&make_visible(&title), room);
    writeln!(out, "{bold}{place}{end}{dim}{title}{end}")?;
    write!(out, "    ")?;
    let mut at = 0;
    for range in &hit.snippet.ranges {
        let (before, found) =
            (&hit.snippet.text[at..range.start], &hit.snippet.text[range.clone()]);
        write!(out, "{}{mark}{}{end}", make_visible(before), make_visible(found))?;
        at = range.end;
    }
    writeln!(out, "{}", make_visible(&hit.snippet.text[at..]))
}
