//! Which process runs which session, where that is known: from our hooks, which write a file per
//! process, and from agents that keep such files or a log of their runs (`run_log.rs`). The files are
//! small, have the process id in their name, and stay behind when the process is killed.
//! `hooks::spool::sweep` removes ours after a while.

mod run_log;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use unspool_query::processes::{ProcessList, hook_caller};
use unspool_sources::agents::ProcessFiles;
use unspool_sources::discover::ProcessSource;

use crate::lock::DataFolder;

/// A larger file is none of these.
const MAX_BYTES: u64 = 64 * 1024;

/// The content of a file, as Claude Code and Qwen Code write it too; theirs have more fields.
#[derive(Serialize, Deserialize)]
struct Entry {
    pid: u32,
    #[serde(rename = "sessionId", alias = "session_id")]
    session: String,
    /// Claude Code: `busy`, `idle`, `waiting`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
}

/// The processes of sessions.
#[derive(Debug, Default)]
pub struct ProcessRegistry {
    by_session: FxHashMap<String, Vec<Registration>>,
}

#[derive(Clone, Copy, Debug)]
struct Registration {
    holder: Holder,
    /// When it was written.
    at: SystemTime,
    is_idle: bool,
}

/// The process of a registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder {
    /// It has this id, unless another process has got the id since.
    Process(u32),
    Gone,
    /// It is one of several, or none of them.
    Unclear,
}

impl Registration {
    fn living(&self, processes: &ProcessList) -> Option<u32> {
        match self.holder {
            Holder::Process(id) => processes.is_alive(id, self.at).then_some(id),
            Holder::Gone | Holder::Unclear => None,
        }
    }
}

/// What the registry knows about the process of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Registered {
    Alive,
    /// Its process lives and has said at this time that it waits for a prompt.
    Idle(SystemTime),
    Dead,
    /// No process is registered for it.
    No,
}

impl DataFolder {
    /// The folder with a file for each process that called our hooks.
    pub fn processes(&self) -> PathBuf {
        self.path().join("processes")
    }
}

/// Notes that the process that called this hook runs the session. Errors are ignored, because the
/// agent must not see them.
pub fn register_caller(folder: &DataFolder, session: &str) {
    let Some(pid) = hook_caller() else { return };
    let path = folder.processes().join(format!("{pid}.json"));
    // A process may go on with another session; the file of the same one stays as it is.
    if entry(&path).is_some_and(|(held, _)| held.session == session) {
        return;
    }
    let Ok(text) = serde_json::to_vec(&Entry { pid, session: session.to_owned(), status: None })
    else {
        return;
    };
    let _ = fs::create_dir_all(folder.processes());
    let _ = fs::write(path, text);
}

impl ProcessRegistry {
    pub fn read(sources: &[ProcessSource], processes: &ProcessList) -> ProcessRegistry {
        let mut registry = ProcessRegistry::default();
        for source in sources {
            match source.files {
                ProcessFiles::Entries => registry.read_entries(&source.path),
                ProcessFiles::SessionLocks => registry.read_locks(&source.path),
                ProcessFiles::ChatRuntimes => registry.read_runtimes(&source.path),
                ProcessFiles::RunLog => {
                    let program = source.program.unwrap_or_default();
                    registry.read_run_log(&source.path, program, processes);
                }
            }
        }
        registry
    }

    fn read_entries(&mut self, folder: &Path) {
        for (entry, at) in entries(folder) {
            let is_idle = entry.status.as_deref() == Some("idle");
            let holder = Holder::Process(entry.pid);
            self.add(entry.session, Registration { holder, at, is_idle });
        }
    }

    /// Locks of Copilot: `SESSION/inuse.PID.lock`. One that ends by itself removes its lock.
    fn read_locks(&mut self, folder: &Path) {
        for session in fs::read_dir(folder).into_iter().flatten().flatten() {
            for file in fs::read_dir(session.path()).into_iter().flatten().flatten() {
                let name = file.file_name();
                let (Some(id), Ok(session)) =
                    (name.to_str().and_then(lock_holder), session.file_name().into_string())
                else {
                    continue;
                };
                if let Ok(at) = file.metadata().and_then(|metadata| metadata.modified()) {
                    let holder = Holder::Process(id);
                    self.add(session, Registration { holder, at, is_idle: false });
                }
            }
        }
    }

    /// Files of Qwen Code: `PROJECT/chats/SESSION.runtime.json`.
    fn read_runtimes(&mut self, folder: &Path) {
        for project in fs::read_dir(folder).into_iter().flatten().flatten() {
            for file in fs::read_dir(project.path().join("chats")).into_iter().flatten().flatten() {
                let is_runtime =
                    file.file_name().to_str().is_some_and(|name| name.ends_with(".runtime.json"));
                let Some((entry, at)) = is_runtime.then(|| entry(&file.path())).flatten() else {
                    continue;
                };
                let holder = Holder::Process(entry.pid);
                self.add(entry.session, Registration { holder, at, is_idle: false });
            }
        }
    }

    fn add(&mut self, session: String, registration: Registration) {
        self.by_session.entry(session).or_default().push(registration);
    }

    pub fn process_of(&self, session: &str, processes: &ProcessList) -> Registered {
        let Some(known) = self.by_session.get(session) else { return Registered::No };
        let alive = || known.iter().filter(|known| known.living(processes).is_some());
        if let Some(idle) = alive().find(|known| known.is_idle) {
            Registered::Idle(idle.at)
        } else if alive().next().is_some() {
            Registered::Alive
        } else if known.iter().any(|known| known.holder == Holder::Unclear) {
            Registered::No
        } else {
            Registered::Dead
        }
    }

    /// The process that has a session open.
    pub fn living_process(&self, session: &str, processes: &ProcessList) -> Option<u32> {
        self.by_session.get(session)?.iter().find_map(|known| known.living(processes))
    }

    /// The living processes of other sessions.
    pub fn others(&self, session: &str, processes: &ProcessList) -> Vec<u32> {
        let others = self.by_session.iter().filter(|(other, _)| *other != session);
        let known = others.flat_map(|(_, known)| known);
        known.filter_map(|known| known.living(processes)).collect()
    }
}

/// The process in the name of a lock.
fn lock_holder(name: &str) -> Option<u32> {
    name.strip_prefix("inuse.")?.strip_suffix(".lock")?.parse().ok()
}

fn entries(folder: &Path) -> impl Iterator<Item = (Entry, SystemTime)> + use<> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| entry(&file.path()))
}

fn entry(path: &Path) -> Option<(Entry, SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    let entry: Entry = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    Some((entry, metadata.modified().ok()?))
}

#[cfg(test)]
#[path = "process_registry_tests.rs"]
mod tests;
