//! `unspool doctor`: diagnoses each agent's folders and logs, the hooks and the archive.

mod bundle;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use unspool_ingest::hooks::{self, HookStatus};
use unspool_ingest::service::projects::projects_of_sessions;
use unspool_model::prompt::{PromptGrade, PromptKnowledge};
use unspool_sources::agents::{Agent, VersionAge};
use unspool_sources::discover::Environment;
use unspool_sources::survey::{AgentSurvey, ProjectLogs, survey};
use unspool_store::blocking::block_on;
use unspool_store::private_file;
use unspool_store::store::{SessionFilter, View};
use unspool_view::lines::make_visible;

use crate::archive::Archive;
use crate::config;
use crate::progress::size;

/// Check which agents' sessions can be found and read, and the state of the archive
#[derive(Args)]
pub struct Doctor {
    /// Write the report as JSON
    #[arg(long)]
    json: bool,
    /// Write what a bug report needs to this file, without content of sessions and with secrets
    /// replaced; with --log, the end of that log too
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    bundle: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    agents: Vec<AgentReport>,
    archive: ArchiveReport,
}

#[derive(Serialize)]
struct AgentReport {
    #[serde(flatten)]
    surveyed: AgentSurvey,
    /// Where its logs have what model calls were sent; `null` if they do not.
    prompts: Option<&'static str>,
    /// What can be known of its prompts, for each version that was found, newest first.
    prompt_knowledge: Vec<VersionKnowledge>,
    /// `null` for agents that have no hooks.
    hooks: Option<HookStatus>,
}

#[derive(Serialize)]
struct VersionKnowledge {
    /// `null` if its logs name no version.
    version: Option<String>,
    #[serde(flatten)]
    knowledge: PromptKnowledge,
}

impl VersionKnowledge {
    fn of(found: &AgentSurvey) -> Vec<VersionKnowledge> {
        let of_version = |version: &String| VersionKnowledge {
            version: Some(version.clone()),
            knowledge: PromptKnowledge::of_version(found.agent, version),
        };
        let mut versions: Vec<VersionKnowledge> =
            found.versions.iter().rev().map(|(version, _)| of_version(version)).collect();
        if versions.is_empty() {
            let knowledge = PromptKnowledge::of(found.agent);
            versions.push(VersionKnowledge { version: None, knowledge });
        }
        versions
    }
}

#[derive(Serialize)]
struct ArchiveReport {
    path: String,
    exists: bool,
    bytes: u64,
    sessions: Option<u64>,
    /// True if a process is recording.
    recording: bool,
    /// True if other users of this machine may open the data folder.
    open_to_others: bool,
    problem: Option<String>,
    config: Option<String>,
}

/// Problems listed for one agent; the rest are counted.
const MAX_PROBLEMS_SHOWN: usize = 5;

impl Doctor {
    pub fn run(self, archive: &Archive, log: Option<&Path>) -> Result<()> {
        let environment = with_projects(config::environment(&archive.folder()?)?, archive);
        let agents = survey(&environment)
            .into_iter()
            .map(|surveyed| AgentReport {
                hooks: hooks::status(&environment, surveyed.agent),
                prompts: Agent::named(surveyed.agent).and_then(|agent| agent.prompts),
                prompt_knowledge: VersionKnowledge::of(&surveyed),
                surveyed,
            })
            .collect();
        let report =
            Report { version: env!("CARGO_PKG_VERSION"), agents, archive: of_archive(archive)? };
        if self.json {
            return super::write_json(&report);
        }
        if let Some(path) = &self.bundle {
            bundle::write(path, &report, &archive.folder()?, log)?;
            writeln!(io::stdout(), "wrote {}; read it before you send it", path.display())?;
            return Ok(());
        }
        let mut text = String::new();
        for agent in &report.agents {
            write_agent(&mut text, agent);
        }
        write_archive(&mut text, &report.archive);
        let mut out = io::stdout().lock();
        for line in text.lines() {
            writeln!(out, "{}", make_visible(line))?;
        }
        Ok(())
    }
}

