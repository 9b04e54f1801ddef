//! Discovery: where agents keep their logs, and which files lie there. Looks at names and stamps
//! and opens nothing but documents in a folder that somebody names; writes nothing anywhere (law 7).

mod walk;

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::decode::Warning;
use crate::read::{beside, rows};
use walk::{Links, Reach, Walked, walk};

/// Where one agent keeps its logs.
struct Place {
    agent: &'static str,
    /// The variable that names a folder of the agent's.
    variable: &'static str,
    /// The same folder in the user's home, where the variable is not set.
    home: &'static str,
    /// Folders of logs within.
    logs: &'static [&'static str],
    reach: Reach,
    /// Whether a file is a log, by its path.
    is_log: fn(&Path) -> bool,
}

/// Every place where we look: one line for each agent.
static PLACES: &[Place] = &[
    // Sub-agents' logs lie beside the sessions (2.0.30) or in `<session>/subagents` (since
    // 2.1.20); what else is known of an agent, in a file beside its log. `history.jsonl` holds
    // typed prompts, and lies above.
    Place {
        agent: "claude-code",
        variable: "CLAUDE_CONFIG_DIR",
        home: ".claude",
        logs: &["projects"],
        reach: Reach::Below,
        is_log: |path| ends(path, ".jsonl") || beside::is_beside(path),
    },
    // Old rollouts may be packed.
    Place {
        agent: "codex",
        variable: "CODEX_HOME",
        home: ".codex",
        logs: &["sessions", "archived_sessions"],
        reach: Reach::Below,
        is_log: |path| ends(path, ".jsonl") || ends(path, ".jsonl.zst"),
    },
    // Beside the database lie the objects of its snapshots, a great many.
    Place {
        agent: "opencode",
        variable: "XDG_DATA_HOME",
        home: ".local/share",
        logs: &["opencode"],
        reach: Reach::Here,
        is_log: |path| ends(path, ".db"),
    },
    Place {
        agent: "copilot",
        variable: "COPILOT_HOME",
        home: ".copilot",
        logs: &["session-state"],
        reach: Reach::Below,
        is_log: |path| path.file_name().is_some_and(|name| name == "events.jsonl"),
    },
    // The variable stands for the home in which `.gemini` lies.
    Place {
        agent: "gemini",
        variable: "GEMINI_CLI_HOME",
        home: "",
        logs: &[".gemini/tmp"],
        reach: Reach::Below,
        is_log: |path| ends(path, ".jsonl") && path.iter().any(|piece| piece == "chats"),
    },
];

/// Our own: what hooks were given, and what live streams told.
static SPOOL: Place = Place {
    agent: "hooks",
    variable: "",
    home: "",
    logs: &[],
    reach: Reach::Here,
    is_log: |path| ends(path, ".jsonl"),
};

fn ends(path: &Path, with: &str) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(with.as_bytes())
}

/// What of the user's environment says where logs are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Environment {
    pub home: Option<PathBuf>,
    /// Homes of other users or machines, by configuration. No variable speaks of them.
    pub other_homes: Vec<PathBuf>,
    /// Our own folders, in which hook payloads and captures of live streams wait for whoever
    /// records.
    pub spools: Vec<PathBuf>,
    /// The agents' own variables, those that are set.
    pub variables: BTreeMap<&'static str, PathBuf>,
}

impl Environment {
    pub fn of_process() -> Environment {
        let set = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let variables = PLACES.iter().map(|place| place.variable);
        Environment {
            home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            other_homes: Vec::new(),
            spools: Vec::new(),
            variables: variables.filter_map(|name| Some((name, set(name)?))).collect(),
        }
    }

    /// The folders in which logs may lie, with the agent whose they are. They need not exist.
    pub fn folders(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        self.places().map(|(place, folder)| (place.agent, folder))
    }

    /// Where an agent keeps its own things, logs and settings.
    pub fn agent_folder(&self, agent: &str) -> Option<PathBuf> {
        let place = PLACES.iter().find(|place| place.agent == agent)?;
        let told = self.variables.get(place.variable).cloned();
        let folder = told.or_else(|| Some(self.home.as_ref()?.join(place.home)))?;
        // Where the variable stands for a home, the agent's folder is the first one within.
        let within = place.logs.first().and_then(|logs| Path::new(logs).iter().next());
        Some(match within {
            Some(first) if place.home.is_empty() => folder.join(first),
            Some(_) | None => folder,
        })
    }

    /// The folders of one agent, and the variable that named each.
    pub fn folders_of(&self, agent: &str) -> impl Iterator<Item = (PathBuf, Option<&'static str>)> {
        self.places().filter(move |(place, _)| place.agent == agent).map(|(place, folder)| {
            let told = self.variables.get(place.variable);
            let variable = told.filter(|told| folder.starts_with(told)).map(|_| place.variable);
            (folder, variable)
        })
    }

    /// The folders to be watched for changes, and whether with all that is below them.
    pub fn watched_folders(&self) -> impl Iterator<Item = (PathBuf, bool)> {
        self.places().map(|(place, folder)| (folder, place.reach == Reach::Below))
    }

