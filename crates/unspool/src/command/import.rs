//! `unspool import`: reads files or folders of any supported format into the archive.

mod stdin;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use unspool_ingest::attach::OpencodeServer;
use unspool_ingest::report::SyncReport;
use unspool_ingest::service::request::RequestOutcome;
use unspool_ingest::stdin_capture::STDIN_NAME;
use unspool_ingest::sync::agents::AgentTableReport;
use unspool_query::request::{ReadReason, Request};
use unspool_sources::decode::Warning;
use unspool_sources::discover::find_files;
use unspool_sources::read::rows;

use super::sync::ReportFormat;
use crate::archive::{Archive, Writer};
use crate::progress::ProgressBar;

/// Import files or folders into the archive
///
/// Session logs, live streams and hook payloads of Claude Code, Codex, GitHub Copilot CLI, Gemini
/// CLI, Qwen Code, Pi, Cline and Factory Droid; databases, exports and event streams of OpenCode
/// and Kilo Code; sessions of Continue, trajectories of mini-swe-agent, chat histories of aider;
/// captures of the Agent Client Protocol; chats and streams of the Vercel AI SDK; ATIF
/// trajectories; ThoughtFlow's documents; rows of flat history; output of `unspool export --to
/// jsonl`. Files are recognised by their content. docs/sources.md describes each.
#[derive(Args)]
pub struct Import {
    /// Session logs, chats, stream or hook captures, folders of them, or - for standard input,
    /// which is read as it arrives: claude -p … --output-format stream-json | unspool import -
    #[arg(required_unless_present_any = ["agents", "attach"], conflicts_with = "attach")]
    paths: Vec<PathBuf>,
    /// Read the agents that an application stores in this SQLite database: a table with the columns
    /// prompt and result, and log_path if an agent has a log. The log is read as a session; an
    /// agent without one becomes a session of its prompt and result
    #[arg(long, value_name = "DB")]
    agents: Option<PathBuf>,
    /// Follow a running OpenCode server (http://127.0.0.1:4096) until it ends, token by token. It
    /// does not send earlier events: import its database for those
    #[arg(long, value_name = "URL", conflicts_with_all = ["agents", "restore"])]
    attach: Option<String>,
    /// Also import sessions that were deleted from the archive
    #[arg(long)]
    restore: bool,
    /// Write the report as JSON
    #[arg(long)]
    json: bool,
}

impl Import {
    pub fn run(self, archive: &Archive) -> Result<()> {
        if let Some(url) = &self.attach {
            let format = if self.json { ReportFormat::Json } else { ReportFormat::Text };
            return super::attach::follow(archive, OpencodeServer::at(url)?, format);
        }
        self.check_database()?;
        let (paths, warnings) = self.find_paths()?;
        let mut writer = archive.writer()?;
        let (mut report, agents) = self.read(archive, &mut writer, paths)?;
        report.warnings.extend(warnings);
        self.check_recognised(&report)?;
        let Some(mut agents) = agents else { return super::sync::print_report(&report, self.json) };
        agents.report.add(report);
        if self.json {
            agents.report = agents.report.for_output();
            return super::write_json(&agents);
        }
        let AgentTableReport { agents: count, with_log, final_only, report } = agents;
        super::sync::print_report(&report, false)?;
        writeln!(
            io::stdout(),
            "{count} agents: {with_log} from their logs, {final_only} from prompt and result"
        )?;
        Ok(())
    }

    fn check_database(&self) -> Result<()> {
        if let Some(database) = self.agents.as_ref().filter(|path| !path.is_file()) {
            bail!(
                "{} does not exist; give the SQLite database in which your application stores its \
                 agents",
                database.display()
            );
        }
        Ok(())
    }

    /// The files to read, and warnings about those that were skipped.
    fn find_paths(&self) -> Result<(Vec<PathBuf>, Vec<Warning>)> {
        let mut paths = Vec::new();
        let mut warnings = Vec::new();
        for path in self.paths.iter().filter(|path| !is_stdin(path)) {
            if !rows::exists(path) {
                bail!(
                    "{} does not exist; give a session's log or a folder of them, for example \
                     ~/.claude/projects",
                    path.display()
                );
            }
            let (files, skipped) = find_files(&std::path::absolute(path)?);
            paths.extend(files);
            warnings.extend(skipped);
        }
        Ok((paths, warnings))
    }

    /// Reads the files, standard input and the database of agents.
    fn read(
        &self,
        archive: &Archive,
        writer: &mut Writer,
        paths: Vec<PathBuf>,
    ) -> Result<(SyncReport, Option<AgentTableReport>)> {
        let reason = if self.restore { ReadReason::Restore } else { ReadReason::Named };
        let bar = ProgressBar::start();
        let mut report = SyncReport::default();
        if !paths.is_empty() {
            let request = Request::ReadFiles { paths, reason };
            report.add(synced(writer.submit(request, &bar.progress)?));
        }
        if self.paths.iter().any(|path| is_stdin(path)) {
            let folder = archive.folder()?;
            report.add(stdin::import(&folder, writer, reason, &bar.progress)?);
        }
        let agents = match &self.agents {
            Some(database) => {
                let database = std::path::absolute(database)?;
                let request = Request::ReadAgents { database, reason };
                match writer.submit(request, &bar.progress)? {
                    RequestOutcome::Agents(agents) => Some(agents),
                    RequestOutcome::Synced(_)
                    | RequestOutcome::Written
                    | RequestOutcome::Deleted(_)
                    | RequestOutcome::Received(..) => None,
                }
            }
            None => None,
        };
        Ok((report, agents))
    }

    /// An unrecognised file is an error if it was named, a warning inside a folder.
    fn check_recognised(&self, report: &SyncReport) -> Result<()> {
        let named = |file: &str| {
            let stdin = file == STDIN_NAME && self.paths.iter().any(|path| is_stdin(path));
            stdin
                || self.paths.iter().any(|path| {
                    !path.is_dir()
                        && std::path::absolute(path).is_ok_and(|path| path == Path::new(file))
                })
        };
        let refused =
            report.warnings.iter().find(|warning| warning.line == 0 && named(&warning.file));
        if let Some(refused) = refused {
            bail!(
                "{}: {}; `unspool import --help` lists the supported formats",
                refused.file,
                refused.what
            );
        }
        Ok(())
    }
}

/// The report in the outcome of a request to read files.
fn synced(outcome: RequestOutcome) -> SyncReport {
    match outcome {
        RequestOutcome::Synced(report) => report,
        RequestOutcome::Written
        | RequestOutcome::Deleted(_)
        | RequestOutcome::Agents(_)
        | RequestOutcome::Received(..) => SyncReport::default(),
    }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