/// Looks also in the folders of the projects that the archive knows. An archive that cannot be read
/// is reported with the archive.
fn with_projects(environment: Environment, archive: &Archive) -> Environment {
    let is_file = || archive.folder().is_ok_and(|folder| folder.database().exists());
    let view = (archive.server().is_some() || is_file()).then(|| archive.view().ok()).flatten();
    let projects = view.and_then(|view| projects_of_sessions(&view).ok()).unwrap_or_default();
    Environment { projects, ..environment }
}

fn of_archive(archive: &Archive) -> Result<ArchiveReport> {
    let folder = archive.folder()?;
    let path = folder.database();
    let bytes = path.metadata().map_or(0, |metadata| metadata.len());
    let exists = archive.server().is_some() || path.exists();
    let recording = exists && matches!(folder.try_record(), Ok(None));
    let mut report = ArchiveReport {
        exists,
        path: match archive.server() {
            Some(address) => address.to_string(),
            None => path.display().to_string(),
        },
        bytes,
        sessions: None,
        recording,
        open_to_others: private_file::is_open_to_others(folder.path()),
        problem: None,
        config: config::path().filter(|path| path.exists()).map(|path| path.display().to_string()),
    };
    if report.exists {
        let counted =
            archive.view().and_then(|view| Ok(block_on(view.sessions(SessionFilter::default()))?));
        match counted {
            Ok(sessions) => report.sessions = Some(sessions.len() as u64),
            Err(error) => report.problem = Some(error.to_string()),
        }
    }
    Ok(report)
}

fn row(text: &mut String, name: &str, what: &str) {
    let _ = writeln!(text, "  {name:<11}{what}");
}

fn write_agent(text: &mut String, agent: &AgentReport) {
    let found = &agent.surveyed;
    let _ = writeln!(text, "{}", found.title);
    for folder in &found.folders {
        let from = folder.variable.map_or(String::new(), |name| format!(" (from ${name})"));
        let gone = if folder.exists { "" } else { " (does not exist)" };
        row(text, "looked in", &format!("{}{from}{gone}", home_short(&folder.path)));
    }
    if let Some(ProjectLogs { name, searched, found }) = &found.in_projects {
        let of = format!("{} that other sessions worked in", count(*searched, "folder"));
        row(text, "looked for", &format!("{name} in {of}: {found} found"));
        row(text, "", "import others with `unspool import FILE`");
    }
    if found.folders.iter().all(|folder| !folder.exists) {
        row(text, "found", "nothing: it never ran here, or its sessions are in another folder");
        text.push('\n');
        return;
    }
    let newest = found.newest.map_or(String::new(), |at| format!("; the newest {}", ago(at)));
    let bytes = if found.bytes > 0 { format!(", {}", size(found.bytes)) } else { String::new() };
    row(text, "found", &format!("{}{bytes}{newest}", count(found.files, "log")));
    if !found.versions.is_empty() {
        let versions: Vec<String> = found
            .versions
            .iter()
            .rev()
            .map(|(version, logs)| format!("{version} ({logs})"))
            .collect();
        let of = if found.opened < found.files {
            format!(", of the newest {}", found.opened)
        } else {
            String::new()
        };
        row(text, "versions", &format!("{}{of}", versions.join(", ")));
    }
    for version in &found.unknown_versions {
        row(text, "", &unknown(found.agent, version));
    }
    write_prompts(text, &agent.prompt_knowledge);
    match &agent.hooks {
        Some(HookStatus::Yes { path, answers, .. }) => {
            let with = if *answers { ", with answers" } else { "" };
            row(text, "hooks", &format!("installed in {path}{with}"));
        }
        Some(HookStatus::Other { path, what }) => row(text, "hooks", &format!("{path}: {what}")),
        Some(HookStatus::No) => row(
            text,
            "hooks",
            &format!("not installed; `unspool hooks install --agent {}` shows how", found.agent),
        ),
        None => {}
    }
    for problem in found.problems.iter().take(MAX_PROBLEMS_SHOWN) {
        let line = if problem.line > 0 { format!(":{}", problem.line) } else { String::new() };
        let file = home_short(Path::new(&problem.file));
        row(text, "problem", &format!("{file}{line}: {}", problem.what));
    }
    if let Some(more) = found.problems.len().checked_sub(MAX_PROBLEMS_SHOWN + 1) {
        row(text, "", &format!("and {} more; --json lists all", more + 1));
    }
    text.push('\n');
}

