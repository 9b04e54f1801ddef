//! `unspool sync`: ingests every source found on this machine, once or continuously.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use unspool_engine::attach::Server;
use unspool_engine::report::{Progress, Report};
use unspool_engine::request::{Done, Request, Why};
use unspool_engine::spool;
use unspool_engine::sync::{Candidate, Known, sync};
use unspool_engine::watch::Watch;
use unspool_sources::discover::{Discovery, discover};

use crate::archive::{Archive, Recording};
use crate::config;
use crate::progress::{Bar, size};

/// Read every session found on this machine into the archive
#[derive(Args)]
pub struct Sync {
    /// Keep running and read what agents write as they write it, until interrupted. If another
    /// unspool already does that, wait and take over when it ends
    #[arg(long)]
    watch: bool,
    /// Also follow a running OpenCode server, token by token. May be given several times
    #[arg(long, value_name = "URL", requires = "watch")]
    attach: Vec<String>,
    /// Write the report as JSON; with --watch, one line for every change
    #[arg(long)]
    json: bool,
}

/// The output format of reports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Telling {
    Words,
    Json,
}

impl Telling {
    pub fn line(self, report: &Report) -> Result<()> {
        match self {
            Telling::Words => tell(report, false),
            Telling::Json => {
                writeln!(io::stdout(), "{}", serde_json::to_string(report)?)?;
                Ok(())
            }
        }
    }
}

impl Sync {
    pub fn run(self, archive: &Archive) -> Result<()> {
        if self.watch {
            return self.watch(archive);
        }
        let folder = archive.folder()?;
        let discovered = discover(&config::environment(&folder)?);
        self.say_if_nothing(&discovered);
        let mut writing = archive.writing()?;
        let report = match writing.mine()? {
            Some((recording, known)) => {
                let report = once(recording, known, discovered)?;
                spool::sweep(&folder);
                report
            }
            // The recorder finds the same files itself; the request waits until it has read them.
            None => {
                let paths = discovered.files.into_iter().map(|found| found.path).collect();
                let request = Request::Take { paths, why: Why::Found };
                let mut report = match writing.ask(request, &Progress::default())? {
                    Done::Taken(report) => report,
                    Done::Written | Done::Deleted(_) | Done::Agents(_) => Report::default(),
                };
                report.warnings.extend(discovered.warnings);
                report
            }
        };
        tell(&report, self.json)
    }

    fn watch(self, archive: &Archive) -> Result<()> {
        let servers = self.attach.iter().map(|url| Server::at(url));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        let telling = if self.json { Telling::Json } else { Telling::Words };
        let recording = archive.record()?;
        let folder = archive.folder()?;
        let environment = config::environment(&folder)?;
        let mut known = Known::load(&recording.recorder)?;
        let discovered = discover(&environment);
        self.say_if_nothing(&discovered);
        let report = once(&recording, &mut known, discovered)?;
        spool::sweep(&folder);
        telling.line(&report)?;
        super::attach::begin(&folder, servers);
        let mut watch = Watch::new(environment, known, config::notice()?);
        recording.open(watch.desk());
        loop {
            let report = watch.take_next(&recording.recorder)?;
            if report.records > 0 {
                telling.line(&report)?;
            }
        }
    }

    fn say_if_nothing(&self, discovered: &Discovery) {
        if discovered.files.is_empty() && !self.json {
            eprintln!(
                "unspool: no sessions were found; `unspool doctor` lists the folders searched"
            );
        }
    }
}

/// Ingests everything that was discovered.
fn once(recording: &Recording, known: &mut Known, discovered: Discovery) -> Result<Report> {
    let bar = Bar::start();
    let candidates = discovered.files.into_iter().map(Candidate::from).collect();
    let outcome = sync(&recording.recorder, known, candidates, &bar.progress);
    drop(bar);
    let mut report = outcome?;
    report.warnings.extend(discovered.warnings);
    Ok(report)
}

/// Prints a report.
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
        writeln!(io::stdout(), "nothing new{unchanged}")?;
    } else {
        writeln!(
            io::stdout(),
            "{sessions} {} with {turns} new {} and {parts} new {}, from {records} {} ({}){unchanged}",
            plural(*sessions, "session"),
            plural(*turns, "turn"),
            plural(*parts, "part"),
            plural(*records, "record"),
            size(*bytes),
        )?;
    }
    Ok(())
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}
