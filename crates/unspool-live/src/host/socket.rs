//! The socket of a host: clients of the same user connect, except the agent and what it started.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

use super::folder::{ChatFolder, StoredProcess, create_private};
use super::process::is_below;
use super::{CLIENT_QUEUE, Connection};

/// A longer message is no command.
const MAX_COMMAND: usize = 8 * 1024 * 1024;
/// The longest message of a host: its state, with a full queue and many questions.
pub const MAX_STATE: usize = 64 * 1024 * 1024;

/// Listens for clients and hands their connections to the host.
pub fn listen(folder: &ChatFolder) -> io::Result<mpsc::Receiver<Connection>> {
    let agent_folder = folder.clone();
    listen_except(folder, move || agent_folder.read().and_then(|stored| stored.agent))
}

/// Listens for clients that this agent did not start. It is none of ours: its files must not name
/// it, because what they name is ended with the chat.
pub fn listen_beside(
    folder: &ChatFolder,
    agent: Option<StoredProcess>,
) -> io::Result<mpsc::Receiver<Connection>> {
    listen_except(folder, move || agent)
}

fn listen_except(
    folder: &ChatFolder,
    agent: impl Fn() -> Option<StoredProcess> + Send + 'static,
) -> io::Result<mpsc::Receiver<Connection>> {
    let path = folder.socket();
    if let Some(parent) = path.parent() {
        create_private(parent)?;
        check_private(parent)?;
    }
    // A leftover of a host that was killed: the lock says that none runs.
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    let (sender, connections) = mpsc::channel(8);
    let chat = folder.id.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if is_welcome(&stream, agent(), &chat) && sender.send(connect(stream)).await.is_err() {
                return;
            }
        }
    });
    Ok(connections)
}

/// Refuses a folder that another user could write: it may exist already, in a temporary folder.
fn check_private(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let is_own = found.uid() == rustix::process::getuid().as_raw();
    if !found.is_dir() || !is_own || found.mode() & 0o022 != 0 {
        let why = format!("{} is not a folder that only you can write", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// True for a process of this user that the agent did not start.
fn is_welcome(stream: &UnixStream, agent: Option<StoredProcess>, chat: &str) -> bool {
    let Ok(peer) = stream.peer_cred() else { return false };
    if peer.uid() != rustix::process::getuid().as_raw() {
        return false;
    }
    let process = peer.pid().and_then(|id| u32::try_from(id).ok());
    !agent.zip(process).is_some_and(|(agent, process)| is_below(process, agent, chat))
}

fn connect(stream: UnixStream) -> Connection {
    let (read, write) = stream.into_split();
    let (to_client, messages) = mpsc::channel(CLIENT_QUEUE);
    let (commands, from_client) = mpsc::channel(CLIENT_QUEUE);
    tokio::spawn(read_lines(read, commands, MAX_COMMAND));
    tokio::spawn(write_lines(write, messages));
    Connection { to_client, from_client }
}

/// Reads messages until the other side closes, or sends something else.
pub async fn read_lines<T: DeserializeOwned>(
    read: OwnedReadHalf,
    to: mpsc::Sender<T>,
    max_bytes: usize,
) {
    let mut reader = BufReader::new(read);
    let mut line = Vec::new();
    loop {
        line.clear();
        loop {
            let Ok(buffer) = reader.fill_buf().await else { return };
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            if piece.is_empty() && end.is_none() || line.len() + piece.len() > max_bytes {
                return;
            }
            line.extend_from_slice(piece);
            let used = piece.len() + usize::from(end.is_some());
            reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        let Ok(message) = serde_json::from_slice(&line) else { return };
        if to.send(message).await.is_err() {
            return;
        }
    }
}

pub async fn write_lines<T: Serialize>(mut write: OwnedWriteHalf, mut from: mpsc::Receiver<T>) {
    while let Some(message) = from.recv().await {
        let Ok(mut line) = serde_json::to_vec(&message) else { return };
        line.push(b'\n');
        if write.write_all(&line).await.is_err() {
            return;
        }
    }
}
