//! Discovery: the log folders of each agent and the files in them. Reads names and stamps only; it
//! opens a file only to check documents in a folder that the user names. Writes nothing (law 7).

mod projects;
mod walk;

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};

use unspool_model::source::FileStamp;

use crate::agents::{AGENTS, ProcessFiles};
use crate::decode::Warning;
use crate::read::regular_file::open_regular;
use crate::read::{own_file, rows, trace_files};
use crate::unsupported;
pub use projects::{MAX_PROJECTS, Projects};
pub use walk::SearchDepth;
use walk::{SymlinkPolicy, WalkResult, walk};

/// The log folders of one agent.
pub struct LogLocation {
    /// The environment variable that names the agent's folder.
    pub variable: &'static str,
    /// The same folder relative to the user's home, if the variable is not set. Empty if the
    /// variable names a home folder.
    pub home: &'static str,
    /// The log folders inside it.
    pub folders: &'static [&'static str],
    /// Further variables that name folders of the agent, with the log folders inside each. Without
    /// log folders the variable names a log: a path, or a name in the log folder.
    pub others: &'static [(&'static str, &'static [&'static str])],
    pub depth: SearchDepth,
    /// True if a path is a log.
    pub is_log: fn(&Path) -> bool,
    /// The name of a log that the agent keeps in the folder of each project.
    pub in_projects: Option<&'static str>,
}

impl LogLocation {
    /// The environment variables that name folders of the agent.
    fn variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        let others = self.others.iter().map(|(variable, _)| *variable);
        std::iter::once(self.variable).chain(others)
    }

    /// The folder of the agent's logs and settings, relative to the user's home.
    pub fn agent_folder(&self) -> &'static str {
        let first = || self.folders.first().and_then(|logs| logs.split('/').next());
        if self.home.is_empty() { first().unwrap_or_default() } else { self.home }
    }
}

/// The agents that keep logs, with the folders of these.
fn agents_with_logs() -> impl Iterator<Item = (&'static str, &'static LogLocation)> {
    AGENTS.iter().filter_map(|agent| Some((agent.name, agent.logs.as_ref()?)))
}

/// Unspool's own spool folders: hook payloads and captures of live streams.
static SPOOL: LogLocation = LogLocation {
    variable: "",
    home: "",
    folders: &[],
    others: &[],
    depth: SearchDepth::TopLevel,
    is_log: |path| ends(path, ".jsonl"),
    in_projects: None,
};

/// Unspool's own folder of what agents write down when `unspool run` starts them.
static TRACES: LogLocation = LogLocation {
    variable: "",
    home: "",
    folders: &[],
    others: &[],
    depth: SearchDepth::Recursive,
    is_log: trace_files::is_trace,
    in_projects: None,
};

pub(crate) fn ends(path: &Path, with: &str) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(with.as_bytes())
}

/// A file or folder that says which process runs which session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessSource {
    /// The program of the processes. None if they may be of any agent.
    pub program: Option<&'static str>,
    pub path: PathBuf,
    pub files: ProcessFiles,
}

/// The parts of the user's environment that determine where logs are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Environment {
    pub home: Option<PathBuf>,
    /// Configured homes of other users or machines. Environment variables do not apply to them.
    pub other_homes: Vec<PathBuf>,
    /// Unspool's own folders, which hold hook payloads and captures of live streams until they
    /// are recorded.
    pub spools: Vec<PathBuf>,
    /// Unspool's own folder of what agents write down when it starts them.
    pub traces: Option<PathBuf>,
    /// The agents' environment variables that are set.
    pub variables: BTreeMap<&'static str, PathBuf>,
    /// The folders of projects that are known from sessions. Some agents keep their logs there.
    pub projects: Projects,
}

impl Environment {
    pub fn of_process() -> Environment {
        let set = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let variables = agents_with_logs().flat_map(|(_, location)| location.variables());
        Environment {
            home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            other_homes: Vec::new(),
            spools: Vec::new(),
            traces: None,
            variables: variables.filter_map(|name| Some((name, set(name)?))).collect(),
            projects: Projects::default(),
        }
    }

    /// All log folders with their agents. They need not exist.
    pub fn folders(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        self.log_folders().map(|(agent, _, folder)| (agent, folder))
    }

    /// The folder of an agent's logs and settings.
    pub fn agent_folder(&self, agent: &str) -> Option<PathBuf> {
        let (_, location) = agents_with_logs().find(|(name, _)| *name == agent)?;
        let configured = self.variables.get(location.variable).cloned();
        match configured {
            // The variable names a home folder, or else the agent's folder.
            Some(home) if location.home.is_empty() => Some(home.join(location.agent_folder())),
            Some(folder) => Some(folder),
            None => Some(self.home.as_ref()?.join(location.agent_folder())),
        }
    }

    /// Where agents say which process runs which session.
    pub fn process_sources(&self) -> impl Iterator<Item = ProcessSource> {
        AGENTS.iter().filter_map(|agent| {
            let (path, files) = agent.process_files?;
            let path = self.agent_folder(agent.name)?.join(path);
            Some(ProcessSource { program: agent.program(), path, files })
        })
    }

