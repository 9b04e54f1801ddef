//! The capture of a connection: both directions of the wire as lines of JSON, in a folder that the
//! recorder reads. A capture that cannot be written never stops the agent: lines wait, and are
//! written when it is possible again.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::folder::create_private;
use super::patches::Patches;

/// How many bytes wait at most while the capture cannot be written.
const MAX_WAITING: usize = 16 * 1024 * 1024;
/// How much of a line is noted that is not of the protocol.
const JUNK_HEAD: usize = 1000;

/// A line that is not of the protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Junk {
    pub size: u64,
    /// The XXH3 digest of a line that is too long to be kept.
    pub digest: Option<u64>,
    /// Its beginning.
    pub head: String,
}

impl Junk {
    pub fn short(text: &str) -> Junk {
        let head = text.chars().take(JUNK_HEAD).collect();
        Junk { size: text.len() as u64, digest: None, head }
    }
}

/// Who sent a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    ToAgent,
    ToClient,
}

/// The file that a connection is recorded in.
pub struct Capture {
    path: PathBuf,
    file: Option<File>,
    /// Lines that are not written yet, and how much of the first is.
    waiting: VecDeque<Vec<u8>>,
    written: usize,
    waiting_bytes: usize,
    /// Lines that were dropped because too many waited.
    dropped: u64,
    session: Option<String>,
    patches: Patches,
}

impl Capture {
    /// Begins a capture. Its file is created with the first line that can be written.
    pub fn new(folder: &Path, now: u64, head: &Value) -> Capture {
        let process = std::process::id();
        let path = folder.join(format!("acp-{now}-{process}-0.jsonl"));
        let mut capture = Capture {
            path,
            file: None,
            waiting: VecDeque::new(),
            written: 0,
            waiting_bytes: 0,
            dropped: 0,
            session: None,
            patches: Patches::default(),
        };
        capture.push(head.to_string());
        capture
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The session that further lines belong to.
    pub fn set_session(&mut self, session: Option<&str>) {
        self.session = session.map(str::to_owned);
    }

    /// Adds a message as it was on the wire.
    pub fn message(&mut self, direction: Direction, text: &str, now: u64) {
        if direction == Direction::ToClient && self.patches.hold(text, now) {
            return self.release_patches(now);
        }
        // Before a message that may end what a held one is about.
        for patch in self.patches.release_for(text) {
            self.wire_line(Direction::ToClient, &patch, now);
        }
        self.wire_line(direction, text, now);
    }

    /// Writes patches that had to wait.
    pub fn release_patches(&mut self, now: u64) {
        for patch in self.patches.release_due(now) {
            self.wire_line(Direction::ToClient, &patch, now);
        }
    }

    /// Writes all patches that had to wait: nothing follows.
    pub fn release_all_patches(&mut self, now: u64) {
        for patch in self.patches.release_all() {
            self.wire_line(Direction::ToClient, &patch, now);
        }
    }

    pub fn has_patches(&self) -> bool {
        self.patches.is_holding()
    }

    fn wire_line(&mut self, direction: Direction, text: &str, now: u64) {
        let dir = match direction {
            Direction::ToAgent => "c2a",
            Direction::ToClient => "a2c",
        };
        // A message that names its session may be of an earlier one.
        let named = text.contains("\"sessionId\"");
        let session = self.session.as_ref().filter(|_| !named);
        let session = session.map(|session| format!("\"s\":{},", json!(session)));
        let session = session.unwrap_or_default();
        let text = text.trim();
        self.push(format!("{{\"t\":{now},{session}\"dir\":\"{dir}\",\"msg\":{text}}}"));
    }

    /// Adds a line of our own.
    pub fn note(&mut self, message: &Value, now: u64) {
        self.release_all_patches(now);
        self.push(self.own_line("us", message, now));
    }

    /// Adds that the agent wrote something that is not of the protocol.
    pub fn junk(&mut self, junk: &Junk, now: u64) {
        let Junk { size, digest, head } = junk;
        let mut message = json!({"size": size, "head": head});
        if let Some(digest) = digest {
            message["digest"] = json!(format!("{digest:016x}"));
        }
        let line = self.own_line("junk", &message, now);
        self.push(line);
    }

    fn own_line(&self, dir: &str, message: &Value, now: u64) -> String {
        let mut line = json!({"t": now, "dir": dir, "msg": message});
        if let Some(session) = &self.session {
            line["s"] = json!(session);
        }
        line.to_string()
    }

    fn push(&mut self, mut line: String) {
        line.push('\n');
        if self.waiting_bytes > 0 && self.waiting_bytes + line.len() > MAX_WAITING {
            self.dropped += 1;
            return;
        }
        self.waiting_bytes += line.len();
        self.waiting.push_back(line.into_bytes());
    }

    /// Writes what waits. An error is to be tried again later.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.create()?,
        };
        let written = self.write_to(&mut file);
        self.file = Some(file);
        written?;
        if self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            self.push(json!({"dir": "us", "msg": {"what": "skipped", "n": dropped}}).to_string());
            return self.flush();
        }
        Ok(())
    }

    fn write_to(&mut self, file: &mut File) -> io::Result<()> {
        while let Some(line) = self.waiting.front() {
            // A single write in the usual case, so that a reader sees whole lines.
            let count = file.write(&line[self.written..])?;
            self.written += count;
            if self.written == line.len() {
                self.waiting_bytes -= line.len();
                self.written = 0;
                self.waiting.pop_front();
            } else if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    fn create(&mut self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            create_private(folder)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600);
        for nth in 0..1000 {
            let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let stem = name.rsplit_once('-').map_or(name, |(stem, _)| stem);
            self.path.set_file_name(format!("{stem}-{nth}.jsonl"));
            match options.open(&self.path) {
                Ok(file) => {
                    // Old captures are deleted, unless they are locked. Fails where locks are
                    // unsupported.
                    let _ = file.try_lock();
                    return Ok(file);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}
