//! The spool of hook payloads. A hook must return at once and must never fail the agent that runs
//! it, so it only appends a line to a file. The recorder watches the folder and reads these files
//! like any other log; payloads that arrive while nothing records are read at the next start.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::value::RawValue;
use unspool_store::private_file;

use crate::lock::DataFolder;

/// Spool files are deleted after this time; they have been read long before.
const RETENTION: Duration = Duration::from_secs(14 * 24 * 60 * 60);

impl DataFolder {
    /// The folder of spooled payloads.
    pub fn spool(&self) -> PathBuf {
        self.path().join("hooks")
    }

    fn texts(&self) -> PathBuf {
        self.path().join("texts")
    }

    /// Creates a file for text that the recorder process shall read: it cannot read our stdin.
    pub fn create_handover_text(&self) -> io::Result<HandoverText> {
        let folder = self.texts();
        fs::create_dir_all(&folder)?;
        let mut options = private_file::options();
        options.write(true).create_new(true);
        let mut nth = 0;
        loop {
            let path = folder.join(format!("{}-{nth}.txt", std::process::id()));
            match options.open(&path) {
                Ok(file) => return Ok(HandoverText { path, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => nth += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// A file with text for the recorder. Deleted on drop.
pub struct HandoverText {
    pub path: PathBuf,
    pub file: File,
}

impl Drop for HandoverText {
    fn drop(&mut self) {
        // A leftover file is removed by `sweep`.
        let _ = fs::remove_file(&self.path);
    }
}

/// A spooled line: the payload and the facts it does not contain.
#[derive(Serialize)]
struct SpoolLine<'a> {
    agent: &'a str,
    event: &'a str,
    /// When the payload arrived.
    at: &'a str,
    payload: &'a RawValue,
}

/// Appends one payload to the spool. `now` is the arrival time, RFC 3339 in UTC; its date names the
/// file.
pub fn append_payload(
    folder: &DataFolder,
    agent: &str,
    event: &str,
    payload: &str,
    now: &str,
) -> io::Result<()> {
    let payload = payload.trim();
    // One payload per line: line breaks between JSON tokens become spaces.
    let one_line: String;
    let payload = if payload.contains(['\n', '\r']) {
        one_line = payload.replace(['\n', '\r'], " ");
        &one_line
    } else {
        payload
    };
    let payload: &RawValue = serde_json::from_str(payload)?;
    let mut line = serde_json::to_vec(&SpoolLine { agent, event, at: now, payload })?;
    line.push(b'\n');
    folder.create()?;
    fs::create_dir_all(folder.spool())?;
    let path = spool_file(folder, agent, now);
    let mut file = private_file::options().append(true).create(true).open(path)?;
    // A single write, because hooks run concurrently.
    file.write_all(&line)
}

/// The file of the spool that gets the payloads of an agent at this time.
pub fn spool_file(folder: &DataFolder, agent: &str, now: &str) -> PathBuf {
    let day = now.get(..10).unwrap_or("undated");
    folder.spool().join(format!("{}-{day}.jsonl", file_name(agent)))
}

/// The agent's name reduced to safe characters: it comes from the command line.
fn file_name(agent: &str) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    agent.chars().filter(|letter| safe(*letter)).take(40).collect()
}

/// Removes expired spool files. The recorder calls it after it has read everything.
pub fn sweep(folder: &DataFolder) {
    for (folder, ours) in [
        (folder.spool(), "jsonl"),
        (folder.streams(), "jsonl"),
        (folder.stdin_captures(), "jsonl"),
        (folder.texts(), "txt"),
        (folder.processes(), "json"),
    ] {
        let Ok(entries) = folder.read_dir() else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            let expired = is_old(&path) && !is_locked(&path);
            if path.extension().is_some_and(|end| end == ours) && expired {
                // A failure is retried by the next sweep.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// True for a capture that a chat still writes: an agent may be silent for weeks.
fn is_locked(path: &Path) -> bool {
    let lock = File::open(path).map(|file| file.try_lock_shared());
    lock.is_ok_and(|lock| matches!(lock, Err(TryLockError::WouldBlock)))
}

fn is_old(path: &Path) -> bool {
    let modified = path.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > RETENTION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_that_is_being_written_stays() {
        let data = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(data.path().to_owned());
        fs::create_dir_all(folder.streams()).unwrap();
        let create = |name: &str| {
            let file = File::create(folder.streams().join(name)).unwrap();
            file.set_modified(SystemTime::now() - 2 * RETENTION).unwrap();
            file
        };
        let open = create("open.jsonl");
        open.try_lock().unwrap();
        drop(create("closed.jsonl"));
        sweep(&folder);
        assert!(folder.streams().join("open.jsonl").exists());
        assert!(!folder.streams().join("closed.jsonl").exists());
    }

    #[test]
    fn payloads_become_lines() {
        let data = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(data.path().join("data"));
        let now = "2026-11-15T10:00:00.000Z";
        append_payload(&folder, "claude-code", "Stop", "{\n \"a\": \"x\\ny\"\n}\n", now).unwrap();
        append_payload(&folder, "claude-code", "Stop", "{\"b\":1}", now).unwrap();
        append_payload(&folder, "../odd", "", "{}", now).unwrap();
        assert!(append_payload(&folder, "claude-code", "", "no JSON", now).is_err());
        let lines =
            fs::read_to_string(folder.spool().join("claude-code-2026-11-15.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["payload"]["a"], "x\ny");
        assert_eq!(lines[0]["agent"], "claude-code");
        assert_eq!(lines[1]["at"], now);
        assert!(folder.spool().join("odd-2026-11-15.jsonl").exists());
    }
}