    /// The log folders of one agent, each with the variable that named it.
    pub fn folders_of(&self, agent: &str) -> impl Iterator<Item = (PathBuf, Option<&'static str>)> {
        let mine = self.log_folders().filter(move |(name, ..)| *name == agent);
        mine.map(|(_, location, folder)| {
            let names = |variable: &&str| {
                let configured = self.variables.get(variable);
                configured.is_some_and(|configured| folder.starts_with(configured))
            };
            let variable = location.variables().find(names);
            (folder, variable)
        })
    }

    /// The folders to watch for changes; true if they are watched recursively.
    pub fn watched_folders(&self) -> impl Iterator<Item = (PathBuf, bool)> {
        let logs = self.project_logs().filter(|(.., log)| log.is_file());
        self.log_folders().chain(logs).map(|(_, location, folder)| {
            // Next to a database is its journal.
            match folder.parent().filter(|_| folder.is_file()) {
                Some(parent) => (parent.to_owned(), false),
                None => (folder, location.depth == SearchDepth::Recursive),
            }
        })
    }

    /// The logs behind a changed path: the file itself, or all sessions of a database. Empty if
    /// it is not a log.
    pub fn logs_at(&self, path: &Path) -> Vec<LogFile> {
        // SQLite writes to the WAL file next to the database.
        let database = path.to_str().and_then(|path| path.strip_suffix("-wal")).map(PathBuf::from);
        let path = database.as_deref().unwrap_or(path);
        let location = self.locations().find(|(_, location, folder)| {
            let is_named = || path == folder && path.is_file();
            is_named() || path.starts_with(folder) && (location.is_log)(path)
        });
        let (Some((agent, ..)), Ok(metadata)) = (location, path.metadata()) else {
            return Vec::new();
        };
        let mut walked = WalkResult::default();
        walked.files.push((path.to_owned(), file_stamp(&metadata)));
        expand(&mut walked);
        let found = |(path, stamp)| LogFile { path, agent, stamp };
        walked.files.into_iter().map(found).collect()
    }

    fn locations(&self) -> impl Iterator<Item = (&'static str, &'static LogLocation, PathBuf)> {
        self.log_folders().chain(self.project_logs())
    }

    /// The logs in the folders of projects.
    pub fn logs_in_projects(&self) -> Vec<LogFile> {
        let found = self.project_logs().filter_map(|(agent, _, path)| {
            let metadata = path.metadata().ok().filter(Metadata::is_file)?;
            Some(LogFile { stamp: file_stamp(&metadata), path, agent })
        });
        found.collect()
    }

    /// Where the logs in the folders of projects are, if there are any.
    fn project_logs(&self) -> impl Iterator<Item = (&'static str, &'static LogLocation, PathBuf)> {
        agents_with_logs().flat_map(|(agent, location)| {
            let folders = location.in_projects.into_iter().flat_map(|name| {
                self.projects.folders().iter().map(move |project| project.join(name))
            });
            folders.map(move |log| (agent, location, log))
        })
    }

    fn log_folders(&self) -> impl Iterator<Item = (&'static str, &'static LogLocation, PathBuf)> {
        let spool = self.spools.iter().map(|folder| ("hooks", &SPOOL, folder.clone()));
        let traces = self.traces.iter().map(|folder| ("traces", &TRACES, folder.clone()));
        let agents = agents_with_logs().flat_map(move |(agent, location)| {
            let configured = self.variables.get(location.variable).cloned();
            let own: Option<PathBuf> =
                configured.or_else(|| Some(self.home.as_ref()?.join(location.home)));
            let others = self.other_homes.iter().map(|home| home.join(location.home));
            let homes = own.clone().into_iter().chain(others).map(|home| (home, location.folders));
            let further = location.others.iter().filter_map(|(variable, folders)| {
                Some((self.variables.get(variable)?.clone(), *folders))
            });
            let files = location.others.iter().filter(|(_, folders)| folders.is_empty());
            let logs = own.clone().zip(location.folders.first()).map(|(own, logs)| own.join(logs));
            let named = files.filter_map(move |(variable, _)| {
                let file = logs.as_ref()?.join(self.variables.get(variable)?);
                Some((agent, location, file))
            });
            let folders = homes.chain(further).flat_map(move |(home, folders)| {
                folders.iter().map(move |logs| (agent, location, home.join(logs)))
            });
            folders.chain(named)
        });
        agents.chain(spool).chain(traces)
    }
}

