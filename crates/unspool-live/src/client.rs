//! Finds, starts and attaches to hosts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::json;
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use unspool_model::id::SessionId;

use crate::chat::ChatSpec;
use crate::host::CLIENT_QUEUE;
use crate::host::folder::{ChatFolder, ChatFolders, StoredChat};
use crate::host::process::kill_left_processes;
use crate::host::socket::{MAX_STATE, read_lines, write_lines};
use crate::protocol::{ChatState, ClientMessage, HostMessage, Phase, SOCKET_VERSION};

/// How long a host may take until clients can connect.
const START_TIME: Duration = Duration::from_secs(10);
const HELLO_TIME: Duration = Duration::from_secs(5);

#[derive(Debug, Error)]
pub enum ClientError {
    #[error("there is no chat {0}; `unspool chat --list` shows those that run")]
    Unknown(String),
    #[error("the chat did not start: {0}")]
    NotStarted(String),
    #[error(
        "another version of unspool runs this chat (process {process}): it can be read here, and only \
         that version can answer the agent or end it"
    )]
    Version { process: u32 },
    #[error("the chat does not answer; `unspool chat --list` shows whether it runs")]
    Silent,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A chat as lists show it.
#[derive(Clone, Debug, Serialize)]
pub struct ListedChat {
    pub id: String,
    pub live: bool,
    pub process: Option<u32>,
    pub state: ChatState,
}

/// All chats that have files: those that run, and those with a queue or a draft left.
pub fn list(folders: &ChatFolders) -> Vec<ListedChat> {
    let entry = |folder: ChatFolder| {
        let StoredChat { state, host, .. } = folder.read()?;
        let live = folder.is_live();
        // A hook that was killed: its question is the agent's alone again.
        if state.answers_only && !live {
            return None;
        }
        Some(ListedChat { id: folder.id, live, process: host.filter(|_| live), state })
    };
    folders.all().into_iter().filter_map(entry).collect()
}

/// The chats of a session that have files. Hooks that wait for an answer are none.
pub fn chats_of(folders: &ChatFolders, session: SessionId) -> Vec<(ChatFolder, StoredChat)> {
    let is_it = |stored: &StoredChat| {
        let own = stored.state.session.as_deref();
        !stored.state.answers_only
            && own.is_some_and(|own| SessionId::of(&stored.state.agent, own) == session)
    };
    let all = folders.all().into_iter();
    let stored = all.filter_map(|folder| {
        let stored = folder.read().filter(is_it)?;
        Some((folder, stored))
    });
    stored.collect()
}

/// Cleans up after hosts that were killed: ends what is left of their agents, and notes the end in
/// their captures. Queue and drafts stay for whoever goes on.
pub fn recover(folders: &ChatFolders) {
    for folder in folders.all() {
        // A chat that is about to start is not locked yet, and has no agent.
        let Ok(Some(_lock)) = folder.lock() else { continue };
        let Some(mut stored) = folder.read() else { continue };
        if stored.state.answers_only {
            let _ = folder.remove();
            continue;
        }
        let Some(agent) = stored.agent.take() else { continue };
        kill_left_processes(agent, &folder.id);
        if stored.state.phase != Phase::Ended {
            if let Some(capture) = &stored.state.capture {
                note_loss(capture, stored.state.session.as_deref());
            }
            stored.state.phase = Phase::Ended;
            stored.state.reason = Some("unspool's process for this chat was killed".to_owned());
            stored.state.questions.clear();
        }
        let is_empty = stored.state.queue.is_empty() && stored.state.draft.is_empty();
        // Tried again by whoever comes next.
        let _ = if is_empty { folder.remove() } else { folder.write(&stored) };
    }
}

/// Appends the last word of a capture, after a line that may be cut off.
fn note_loss(capture: &Path, session: Option<&str>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or_default();
    let line = json!({"t": now, "s": session, "dir": "us", "msg": {"what": "lost"}});
    let whole = ends_with_line(capture).unwrap_or(true);
    let text = format!("{}{line}\n", if whole { "" } else { "\n" });
    let file = OpenOptions::new().append(true).open(capture);
    let _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
}

fn ends_with_line(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Starts a host in a process of its own: `program host <chat>`, in a session of its own.
pub async fn start_detached(
    folders: &ChatFolders,
    program: PathBuf,
    arguments: &[String],
    spec: ChatSpec,
    kept: ChatState,
) -> Result<ChatFolder, ClientError> {
    let folder = folders.create()?;
    folder.write(&StoredChat { spec, state: kept, ..StoredChat::default() })?;
    let mut command = Command::new(program);
    command.args(arguments).arg("host").arg(&folder.id);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let deadline = Instant::now() + START_TIME;
    while !folder.socket().exists() {
        if let Some(status) = child.try_wait()? {
            let _ = folder.remove();
            return Err(ClientError::NotStarted(format!("its process ended ({status})")));
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            let _ = folder.remove();
            return Err(ClientError::Silent);
        }
        sleep(Duration::from_millis(10)).await;
    }
    // Somebody has to wait for it: it would stay in the list of processes when it has ended.
    std::thread::spawn(move || child.wait());
    Ok(folder)
}

/// A connection to a host.
pub struct Attached {
    pub state: ChatState,
    pub process: u32,
    pub commands: mpsc::Sender<ClientMessage>,
    pub messages: mpsc::Receiver<HostMessage>,
}

/// Connects to the host of a chat and gets its state.
pub async fn attach(folder: &ChatFolder) -> Result<Attached, ClientError> {
    let stream = UnixStream::connect(folder.socket())
        .await
        .map_err(|_| ClientError::Unknown(folder.id.clone()))?;
    // Somebody else may have put a socket there.
    if stream.peer_cred()?.uid() != rustix::process::getuid().as_raw() {
        return Err(ClientError::Unknown(folder.id.clone()));
    }
    let (read, write) = stream.into_split();
    let (to, mut messages) = mpsc::channel(CLIENT_QUEUE);
    let (commands, from) = mpsc::channel(CLIENT_QUEUE);
    tokio::spawn(read_lines(read, to, MAX_STATE));
    tokio::spawn(write_lines(write, from));
    let hello = timeout(HELLO_TIME, messages.recv()).await.ok().flatten();
    match hello {
        Some(HostMessage::Hello { version, process, .. }) if version != SOCKET_VERSION => {
            Err(ClientError::Version { process })
        }
        Some(HostMessage::Hello { process, state, .. }) => {
            let state = ChatState::of_fields(state).ok_or(ClientError::Version { process })?;
            Ok(Attached { state, process, commands, messages })
        }
        Some(HostMessage::Changed(_) | HostMessage::Done { .. }) | None => Err(ClientError::Silent),
    }
}
