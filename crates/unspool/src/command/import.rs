//! `unspool import`: reads files or folders of any supported format into the archive.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use unspool_engine::ingest::agents::AgentTableReport;
use unspool_engine::ingest::attach::OpencodeServer;
use unspool_engine::recorder::request::{ReadReason, Request, RequestOutcome};
use unspool_engine::report::SyncReport;
use unspool_sources::discover::find_files;
use unspool_sources::read::rows;

use super::sync::ReportFormat;
use crate::archive::Archive;
use crate::progress::ProgressBar;

/// Read these files or folders into the archive
///
/// Session logs, live streams and hook payloads of Claude Code, Codex, GitHub Copilot CLI and
/// Gemini CLI; OpenCode's database, exports and event streams; chats and streams of the Vercel AI
/// SDK; ThoughtFlow's documents; rows of flat history; output of `unspool export --to jsonl`. Files
/// are recognised by their content.
#[derive(Args)]
pub struct Import {
    /// Session logs, chats, stream or hook captures, folders of them, or - for standard input
    #[arg(required_unless_present_any = ["agents", "attach"], conflicts_with = "attach")]
    paths: Vec<PathBuf>,
    /// Read the agents that an application stores in this SQLite database: a table with the columns
    /// prompt and result, and log_path if an agent has a log. The log is read as a session; an
    /// agent without one becomes a session of its prompt and result
    #[arg(long, value_name = "DB")]
    agents: Option<PathBuf>,
    /// Follow a running OpenCode server (http://127.0.0.1:4096) until it ends, token by token;
    /// earlier events are in its database
    #[arg(long, value_name = "URL", conflicts_with_all = ["agents", "restore"])]
    attach: Option<String>,
    /// Restore sessions that were deleted
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
        let mut paths = Vec::new();
        let mut warnings = Vec::new();
        if let Some(database) = self.agents.as_ref().filter(|path| !path.is_file()) {
            bail!(
                "{} does not exist; give the SQLite database in which your application stores its \
                 agents",
                database.display()
            );
        }
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
        let mut writer = archive.writer()?;
        let reason = if self.restore { ReadReason::Restore } else { ReadReason::Named };
        let bar = ProgressBar::start();
        let mut report = SyncReport::default();
        let mut take = |request| -> Result<Option<AgentTableReport>> {
            match writer.submit(request, &bar.progress)? {
                RequestOutcome::Synced(taken) => report.add(taken),
                RequestOutcome::Agents(agents) => return Ok(Some(agents)),
                RequestOutcome::Written | RequestOutcome::Deleted(_) => {}
            }
            Ok(None)
        };
        if !paths.is_empty() {
            take(Request::ReadFiles { paths, reason })?;
        }
        for _ in self.paths.iter().filter(|path| is_stdin(path)) {
            // The recorder may be another process, which cannot read our standard input.
            let mut handover = archive.folder()?.create_handover_text()?;
            io::copy(&mut io::stdin().lock(), &mut handover.file)?;
            let (name, text_file) = (STDIN.to_owned(), handover.path.clone());
            take(Request::ReadText { name, text_file, reason })?;
        }
        let agents = match &self.agents {
            Some(database) => {
                let database = std::path::absolute(database)?;
                take(Request::ReadAgents { database, reason })?
            }
            None => None,
        };
        drop(bar);
        report.warnings.extend(warnings);
        // An unrecognised file is an error if it was named, a warning inside a folder.
        let named = |file: &str| {
            let stdin = file == STDIN && self.paths.iter().any(|path| is_stdin(path));
            stdin
                || self.paths.iter().any(|path| {
                    path.is_file()
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
        let Some(mut agents) = agents else { return super::sync::print_report(&report, self.json) };
        agents.report.add(report);
        if self.json {
            return super::write_json(&agents);
        }
        let AgentTableReport { agents: count, with_log, final_only, report } = agents;
        super::sync::print_report(&report, false)?;
        println!("{count} agents: {with_log} from their logs, {final_only} from prompt and result");
        Ok(())
    }
}

const STDIN: &str = "standard input";

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
