//! A survey of this machine for `unspool doctor`: per agent, the log folders, the number and size
//! of the logs, the versions that wrote them, and the files that cannot be read. It lists names
//! and stamps, and decodes only the beginning of the newest logs.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::agents::{AGENTS, Agent, VersionAge};
use crate::decode::Warning;
use crate::discover::{Environment, LogFile, discover};
use crate::in_memory::SessionSet;
use crate::read::{own_file, source};

/// Stands for the version of logs that do not name it.
const NO_VERSION: &str = "unknown";
/// How many of the newest logs of an agent are opened.
const MAX_OPENED_LOGS: usize = 40;
/// How much of each is read: the version is in the first records.
const MAX_BYTES_PER_LOG: u64 = 512 * 1024;

/// What was found for one agent.
#[derive(Debug, Serialize)]
pub struct AgentSurvey {
    pub agent: &'static str,
    pub title: &'static str,
    pub folders: Vec<Folder>,
    /// The log that it keeps in the folder of each project, and where that was looked for.
    pub in_projects: Option<ProjectLogs>,
    pub files: u64,
    pub bytes: u64,
    /// When the newest log was written, in milliseconds since 1970.
    pub newest: Option<i64>,
    /// The number of logs that were opened, and how many of them each version wrote.
    pub opened: u64,
    pub versions: BTreeMap<String, u64>,
    /// Versions outside the recorded range: their records may not be understood.
    pub unknown_versions: Vec<String>,
    pub problems: Vec<Warning>,
}

/// Logs in the folders of projects.
#[derive(Debug, Serialize)]
pub struct ProjectLogs {
    /// The name of such a log.
    pub name: &'static str,
    /// How many folders of known projects may hold one.
    pub searched: u64,
    /// How many do.
    pub found: u64,
}

/// A folder that may hold logs.
#[derive(Debug, Serialize)]
pub struct Folder {
    pub path: PathBuf,
    pub exists: bool,
    /// The environment variable that named it, if any.
    pub variable: Option<&'static str>,
}

/// Surveys every supported agent.
pub fn survey(environment: &Environment) -> Vec<AgentSurvey> {
    let mut discovered = discover(environment);
    let mut all = Vec::new();
    // Formats without a program have no known folder to search.
    for agent in AGENTS.iter().filter(|agent| agent.logs.is_some()) {
        let (mine, others) =
            discovered.files.into_iter().partition(|found| found.agent == agent.name);
        discovered.files = others;
        let mut surveyed = survey_agent(agent, environment, mine);
        let of_mine = |warning: &Warning| {
            surveyed.folders.iter().any(|folder| Path::new(&warning.file).starts_with(&folder.path))
        };
        let (problems, rest) = discovered.warnings.into_iter().partition(of_mine);
        discovered.warnings = rest;
        let problems: Vec<Warning> = problems;
        surveyed.problems.splice(0..0, problems);
        all.push(surveyed);
    }
    all
}

fn survey_agent(
    agent: &'static Agent,
    environment: &Environment,
    mut files: Vec<LogFile>,
) -> AgentSurvey {
    let folders = environment.folders_of(agent.name).map(|(path, variable)| Folder {
        exists: path.is_dir(),
        path,
        variable,
    });
    let in_projects = agent.logs.as_ref().and_then(|logs| logs.in_projects).map(|name| {
        let projects = environment.projects.folders();
        let holds =
            |found: &&LogFile| projects.iter().any(|folder| folder.join(name) == found.path);
        let found = files.iter().filter(holds).count() as u64;
        ProjectLogs { name, searched: projects.len() as u64, found }
    });
    files.retain(|found| !own_file::is_beside_log(&found.path));
    files.sort_by_key(|found| std::cmp::Reverse(found.stamp.modified));
    let mut surveyed = AgentSurvey {
        agent: agent.name,
        title: agent.title,
        folders: folders.collect(),
        in_projects,
        files: files.len() as u64,
        bytes: files.iter().map(|found| found.stamp.size).sum(),
        newest: files.first().map(|found| found.stamp.modified / 1_000_000),
        opened: 0,
        versions: BTreeMap::new(),
        unknown_versions: Vec::new(),
        problems: Vec::new(),
    };
    for found in files.iter().take(MAX_OPENED_LOGS) {
        surveyed.open(&found.path);
    }
    // A log that names no version says nothing about one that was not tested.
    let unknown = |version: &&String| {
        *version != NO_VERSION && agent.version_age(version) != VersionAge::Recorded
    };
    surveyed.unknown_versions = surveyed.versions.keys().filter(unknown).cloned().collect();
    surveyed
}

impl AgentSurvey {
    fn open(&mut self, path: &Path) {
        let mut session_set = SessionSet::default();
        let read = source::open(path).map_err(|error| error.to_string()).and_then(|mut source| {
            let beginning = source.text().take(MAX_BYTES_PER_LOG);
            session_set.read(path, beginning, &mut |_| {}).map_err(|error| error.to_string())
        });
        self.opened += 1;
        for session in &session_set.sessions {
            let version = session.transcript().session.facts.version;
            *self.versions.entry(version.unwrap_or_else(|| NO_VERSION.to_owned())).or_default() +=
                1;
        }
        if let Err(what) = read {
            let file = path.to_string_lossy().into_owned();
            self.problems.push(Warning { file, line: 0, what, bytes: Vec::new() });
        }
        // Reading stops after `MAX_BYTES_PER_LOG`, which cuts the last line: not a problem.
        let warnings = session_set.sessions.iter().flat_map(|session| &session.warnings);
        let relevant =
            warnings.filter(|warning| warning.what != crate::file_decoder::UNFINISHED_LINE_WARNING);
        self.problems.extend(relevant.cloned());
    }
}
