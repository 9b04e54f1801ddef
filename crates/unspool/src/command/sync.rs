//! `unspool sync`: every source found on this machine into the archive.

use anyhow::Result;
use clap::Args;
use unspool_engine::report::Report;
use unspool_engine::sync::{Candidate, sync};
use unspool_sources::discover::{Environment, discover};

use crate::archive::Archive;
use crate::progress::{Bar, size};

/// Read every session found on this machine into the archive
#[derive(Args)]
pub struct Sync {
    /// Write the report as JSON
    #[arg(long)]
    json: bool,
}

impl Sync {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let discovered = discover(&Environment::of_process());
        let found = discovered.files.len();
        let recording = archive.record()?;
        let bar = Bar::start();
        let candidates = discovered.files.into_iter().map(Candidate::from).collect();
        let outcome = sync(&recording.recorder, candidates, &bar.progress);
        drop(bar);
        let mut report = outcome?;
        report.warnings.extend(discovered.warnings);
        if found == 0 && !self.json {
            eprintln!(
                "unspool: no sessions were found; Claude Code keeps them under \
                 ~/.claude/projects (or $CLAUDE_CONFIG_DIR/projects)"
            );
        }
        tell(&report, self.json)
    }
}

/// Says what was done.
pub fn tell(report: &Report, json: bool) -> Result<()> {
    if json {
        return super::write_json(report);
    }
    super::warn(&report.warnings);
    let Report { sessions, turns, parts, records, bytes, unchanged_files, .. } = report;
    let unchanged = match unchanged_files {
        0 => String::new(),
        count => format!("; {count} {} unchanged", plural(*count, "file")),
    };
    if *records == 0 {
        println!("nothing new{unchanged}");
    } else {
        println!(
            "{sessions} {} with {turns} new {} and {parts} new {}, from {records} {} ({}){unchanged}",
            plural(*sessions, "session"),
            plural(*turns, "turn"),
            plural(*parts, "part"),
            plural(*records, "record"),
            size(*bytes),
        );
    }
    Ok(())
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}