/// Says which prompts can be had of the versions that were found, and how to get the rest. Versions
/// of which the same is known are named together.
fn write_prompts(text: &mut String, versions: &[VersionKnowledge]) {
    let mut name = "prompts";
    for equal in versions.chunk_by(|one, other| one.knowledge == other.knowledge) {
        let Some(VersionKnowledge { knowledge, .. }) = equal.first() else { continue };
        let of: Vec<&str> = equal.iter().filter_map(|known| known.version.as_deref()).collect();
        let is_one = equal.len() == versions.len() || of.is_empty();
        let of = if is_one { String::new() } else { format!("{}: ", of.join(", ")) };
        let PromptKnowledge { known, missing, .. } = knowledge;
        let what = match knowledge.grade {
            PromptGrade::Whole => format!("{of}{known}; `unspool prompt SESSION` shows them"),
            PromptGrade::Part => format!("{of}in part: {known}"),
            PromptGrade::Conversation => format!("{of}only the conversation: {known}"),
        };
        row(text, std::mem::take(&mut name), &what);
        row(text, "", &format!("not in its logs: {missing}"));
    }
    if let Some(VersionKnowledge { knowledge, .. }) = versions.first() {
        row(text, "", &format!("for the rest: {}", knowledge.next));
    }
}

/// Explains a version outside the tested range.
fn unknown(agent: &str, version: &str) -> String {
    let tested = Agent::named(agent).and_then(|agent| Some((agent, agent.recorded?)));
    match tested {
        Some((agent, (oldest, newest))) => match agent.version_age(version) {
            VersionAge::Newer => format!(
                "{version} is newer than what Unspool was tested with ({newest}); unknown records are kept and shown as data"
            ),
            VersionAge::Older | VersionAge::Recorded => format!(
                "{version} is older than what Unspool was tested with ({oldest}); parts may be missing"
            ),
        },
        None => format!("Unspool was not tested with {version}"),
    }
}

fn write_archive(text: &mut String, archive: &ArchiveReport) {
    text.push_str("Archive\n");
    let path = home_short(Path::new(&archive.path));
    if !archive.exists {
        row(text, "file", &format!("{path} does not exist yet; `unspool sync` creates it"));
        return;
    }
    row(text, "file", &format!("{path}, {}", size(archive.bytes)));
    if let Some(sessions) = archive.sessions {
        row(text, "holds", &count(sessions, "session"));
    }
    if let Some(problem) = &archive.problem {
        row(text, "problem", problem);
    }
    if archive.open_to_others {
        let what = "other users of this machine can read the data folder; `chmod 700` prevents it";
        row(text, "warning", what);
    }
    let recording = if archive.recording { "another unspool is recording" } else { "no" };
    row(text, "recording", recording);
    if let Some(config) = &archive.config {
        row(text, "config", &home_short(Path::new(config)));
    }
}

fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Abbreviates the home folder as `~`.
fn home_short(path: &Path) -> String {
    let home = std::env::home_dir().filter(|home| home.as_os_str().len() > 1);
    match home.and_then(|home| Some(path.strip_prefix(home).ok()?.to_owned())) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

fn ago(at: i64) -> String {
    let seconds = (jiff::Timestamp::now().as_millisecond() - at).max(0) / 1000;
    let (number, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..86400 => (seconds / 3600, "hour"),
        _ => (seconds / 86400, "day"),
    };
    format!("{} ago", count(number.unsigned_abs(), unit))
}