/// The stamp of a file, from its metadata.
#[cfg(unix)]
pub fn file_stamp(metadata: &Metadata) -> FileStamp {
    use std::os::unix::fs::MetadataExt;

    let time = |seconds: i64, nanoseconds: i64| {
        seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
    };
    FileStamp {
        size: metadata.size(),
        modified: time(metadata.mtime(), metadata.mtime_nsec()),
        changed: time(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
        device: metadata.dev(),
    }
}

#[cfg(not(unix))]
pub fn file_stamp(metadata: &Metadata) -> FileStamp {
    let since =
        metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let modified = since.and_then(|since| i64::try_from(since.as_nanos()).ok());
    FileStamp { size: metadata.len(), modified: modified.unwrap_or(0), ..FileStamp::default() }
}

/// A file that may be a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogFile {
    pub path: PathBuf,
    pub agent: &'static str,
    pub stamp: FileStamp,
}

/// The files found in the agents' folders.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Discovery {
    /// Sorted by path.
    pub files: Vec<LogFile>,
    pub warnings: Vec<Warning>,
}

/// Finds the logs of all agents. A missing folder is not a warning: few users have every agent.
pub fn discover(environment: &Environment) -> Discovery {
    let mut discovered = Discovery::default();
    for (agent, location, folder) in environment.locations() {
        if !folder.exists() {
            continue;
        }
        let mut walked = match folder.metadata() {
            Ok(metadata) if metadata.is_file() => {
                let mut walked = WalkResult::default();
                walked.files.push((folder, file_stamp(&metadata)));
                walked
            }
            Ok(_) | Err(_) => walk(&folder, location.is_log, location.depth, SymlinkPolicy::Follow),
        };
        expand(&mut walked);
        let found = |(path, stamp)| LogFile { path, agent, stamp };
        discovered.files.extend(walked.files.into_iter().map(found));
        discovered.warnings.append(&mut walked.warnings);
    }
    // Compares bytes: comparing path components costs more than listing the files.
    discovered.files.sort_unstable_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    // A variable may name a log that is in the log folder as well.
    discovered.files.dedup_by(|a, b| a.path == b.path);
    discovered
}

/// Replaces each database by its sessions: each is a log of its own.
fn expand(walked: &mut WalkResult) {
    let (databases, logs) = walked.files.drain(..).partition(|(path, _)| is_database(path));
    walked.files = logs;
    let databases: Vec<(PathBuf, FileStamp)> = databases;
    for (path, _) in databases {
        match rows::sessions(&path) {
            Ok(sessions) if sessions.is_empty() => {
                if let Ok(Some(what)) = unsupported::of_database(&path) {
                    walked.warn(&path, unsupported::reason(what));
                } else if let Ok(Some(table)) = unsupported::missing_table(&path) {
                    walked.warn(&path, format!("no session is read: it has no table `{table}`"));
                }
            }
            Ok(sessions) => walked.files.extend(sessions),
            Err(error) => walked.warn(&path, format!("cannot be read: {error}")),
        }
    }
}

fn is_database(path: &Path) -> bool {
    ends(path, ".db")
}

/// True if a file in a folder that the user named may be a log or a capture. Documents are
/// opened to check, because a folder may hold any number of unrelated ones.
fn may_be_log(path: &Path) -> bool {
    if trace_files::is_payload(path) {
        return false;
    }
    let certain = [".jsonl", ".jsonl.zst", ".sse", ".db"].iter().any(|end| ends(path, end));
    if certain || own_file::of_path(path).is_some() {
        return true;
    }
    let of_agents = own_file::beginnings(path);
    let is_document = ends(path, ".json");
    if of_agents.is_empty() && !is_document {
        return false;
    }
    let beginning = beginning(path);
    of_agents.iter().any(|begins| begins(&beginning)) || is_document && begins_as_chat(&beginning)
}

/// The first 8 KiB of a file; nothing of one that cannot be read.
fn beginning(path: &Path) -> Vec<u8> {
    let mut beginning = Vec::new();
    let file = open_regular(path).map(|file| file.take(8 * 1024).read_to_end(&mut beginning));
    if matches!(file, Ok(Ok(_))) { beginning } else { Vec::new() }
}

/// True if a document begins with messages.
fn begins_as_chat(beginning: &[u8]) -> bool {
    holds(beginning, b"\"role\"")
        && (holds(beginning, b"\"parts\"") || holds(beginning, b"\"content\""))
}

/// True if a text has these bytes.
pub(crate) fn holds(text: &[u8], bytes: &[u8]) -> bool {
    memchr::memmem::find(text, bytes).is_some()
}

/// The logs and captures of a path that the user named: the file itself with its metadata file, or
/// the files of a folder sorted by path. Symlinks to folders are not followed, because such a
/// folder may hold anything.
pub fn find_files(path: &Path) -> (Vec<PathBuf>, Vec<Warning>) {
    let mut walked = if path.is_dir() {
        walk(path, may_be_log, SearchDepth::Recursive, SymlinkPolicy::Ignore)
    } else {
        let mut walked = WalkResult::default();
        let files = std::iter::once(path.to_owned()).chain(own_file::beside_log(path));
        walked.files.extend(files.map(|path| (path, FileStamp::default())));
        walked
    };
    expand(&mut walked);
    let mut files: Vec<PathBuf> = walked.files.into_iter().map(|(path, _)| path).collect();
    files.sort_unstable();
    (files, walked.warnings)
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
