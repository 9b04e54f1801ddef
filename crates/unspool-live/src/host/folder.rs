//! The files of a chat, below `chats/<id>/` in the data folder:
//!
//! | file | content |
//! | --- | --- |
//! | `lock` | locked while the host runs |
//! | `state.json` | how the chat was started, and its state; replaced on every change |
//! | `sock` | where clients connect, unless the path is too long for a socket |
//!
//! `chats/sessions/<digest>` is locked by the host of a session, so that a session has one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use unspool_model::id::digest;

use crate::chat::ChatSpec;
use crate::protocol::ChatState;

/// The most bytes of a socket's path that all systems take.
const MAX_SOCKET_PATH: usize = 100;

/// Where hosts keep their files. Handed in: this crate does not know the data folder.
#[derive(Clone, Debug)]
pub struct ChatFolders {
    /// `chats/`
    pub chats: PathBuf,
    /// `streams/`: where the recorder finds captures.
    pub captures: PathBuf,
    /// `processes/`: which process runs which session.
    pub processes: PathBuf,
}

/// The files of one chat.
#[derive(Clone, Debug)]
pub struct ChatFolder {
    pub id: String,
    path: PathBuf,
}

/// What `state.json` has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredChat {
    pub spec: ChatSpec,
    pub state: ChatState,
    pub host: Option<u32>,
    pub agent: Option<StoredProcess>,
}

/// A process that may have been left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredProcess {
    /// The id of the process and of its group.
    pub group: u32,
    /// When it started, as the system counts: another process may get the same id.
    pub started: Option<u64>,
}

impl ChatFolders {
    /// Makes the folder of a new chat.
    pub fn create(&self) -> io::Result<ChatFolder> {
        create_private(&self.chats)?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut nth = 0u32;
        loop {
            let seed = format!("{time} {} {nth}", std::process::id());
            let id = format!("{:08x}", digest(seed.as_bytes()) >> 32);
            let path = self.chats.join(&id);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(ChatFolder { id, path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => nth += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The folder of a chat that exists.
    pub fn find(&self, id: &str) -> Option<ChatFolder> {
        let plain = !id.is_empty() && id.chars().all(|letter| letter.is_ascii_hexdigit());
        let path = self.chats.join(id);
        (plain && path.is_dir()).then(|| ChatFolder { id: id.to_owned(), path })
    }

    /// All chats that have files.
    pub fn all(&self) -> Vec<ChatFolder> {
        let entries = self.chats.read_dir().into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut found: Vec<ChatFolder> = names.filter_map(|name| self.find(&name)).collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found
    }

    /// Takes the lock of a session. None if another host has it.
    pub fn lock_session(&self, agent: &str, session: &str) -> io::Result<Option<File>> {
        let folder = self.chats.join("sessions");
        create_private(&folder)?;
        let name = format!("{:016x}", digest(format!("{agent}\n{session}").as_bytes()));
        try_lock(&folder.join(name))
    }
}

impl ChatFolder {
    /// Locks the chat for this process. None if its host runs.
    pub fn lock(&self) -> io::Result<Option<File>> {
        try_lock(&self.path.join("lock"))
    }

    /// True while the host runs.
    pub fn is_live(&self) -> bool {
        let lock = File::open(self.path.join("lock"));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    pub fn read(&self) -> Option<StoredChat> {
        serde_json::from_slice(&fs::read(self.path.join("state.json")).ok()?).ok()
    }

    /// What differs with each state that is written: a look at it costs less than reading it.
    pub fn version(&self) -> Option<(u64, SystemTime)> {
        let state = fs::metadata(self.path.join("state.json")).ok()?;
        Some((state.ino(), state.modified().ok()?))
    }

    /// Replaces the state. A reader sees the old one or the new one.
    pub fn write(&self, chat: &StoredChat) -> io::Result<()> {
        let new = self.path.join("state.json.new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(&serde_json::to_vec(chat)?)?;
        fs::rename(new, self.path.join("state.json"))
    }

    /// Where clients connect. A long path goes to the folder of the user's sockets.
    pub fn socket(&self) -> PathBuf {
        let path = self.path.join("sock");
        if path.as_os_str().len() <= MAX_SOCKET_PATH {
            return path;
        }
        let named = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
        let user = rustix::process::getuid().as_raw();
        let folder = match named {
            Some(folder) => PathBuf::from(folder).join("unspool"),
            None => std::env::temp_dir().join(format!("unspool-{user}")),
        };
        // The data folder is part of the name: two of them may have a chat of the same id.
        let chat = digest(self.path.as_os_str().as_encoded_bytes());
        folder.join(format!("{chat:016x}.sock"))
    }

    pub fn remove(&self) -> io::Result<()> {
        let _ = fs::remove_file(self.socket());
        fs::remove_dir_all(&self.path)
    }
}

/// Creates a folder that only this user can read.
pub fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
