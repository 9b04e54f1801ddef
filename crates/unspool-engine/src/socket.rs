//! The change socket: how other processes follow the one that records, and ask it to write. Whoever
//! connects is greeted and says what it wants. Who wants to follow is told, as lines of JSON, what
//! is written from then on; what was written before is in the archive. So: connect, wait for the
//! greeting, load, and pass over what the loaded seq covers. Who has a request gets one answer.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use unspool_store::contract::Store;
use unspool_store::recorder::{Published, Recorder};

use crate::desk::{Asked, Desk};
use crate::lock::DataFolder;
use crate::request::{Done, Request};

/// A follower that takes nothing for so long is let go: it can connect and load again. So is one
/// that does not say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);
/// Counted up when the two sides would no longer understand each other.
const VERSION: u32 = 2;

/// One line on the socket, from the one that records.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// From now on nothing that is written is missed.
    Hello(Hello),
    Written(Published),
    /// The follower was too slow, and something was left out: load again.
    Missed,
    Answered(Answer),
}

/// Who records.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub version: u32,
    pub process: u32,
    /// Whether it goes on until somebody ends it, and takes requests.
    pub lasting: bool,
}

/// The first line of whoever connects.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Wish {
    Follow,
    Do(Request),
}

/// What came of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Done(Done),
    Failed(String),
    /// It takes no requests, and is over soon.
    NotNow,
}

/// Where requests are done, once there is such a place.
type Open = Arc<Mutex<Option<Desk>>>;

/// Tells followers what a recorder writes, while it lives.
pub struct Publisher {
    path: PathBuf,
    over: Arc<AtomicBool>,
    desk: Open,
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
        let (over, desk) = (Arc::new(AtomicBool::new(false)), Open::default());
        let (ended, open) = (over.clone(), desk.clone());
        let accepting = thread::Builder::new().name("changes".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                // Subscribed before the greeting is sent: nothing can come between.
                let written = recorder.subscribe();
                let open = open.clone();
                let _ = thread::Builder::new().name("follower".to_owned()).spawn(move || {
                    // A follower that is gone is no error of ours.
                    let _ = serve(stream, written, &open);
                });
            }
        })?;
        Ok(Publisher { path, over, desk, accepting: Some(accepting) })
    }

    /// From now on requests are taken.
    pub fn open(&self, desk: Desk) {
        *self.desk.lock().unwrap_or_else(PoisonError::into_inner) = Some(desk);
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

fn serve(
    mut stream: UnixStream,
    written: broadcast::Receiver<Published>,
    open: &Open,
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let desk = open.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (process, lasting) = (std::process::id(), desk.is_some());
    send(&mut stream, &Message::Hello(Hello { version: VERSION, process, lasting }))?;
    match receive(&mut BufReader::new(&stream))? {
        Some(Wish::Follow) => tell(&mut stream, written),
        Some(Wish::Do(request)) => {
            // Nobody here listens to what is written.
            drop(written);
            send(&mut stream, &Message::Answered(ask(desk, request)))
        }
        None => Ok(()),
    }
}

fn ask(desk: Option<Desk>, request: Request) -> Answer {
    let Some(desk) = desk else { return Answer::NotNow };
    let (answer, answered) = channel();
    desk.hand_in(Asked { request, answer });
    match answered.recv() {
        Ok(Ok(done)) => Answer::Done(done),
        Ok(Err(error)) => Answer::Failed(error.to_string()),
        // Whoever did it has ended. What was done is safe, and doing it again does no harm.
        Err(_) => Answer::NotNow,
    }
}

fn tell(stream: &mut UnixStream, mut written: broadcast::Receiver<Published>) -> io::Result<()> {
    use broadcast::error::RecvError;
    loop {
        match written.blocking_recv() {
            Ok(published) => send(stream, &Message::Written(published))?,
            Err(RecvError::Lagged(_)) => send(stream, &Message::Missed)?,
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

fn send(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The next line; None when the other side is gone.
fn receive<T: DeserializeOwned>(lines: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    match lines.read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) if !line.ends_with('\n') => Ok(None),
        Ok(_) => Ok(Some(serde_json::from_str(&line)?)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        Err(error) => Err(error),
    }
}

/// A connection to the one that records, which said who it is.
struct Greeted {
    hello: Hello,
    lines: BufReader<UnixStream>,
}

/// Connects, and waits for the greeting. None when nobody records.
fn connect(path: &Path) -> io::Result<Option<Greeted>> {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), NotFound | ConnectionRefused) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut lines = BufReader::new(stream);
    match receive(&mut lines)? {
        Some(Message::Hello(hello)) => Ok(Some(Greeted { hello, lines })),
        Some(Message::Written(_) | Message::Missed | Message::Answered(_)) | None => Ok(None),
    }
}

/// Who records; None when nobody does, or is about to end.
pub fn who(folder: &DataFolder) -> io::Result<Option<Hello>> {
    Ok(connect(&folder.socket())?.map(|greeted| greeted.hello))
}

/// Hands a request to the process that records, and waits until it is done.
pub fn hand_over(folder: &DataFolder, request: &Request) -> io::Result<Answer> {
    let Some(Greeted { hello, mut lines }) = connect(&folder.socket())? else {
        return Ok(Answer::NotNow);
    };
    if hello.version != VERSION {
        let process = hello.process;
        return Ok(Answer::Failed(format!(
            "another version of unspool records (process {process}); end it and try again"
        )));
    }
    if !hello.lasting {
        return Ok(Answer::NotNow);
    }
    // It may have ended since; then nothing comes back.
    if send(lines.get_mut(), &Wish::Do(request.clone())).is_err() {
        return Ok(Answer::NotNow);
    }
    match receive(&mut lines)? {
        Some(Message::Answered(answer)) => Ok(answer),
        Some(Message::Hello(_) | Message::Written(_) | Message::Missed) | None => {
            Ok(Answer::NotNow)
        }
    }
}

/// Follows the process that records.
pub struct Follower {
    lines: BufReader<UnixStream>,
}

impl Follower {
    /// Connects, and waits for the greeting. None when nobody records.
    pub fn connect(folder: &DataFolder) -> io::Result<Option<Follower>> {
        let Some(Greeted { mut lines, .. }) = connect(&folder.socket())? else { return Ok(None) };
        send(lines.get_mut(), &Wish::Follow)?;
        Ok(Some(Follower { lines }))
    }

    /// The next message; None when the recorder is gone.
    pub fn next_message(&mut self) -> io::Result<Option<Message>> {
        receive(&mut self.lines)
    }
}
