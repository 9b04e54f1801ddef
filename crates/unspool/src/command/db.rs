//! `unspool db`: maintenance of the archive's database.

use std::fs;
use std::io::{self, IsTerminal, Write, stderr};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use unspool_ingest::sync::reread::{RereadReport, RereadScope, SkippedSession, reread};
use unspool_store::blocking::block_on;
use unspool_store::postgres::{self, Address, CopyReport};
use unspool_store::store::{Maintenance, Store};
use unspool_view::lines::make_visible;
use unspool_view::present::format;

use crate::archive::Archive;
use crate::progress::{ProgressBar, size};

/// Sessions that a rebuild names which it left unchanged.
const MAX_SKIPPED_LINES: usize = 20;

/// Maintain the archive's database
#[derive(Args)]
pub struct Db {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the database for damage: the file, the stored parts and the totals
    Check {
        /// Write the findings as JSON
        #[arg(long)]
        json: bool,
    },
    /// Shrink the database: remove words of deleted sessions and return unused space to the disk
    Vacuum,
    /// Rebuild the search index and the totals from the stored parts
    Rebuild {
        /// Decode every session again from its log if the log still exists; names and tags stay
        #[arg(long)]
        from_logs: bool,
        /// Decode again only sessions without prompts whose agent writes them down: those that an
        /// earlier build has read
        #[arg(long, conflicts_with = "from_logs")]
        prompts: bool,
    },
    /// Forget where logs are: their paths and the digests of their content. Sessions stay complete;
    /// only their raw records can no longer be shown
    ForgetLogs {
        /// Only logs that have not changed for so many days
        #[arg(long, value_name = "DAYS", default_value_t = 30)]
        older_than: u32,
    },
    /// Create the archive in the PostgreSQL database that --store names, or bring it up to date.
    /// Other commands create it in an empty database too, but change no archive that is there
    Migrate,
    /// Copy the archive of the data folder into the empty PostgreSQL database that --store names
    Copy {
        /// Copy this file instead
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Print the path of the database
    Path,
}

#[derive(Serialize)]
struct Report<'a> {
    sessions: u64,
    turns: u64,
    parts: u64,
    problems: &'a [String],
    problem_count: u64,
}

impl Db {
    pub fn run(self, archive: &Archive) -> Result<()> {
        match self.command {
            Command::Check { json } => check(archive, json),
            Command::Migrate => migrate(server(archive)?),
            Command::Copy { from } => copy(archive, from),
            Command::Vacuum if archive.server().is_some() => {
                let recording = archive.record_alone()?;
                block_on(recording.recorder.store().maintain(Maintenance::Full))?;
                writeln!(
                    io::stdout(),
                    "merged the search index; PostgreSQL frees its space itself"
                )?;
                Ok(())
            }
            Command::Vacuum => {
                let database = archive.folder()?.database();
                let before = fs::metadata(&database).map_or(0, |file| file.len());
                let recording = archive.record_alone()?;
                block_on(recording.recorder.store().maintain(Maintenance::Full))?;
                drop(recording);
                let after = fs::metadata(&database).map_or(0, |file| file.len());
                writeln!(
                    io::stdout(),
                    "vacuumed the archive: {} before, {} now",
                    size(before),
                    size(after)
                )?;
                Ok(())
            }
            Command::Rebuild { from_logs: true, .. } => {
                rebuild_from_logs(archive, RereadScope::All)
            }
            Command::Rebuild { prompts: true, .. } => {
                rebuild_from_logs(archive, RereadScope::WithoutPrompts)
            }
            Command::Rebuild { from_logs: false, prompts: false } => {
                let recording = archive.record_alone()?;
                let parts = block_on(recording.recorder.store().rebuild())?;
                writeln!(io::stdout(), "rebuilt the search index and the totals of {parts} parts")?;
                Ok(())
            }
            Command::ForgetLogs { older_than } => {
                let days = SignedDuration::from_hours(24 * i64::from(older_than));
                let before = Timestamp::now().saturating_sub(days)?.as_nanosecond();
                let before = i64::try_from(before).unwrap_or(i64::MAX);
                let recording = archive.record_alone()?;
                let count = block_on(recording.recorder.store().forget_logs(before))?;
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let logs = format::count(count, "log");
                writeln!(io::stdout(), "forgot the places of {logs}")?;
                Ok(())
            }
            Command::Path => {
                match archive.server() {
                    Some(address) => writeln!(io::stdout(), "{address}")?,
                    None => writeln!(io::stdout(), "{}", archive.folder()?.database().display())?,
                }
                Ok(())
            }
        }
    }
}

