//! `unspool search`: full-text search over all sessions.

use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use unspool_query::params::{SEARCH_KINDS, TOOL_STATES};
use unspool_query::search::{self, Outcome, Reading};
use unspool_query::times::parse_time;
use unspool_store::blocking::block_on;
use unspool_store::search::{Hit, HitDocument, SearchRequest, SearchResults};
use unspool_view::lines::{make_visible, truncate};
use unspool_view::present::format;

use crate::archive::Archive;
use crate::paint::Style;

/// Search everything that agents and users said, read and wrote
///
/// All words must occur in one part. pars* matches words with that prefix, "exact fragment" matches
/// literally. Text with punctuation (src/main.rs) and command lines (rm -rf build) need no quotes:
/// they are searched as they are written. NOT word excludes parts with that word, and so does
/// -word, unless it looks like a flag (-rf, --all). Quote a command line for the shell:
/// unspool search 'rm -rf'.
#[derive(Args)]
pub struct Search {
    /// Words to search for; optional with --kind, --tool or --state, which then list the newest parts
    #[arg(required_unless_present_any = ["kind", "tool", "state"])]
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
    /// Only in parts of this kind: user, text, reasoning, tool, error, …, or title, or note
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only in calls of this tool; memory means all tools that keep or look up memories
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only in calls with this state: pending, running, completed, failed, denied, interrupted
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only in output of models whose name contains this
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only parts from this time or later: 2026-05-31, yesterday, monday, 36h, 7d, 2w, "last week",
    /// "30 minutes ago", "3 months ago"
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only parts from before this time; a day means its start (00:00 UTC)
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
            bail!("unknown kind “{kind}”; choose one of {}", SEARCH_KINDS.join(", "));
        }
        if let Some(state) = self.state.as_deref().filter(|state| !TOOL_STATES.contains(state)) {
            bail!("unknown state “{state}”; choose one of {}", TOOL_STATES.join(", "));
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
        let Outcome { results, reading } = block_on(search::search(&archive.view()?, request))?;
        if self.json {
            // The output is an array of hits, so the reading goes where the other remarks go.
            if !results.hits.is_empty() {
                explain(&reading);
            }
            let hits: Vec<HitDocument<'_>> = results.hits.iter().map(HitDocument::of).collect();
            return super::write_json(&hits);
        }
        if results.hits.is_empty() {
            bail!("{}", no_hits(&reading));
        }
        explain(&reading);
        let mut out = io::BufWriter::new(io::stdout().lock());
        for hit in &results.hits {
            paint(hit, &style, &mut out)?;
        }
        out.flush()?;
        note(&results);
        Ok(())
    }
}

/// Says on stderr, above the hits, how the query was understood, and the command for the likeliest
/// other reading.
fn explain(reading: &Reading) {
    stderr_line!("unspool: {}", make_visible(&reading.understood));
    if let Some(other) = reading.suggestions.first() {
        let what = format!("{}: {}", other.label, command(&other.query));
        stderr_line!("unspool: {}", make_visible(&what));
    }
}

/// That nothing was found, and what to try next.
fn no_hits(reading: &Reading) -> String {
    let next = match reading.suggestions.first() {
        Some(other) if other.without_filters => "Try it without the filters.".to_owned(),
        Some(other) => format!("{}: {}", other.label, command(&other.query)),
        // A search by filters alone: there is no word to change.
        None if reading.texts.is_empty() => {
            return make_visible(&reading.understood).into_owned();
        }
        None => "Try another word or a part of it.".to_owned(),
    };
    make_visible(&format!("{} {next}", reading.understood)).into_owned()
}

/// The command that runs a query, quoted for the shell. A query that begins with `-` would be an
/// option.
fn command(query: &str) -> String {
    let dashes = if query.starts_with('-') { "-- " } else { "" };
    format!("unspool search {dashes}'{}'", query.replace('\'', r"'\''"))
}

/// Explains on stderr how the hits were chosen.
fn note(results: &SearchResults) {
    if results.widened {
        stderr_line!("unspool: no whole word matches; these hits contain it inside a longer word");
    }
    if results.newest_first {
        stderr_line!("unspool: there are too many matches to rank; these are the newest");
    } else if results.more {
        stderr_line!("unspool: there may be more hits; raise --limit to see them");
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
    let state = hit.notable_state().map_or(String::new(), |state| format!(" {state}"));
    let at = time(hit).map_or(String::new(), |at| at.strftime("%Y-%m-%d %H:%M").to_string());
    let title = format::first_line(hit.title.as_deref().unwrap_or_default(), 200);
    let place = format!("{id}{turn}  {}{tool}{state}  {at}  ", hit.kind);
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