    /// The logs that a file stands for which has changed: the file itself, the sessions of a
    /// database; none if it is no log.
    pub fn look_at(&self, path: &Path) -> Vec<Found> {
        // A database is written to through the log beside it.
        let database = path.to_str().and_then(|path| path.strip_suffix("-wal")).map(PathBuf::from);
        let path = database.as_deref().unwrap_or(path);
        let place =
            self.places().find(|(place, folder)| path.starts_with(folder) && (place.is_log)(path));
        let (Some((place, _)), Ok(metadata)) = (place, path.metadata()) else { return Vec::new() };
        let mut walked = Walked::default();
        walked.files.push((path.to_owned(), Stamp::of(&metadata)));
        expand(&mut walked);
        let found = |(path, stamp)| Found { path, agent: place.agent, stamp };
        walked.files.into_iter().map(found).collect()
    }

    fn places(&self) -> impl Iterator<Item = (&'static Place, PathBuf)> {
        let spool = self.spools.iter().map(|folder| (&SPOOL, folder.clone()));
        let agents = PLACES.iter().flat_map(|place| {
            let told = self.variables.get(place.variable).cloned();
            let own = told.or_else(|| Some(self.home.as_ref()?.join(place.home)));
            let others = self.other_homes.iter().map(|home| home.join(place.home));
            let folders = own.into_iter().chain(others);
            folders.flat_map(move |folder| {
                place.logs.iter().map(move |logs| (place, folder.join(logs)))
            })
        });
        agents.chain(spool)
    }
}

/// What the file system says of a file without opening it. A file whose stamp is the same is
/// taken to be the same; what it is when the stamp differs, its fingerprint says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Stamp {
    pub size: u64,
    /// When it was written, in nanoseconds since 1970. Programs may set it.
    pub modified: i64,
    /// When it or its metadata was changed, in nanoseconds since 1970. No program can set it.
    /// Outside Unix 0, as are the inode and the device.
    pub changed: i64,
    pub inode: u64,
    pub device: u64,
}

impl Stamp {
    #[cfg(unix)]
    pub fn of(metadata: &Metadata) -> Stamp {
        use std::os::unix::fs::MetadataExt;

        let time = |seconds: i64, nanoseconds: i64| {
            seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
        };
        Stamp {
            size: metadata.size(),
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
            changed: time(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            device: metadata.dev(),
        }
    }

    #[cfg(not(unix))]
    pub fn of(metadata: &Metadata) -> Stamp {
        let since = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified = since.and_then(|since| i64::try_from(since.as_nanos()).ok());
        Stamp { size: metadata.len(), modified: modified.unwrap_or(0), ..Stamp::default() }
    }
}

/// A file that may be a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    pub path: PathBuf,
    pub agent: &'static str,
    pub stamp: Stamp,
}

/// What lies in the agents' folders.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Discovered {
    /// In the order of their paths.
    pub files: Vec<Found>,
    pub warnings: Vec<Warning>,
}

/// Finds the logs of all agents. A folder that does not exist is no warning: not everybody has
/// every agent.
pub fn discover(environment: &Environment) -> Discovered {
    let mut discovered = Discovered::default();
    for (place, folder) in environment.places() {
        if !folder.exists() {
            continue;
        }
        let mut walked = walk(&folder, place.is_log, place.reach, Links::Follow);
        expand(&mut walked);
        let found = |(path, stamp)| Found { path, agent: place.agent, stamp };
        discovered.files.extend(walked.files.into_iter().map(found));
        discovered.warnings.append(&mut walked.warnings);
    }
    // Byte by byte: comparing paths piece by piece costs more than listing them.
    discovered.files.sort_unstable_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    discovered
}

/// Databases hold many sessions: each is a log of its own.
fn expand(walked: &mut Walked) {
    let (databases, logs) = walked.files.drain(..).partition(|(path, _)| is_database(path));
    walked.files = logs;
    let databases: Vec<(PathBuf, Stamp)> = databases;
    for (path, _) in databases {
        match rows::sessions(&path) {
            Ok(sessions) => walked.files.extend(sessions),
            Err(error) => walked.warn(&path, format!("cannot be read: {error}")),
        }
    }
}

fn is_database(path: &Path) -> bool {
    ends(path, ".db")
}

/// Whether a file in a folder that somebody names may be a log or a capture. A folder may hold any
/// number of documents that are none: those are looked into.
fn may_be_log(path: &Path) -> bool {
    let certain = [".jsonl", ".jsonl.zst", ".sse", ".db"].iter().any(|end| ends(path, end));
    certain || beside::is_beside(path) || (ends(path, ".json") && begins_as_session(path))
}

/// Whether messages, or the steps of a ThoughtFlow document, stand at the beginning of a document.
fn begins_as_session(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let Ok(file) = File::open(path) else { return false };
    if file.take(8 * 1024).read_to_end(&mut beginning).is_err() {
        return false;
    }
    let holds = |name: &[u8]| memchr::memmem::find(&beginning, name).is_some();
    let chat = holds(b"\"role\"") && (holds(b"\"parts\"") || holds(b"\"content\""));
    chat || holds(b"\"conversations\"") && holds(b"\"session_id\"")
}

/// The logs and captures that a path stands for: the file itself with what lies beside it, or the
/// files of a folder, in the order of their paths. Links to folders are not followed: a folder that somebody names may hold
/// anything.
pub fn find_files(path: &Path) -> (Vec<PathBuf>, Vec<Warning>) {
    let mut walked = if path.is_dir() {
        walk(path, may_be_log, Reach::Below, Links::Leave)
    } else {
        let mut walked = Walked::default();
        let files = [Some(path.to_owned()), beside::of_log(path)];
        walked.files.extend(files.into_iter().flatten().map(|path| (path, Stamp::default())));
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