/// The server that a command needs.
fn server(archive: &Archive) -> Result<&Address> {
    archive.server().context(
        "this command is about an archive in PostgreSQL: name its database with --store \
         postgres://user@host/database",
    )
}

fn migrate(address: &Address) -> Result<()> {
    match postgres::migrate(address)? {
        None => writeln!(io::stdout(), "created the archive at {address}")?,
        Some(version) if version == postgres::SCHEMA_VERSION => {
            writeln!(io::stdout(), "{address} is up to date (version {version})")?;
        }
        Some(version) => writeln!(
            io::stdout(),
            "brought {address} from version {version} to {}",
            postgres::SCHEMA_VERSION
        )?,
    }
    Ok(())
}

fn copy(archive: &Archive, from: Option<PathBuf>) -> Result<()> {
    let address = server(archive)?;
    let from = match from {
        Some(file) => file,
        None => archive.in_file().folder()?.database(),
    };
    let shown = stderr().is_terminal();
    let mut progress = |rows: u64| {
        if shown {
            let _ = write!(io::stderr(), "\r{rows} rows");
        }
    };
    let copied = postgres::copy(&from, address, &mut progress);
    if shown {
        stderr_line!("");
    }
    let CopyReport { sessions, rows } = copied?;
    let sessions = format::count(usize::try_from(sessions).unwrap_or(usize::MAX), "session");
    writeln!(io::stdout(), "copied {sessions} ({rows} rows) to {address}")?;
    Ok(())
}

fn rebuild_from_logs(archive: &Archive, scope: RereadScope) -> Result<()> {
    let recording = archive.record_alone()?;
    let bar = ProgressBar::start();
    let outcome = reread(&recording.recorder, scope, &bar.progress);
    drop(bar);
    let RereadReport { report, skipped, with_prompts } = outcome?;
    super::sync::print_report(&report, false)?;
    let out = &mut io::stdout();
    if scope == RereadScope::WithoutPrompts {
        let sessions =
            format::count(usize::try_from(with_prompts).unwrap_or(usize::MAX), "session");
        writeln!(out, "{sessions} got prompts")?;
    }
    if skipped.is_empty() {
        return Ok(());
    }
    let count = format::count(skipped.len(), "session");
    writeln!(out, "{count} left unchanged: their logs are gone, or were replaced")?;
    for SkippedSession { session, files } in skipped.iter().take(MAX_SKIPPED_LINES) {
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let files =
            if files.is_empty() { "not read from a file".to_owned() } else { files.join(", ") };
        writeln!(out, "  {session}  {}", make_visible(&files))?;
    }
    if let Some(more) = skipped.len().checked_sub(MAX_SKIPPED_LINES).filter(|more| *more > 0) {
        writeln!(out, "  and {more} more")?;
    }
    Ok(())
}

fn check(archive: &Archive, json: bool) -> Result<()> {
    let checked = block_on(archive.read()?.check())?;
    if json {
        super::write_json(&Report {
            sessions: checked.sessions,
            turns: checked.turns,
            parts: checked.parts,
            problems: &checked.problems,
            problem_count: checked.count,
        })?;
    } else {
        for problem in &checked.problems {
            stderr_line!("unspool: {}", make_visible(problem));
        }
    }
    if checked.count > 0 {
        bail!(
            "{} problems found; `unspool db rebuild` repairs the search index and the totals. To \
             recover lost parts, read the agents' logs into a new archive: unspool sync --data DIR",
            checked.count
        );
    }
    if !json {
        writeln!(
            io::stdout(),
            "no problems found in {} sessions, {} turns and {} parts",
            checked.sessions,
            checked.turns,
            checked.parts
        )?;
    }
    Ok(())
}
