//! `unspool sync`: ingests every source found on this machine, once or continuously.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use unspool_ingest::attach::OpencodeServer;
use unspool_ingest::report::{Progress, SyncReport};
use unspool_ingest::service::RecordEvent;
use unspool_ingest::service::archive::{ArchiveError, MAX_OVERTAKEN, Writer};
use unspool_ingest::service::request::RequestOutcome;
use unspool_ingest::service::silence::SilencePolicy;
use unspool_query::live::Subscription;
use unspool_query::request::{ReadReason, Request};
use unspool_sources::discover::{Environment, discover};
use unspool_store::store::{Store, Viewer};

use crate::archive::Archive;
use crate::progress::{ProgressBar, size};
use crate::{artifacts, config, notifier};

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
    /// Run this shell command when an agent waits for you or is done; it gets the alert as JSON on
    /// standard input
    #[arg(long, value_name = "COMMAND", requires = "watch")]
    notify: Option<String>,
    /// Write the report as JSON; with --watch, one line for every change
    #[arg(long)]
    json: bool,
}

/// The output format of reports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    Text,
    Json,
}

impl ReportFormat {
    pub fn line(self, report: &SyncReport) -> Result<()> {
        match self {
            ReportFormat::Text => print_report(report, false),
            ReportFormat::Json => super::write_json_line(&report.clone().for_output()),
        }
    }
}

impl Sync {
    pub fn run(self, archive: &Archive) -> Result<()> {
        super::recover_chats(archive)?;
        if self.watch {
            return self.watch(archive);
        }
        let folder = archive.folder()?;
        let environment = config::environment(&folder)?;
        let silence = config::silence(&folder, &environment)?;
        let mut writer = archive.writer()?;
        let mut overtaken = 0;
        let report = loop {
            match self.read_all(&environment, &silence, &mut writer) {
                Err(error) if error.is_overtaken() && overtaken < MAX_OVERTAKEN => {
                    overtaken += 1;
                    writer.release();
                }
                report => break report?,
            }
        };
        print_report(&report, self.json)
    }

    fn read_all(
        &self,
        environment: &Environment,
        silence: &SilencePolicy,
        writer: &mut Writer,
    ) -> Result<SyncReport, ArchiveError> {
        let discovered = discover(environment);
        self.warn_if_empty(discovered.files.len());
        if let Some((recording, file_states)) = writer.own_recording()? {
            let bar = ProgressBar::start();
            let mut report = recording.sync(file_states, discovered, &bar.progress)?;
            report.add(recording.sync_projects(file_states, environment, &bar.progress)?);
            drop(bar);
            recording.end_lost_turns(silence.clone())?;
            return Ok(report);
        }
        // The recorder finds the same files itself; the request waits until it has read them.
        let paths = discovered.files.into_iter().map(|found| found.path).collect();
        let request = Request::ReadFiles { paths, reason: ReadReason::Scan };
        let mut report = match writer.submit(request, &Progress::default())? {
            RequestOutcome::Synced(report) => report,
            RequestOutcome::Written
            | RequestOutcome::Deleted(_)
            | RequestOutcome::Agents(_)
            | RequestOutcome::Received(..) => SyncReport::default(),
        };
        report.warnings.extend(discovered.warnings);
        Ok(report)
    }

    fn watch(self, archive: &Archive) -> Result<()> {
        let servers = self.attach.iter().map(|url| OpencodeServer::at(url));
        let mut servers = servers.collect::<Result<Vec<_>, _>>()?;
        let format = if self.json { ReportFormat::Json } else { ReportFormat::Text };
        let mut notify = self.notify.clone();
        let recording = match archive.record_now()? {
            Some(recording) => recording,
            None => {
                // Notifications need only the archive, which another process keeps up to date.
                if let Some(command) = notify.take() {
                    notifier::spawn(archive.view()?, command);
                    stderr_line!(
                        "unspool: another unspool is recording; this one only sends notifications"
                    );
                }
                archive.record()?
            }
        };
        let folder = archive.folder()?;
        let sources = config::sources(&folder, config::environment(&folder)?)?;
        let progress = Arc::new(Progress::default());
        let mut bar = None;
        let never = recording.run(&sources, &progress, |event| -> Result<()> {
            match event {
                RecordEvent::Discovered { files } => {
                    self.warn_if_empty(files);
                    bar = Some(ProgressBar::draw(progress.clone()));
                }
                RecordEvent::Synced(report) => {
                    drop(bar.take());
                    format.line(&report)?;
                    super::attach::begin(&folder, std::mem::take(&mut servers));
                    // Only now: what was found was not observed live.
                    let view = recording.recorder.store().view(Viewer::Sole);
                    let updates = Subscription::from(recording.recorder.subscribe());
                    artifacts::spawn(view.clone(), &folder, updates)?;
                    if let Some(command) = notify.take() {
                        notifier::spawn(view, command);
                    }
                }
                RecordEvent::Grown(report) => format.line(&report)?,
            }
            Ok(())
        })?;
        match never {}
    }

    fn warn_if_empty(&self, files: usize) {
        if files == 0 && !self.json {
            stderr_line!(
                "unspool: no sessions were found; `unspool doctor` lists the folders searched"
            );
        }
    }
}

/// Prints a report.
pub fn print_report(report: &SyncReport, json: bool) -> Result<()> {
    if json {
        return super::write_json(&report.clone().for_output());
    }
    super::warn(&report.warnings);
    let SyncReport { sessions, turns, parts, records, bytes, unchanged_files, .. } = report;
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
