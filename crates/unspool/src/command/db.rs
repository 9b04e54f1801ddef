//! `unspool db`: looking after the archive's file.

use std::fs;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use unspool_core::lines::visible;
use unspool_engine::reread::{Reread, reread};
use unspool_store::blocking::wait;
use unspool_store::contract::{Store, Tidy};

use crate::archive::Archive;
use crate::progress::{Bar, size};

/// Look after the archive's file
#[derive(Args)]
pub struct Db {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Hold everything against everything: the file, every payload, every sum
    Check {
        /// Write what was found as JSON
        #[arg(long)]
        json: bool,
    },
    /// Tidy up and give unused space back
    Vacuum,
    /// Derive anew what is derived: the index of words and every sum
    Rebuild {
        /// Read every session again from its log, where the log is still there; names and tags
        /// stay
        #[arg(long)]
        from_logs: bool,
    },
    /// Say where the file is
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
                wait(recording.recorder.store().tidy(Tidy::Thorough))?;
                drop(recording);
                let after = fs::metadata(&database).map_or(0, |file| file.len());
                println!("{} before, {} now", size(before), size(after));
                Ok(())
            }
            Command::Rebuild { from_logs: true } => {
                let recording = archive.record_alone()?;
                let bar = Bar::start();
                let outcome = reread(&recording.recorder, &bar.progress);
                drop(bar);
                let Reread { report, left } = outcome?;
                super::sync::tell(&report, false)?;
                if left > 0 {
                    println!("{left} sessions stay as they were: their logs are gone or changed");
                }
                Ok(())
            }
            Command::Rebuild { from_logs: false } => {
                let recording = archive.record_alone()?;
                let parts = wait(recording.recorder.store().rebuild())?;
                println!("the index and the sums of {parts} parts are new");
                Ok(())
            }
            Command::Path => {
                println!("{}", archive.folder()?.database().display());
                Ok(())
            }
        }
    }
}

fn check(archive: &Archive, json: bool) -> Result<()> {
    let checked = wait(archive.read()?.check())?;
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
            eprintln!("unspool: {}", visible(problem));
        }
    }
    if checked.count > 0 {
        bail!(
            "{} problems were found; `unspool db rebuild` mends sums and the index, and what is \
             gone can be read again from the agents' logs into a new folder (--data DIR)",
            checked.count
        );
    }
    if !json {
        println!(
            "{} sessions, {} turns and {} parts are in order",
            checked.sessions, checked.turns, checked.parts
        );
    }
    Ok(())
}
