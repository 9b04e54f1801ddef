//! Which process runs which session, where that is known: from our hooks, which write a file per
//! process, and from agents that keep such files themselves. The files are small, have the process
//! id as their name, and stay behind when the process is killed. `hooks::spool::sweep` removes ours after a while.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use unspool_query::processes::{ProcessList, hook_caller};

use crate::lock::DataFolder;

/// A larger file is none of these.
const MAX_BYTES: u64 = 64 * 1024;

/// The content of a file, as Claude Code writes it too; it has more fields.
#[derive(Serialize, Deserialize)]
struct Entry {
    pid: u32,
    #[serde(rename = "sessionId")]
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
    process: u32,
    /// When it was written.
    at: SystemTime,
    is_idle: bool,
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
    pub fn read(folders: &[PathBuf]) -> ProcessRegistry {
        let mut by_session: FxHashMap<String, Vec<Registration>> = FxHashMap::default();
        for (entry, at) in folders.iter().flat_map(|folder| entries(folder)) {
            let is_idle = entry.status.as_deref() == Some("idle");
            let registration = Registration { process: entry.pid, at, is_idle };
            by_session.entry(entry.session).or_default().push(registration);
        }
        ProcessRegistry { by_session }
    }

    pub fn process_of(&self, session: &str, processes: &ProcessList) -> Registered {
        let Some(known) = self.by_session.get(session) else { return Registered::No };
        let alive = || known.iter().filter(|known| processes.is_alive(known.process, known.at));
        if let Some(idle) = alive().find(|known| known.is_idle) {
            Registered::Idle(idle.at)
        } else if alive().next().is_some() {
            Registered::Alive
        } else {
            Registered::Dead
        }
    }

    /// The living processes of other sessions.
    pub fn others(&self, session: &str, processes: &ProcessList) -> Vec<u32> {
        let others = self.by_session.iter().filter(|(other, _)| *other != session);
        let known = others.flat_map(|(_, known)| known);
        let alive = known.filter(|known| processes.is_alive(known.process, known.at));
        alive.map(|known| known.process).collect()
    }
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
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn sleep() -> std::process::Child {
        Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_session_is_dead_when_its_processes_are() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut two) = (sleep(), sleep());
        let register = |pid: u32, session: &str| {
            let text = format!(r#"{{"pid":{pid},"sessionId":"{session}","status":"busy"}}"#);
            fs::write(folder.path().join(format!("{pid}.json")), text).unwrap();
        };
        register(one.id(), "a");
        register(two.id(), "b");
        fs::write(folder.path().join("odd.json"), "{").unwrap();
        let folders = [folder.path().to_owned(), folder.path().join("none")];
        let of = |session: &str| {
            let list = ProcessList::read().unwrap();
            ProcessRegistry::read(&folders).process_of(session, &list)
        };
        assert_eq!(
            (of("a"), of("b"), of("c")),
            (Registered::Alive, Registered::Alive, Registered::No)
        );
        let idle = format!(r#"{{"pid":{},"sessionId":"i","status":"idle"}}"#, two.id());
        fs::write(folder.path().join("idle.json"), idle).unwrap();
        assert!(matches!(of("i"), Registered::Idle(_)));
        fs::remove_file(folder.path().join("idle.json")).unwrap();
        let list = ProcessList::read().unwrap();
        let registry = ProcessRegistry::read(&folders);
        assert_eq!(registry.others("a", &list), [two.id()]);
        one.kill().unwrap();
        one.wait().unwrap();
        assert_eq!((of("a"), of("b")), (Registered::Dead, Registered::Alive));
        two.kill().unwrap();
        two.wait().unwrap();
    }
}
