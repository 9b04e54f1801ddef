//! The change socket: how other processes follow the one that records. Whoever connects is told, as
//! lines of JSON, what is written from then on; what was written before is in the archive. So:
//! connect, wait for the greeting, load, and pass over what the loaded seq covers.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unspool_store::contract::Store;
use unspool_store::recorder::{Published, Recorder};

use crate::lock::DataFolder;

/// A follower that takes nothing for so long is let go: it can connect and load again.
const PATIENCE: Duration = Duration::from_secs(5);

/// One line on the socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// From now on nothing that is written is missed.
    Hello {
        version: u32,
    },
    Written(Published),
    /// The follower was too slow, and something was left out: load again.
    Missed,
}

/// Tells followers what a recorder writes, while it lives.
pub struct Publisher {
    path: PathBuf,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Opens the socket. The caller holds the recorder lock, so a socket that is there already
    /// was left by a process that is gone.
    pub fn start<S: Store>(folder: &DataFolder, recorder: Recorder<S>) -> io::Result<Publisher> {
        let path = folder.socket();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path)?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        let accepting = thread::Builder::new().name("changes".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                // Subscribed before the greeting is sent: nothing can come between.
                let written = recorder.subscribe();
                let _ = thread::Builder::new().name("follower".to_owned()).spawn(move || {
                    // A follower that is gone is no error of ours.
                    let _ = tell(stream, written);
                });
            }
        })?;
        Ok(Publisher { path, over, accepting: Some(accepting) })
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for followers.
        let _ = UnixStream::connect(&self.path);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

fn tell(
    mut stream: UnixStream,
    mut written: tokio::sync::broadcast::Receiver<Published>,
) -> io::Result<()> {
    use tokio::sync::broadcast::error::RecvError;
    stream.set_write_timeout(Some(PATIENCE))?;
    send(&mut stream, &Message::Hello { version: 1 })?;
    loop {
        match written.blocking_recv() {
            Ok(published) => send(&mut stream, &Message::Written(published))?,
            Err(RecvError::Lagged(_)) => send(&mut stream, &Message::Missed)?,
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

fn send(stream: &mut UnixStream, message: &Message) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Follows the process that records.
pub struct Follower {
    lines: BufReader<UnixStream>,
}

impl Follower {
    /// Connects, and waits for the greeting. None when nobody records.
    pub fn connect(folder: &DataFolder) -> io::Result<Option<Follower>> {
        Follower::connect_to(&folder.socket())
    }

    fn connect_to(path: &Path) -> io::Result<Option<Follower>> {
        let stream = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut follower = Follower { lines: BufReader::new(stream) };
        match follower.next_message()? {
            Some(Message::Hello { .. }) => Ok(Some(follower)),
            Some(Message::Written(_) | Message::Missed) | None => Ok(None),
        }
    }

    /// The next message; None when the recorder is gone.
    pub fn next_message(&mut self) -> io::Result<Option<Message>> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => Ok(None),
            Ok(_) if !line.ends_with('\n') => Ok(None),
            Ok(_) => Ok(Some(serde_json::from_str(&line)?)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }
}
