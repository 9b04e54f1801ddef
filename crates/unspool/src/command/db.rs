//! `unspool db`: maintenance of the archive's database.

use std::fs;
use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use unspool_ingest::sync::reread::{RereadReport, reread};
use unspool_store::blocking::block_on;
use unspool_store::store::{Maintenance, Store};
use unspool_view::lines::make_visible;

use crate::archive::Archive;
use crate::progress::{ProgressBar, size};

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
            Command::Rebuild { from_logs: true } => {
                let recording = archive.record_alone()?;
                let bar = ProgressBar::start();
                let outcome = reread(&recording.recorder, &bar.progress);
                drop(bar);
                let RereadReport { report, skipped } = outcome?;
                super::sync::print_report(&report, false)?;
                if skipped > 0 {
                    writeln!(
                        io::stdout(),
                        "{skipped} sessions were left unchanged: their logs are missing or changed"
                    )?;
                }
                Ok(())
            }
            Command::Rebuild { from_logs: false } => {
                let recording = archive.record_alone()?;
                let parts = block_on(recording.recorder.store().rebuild())?;
                writeln!(io::stdout(), "rebuilt the search index and the totals of {parts} parts")?;
                Ok(())
            }
            Command::Path => {
                writeln!(io::stdout(), "{}", archive.folder()?.database().display())?;
                Ok(())
            }
        }
    }
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
