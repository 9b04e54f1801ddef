//! The change socket: other processes follow the recorder through it and forward write requests.
//! The recorder greets each client, which answers with one command. A follower then receives every
//! write as a line of JSON; earlier writes are in the archive. To miss nothing, it connects, waits
//! for the greeting, loads the session, and skips changes that the loaded seq covers. A request
//! gets one reply.

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
use unspool_store::recorder::{ChangeSet, Recorder};
use unspool_store::store::Store;

use crate::desk::{Asked, Desk};
use crate::lock::DataFolder;
use crate::request::{Done, Request};

/// Read and write timeout. A client that does not send its command or does not read is
/// disconnected; it can connect and load again.
const PATIENCE: Duration = Duration::from_secs(5);
/// Raised with every incompatible change of the protocol.
const VERSION: u32 = 2;

/// A line from the recorder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// The greeting. Every later write is reported.
    Hello(Hello),
    Written(ChangeSet),
    /// The follower lagged and missed changes: it must reload.
    Missed,
    Answered(Answer),
}

/// Describes the recorder process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub version: u32,
    pub process: u32,
    /// True for a recorder that runs until it is stopped and accepts requests.
    pub lasting: bool,
}

/// The first line of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Wish {
    Follow,
    Do(Request),
}

/// The reply to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    Done(Done),
    Failed(String),
    /// This recorder accepts no requests and will end soon.
    NotNow,
}

/// The request queue, once the recorder accepts requests.
type Open = Arc<Mutex<Option<Desk>>>;

/// Serves the socket until it is dropped.
pub struct Publisher {
    path: PathBuf,
    over: Arc<AtomicBool>,
    desk: Open,
    accepting: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Opens the socket. The caller holds the recorder lock, so an existing socket file is stale.
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
                // Subscribe before the greeting, so that no write falls in between.
                let written = recorder.subscribe();
                let open = open.clone();
                let _ = thread::Builder::new().name("follower".to_owned()).spawn(move || {
                    // A disconnected client is not an error.
                    let _ = serve(stream, written, &open);
                });
            }
        })?;
        Ok(Publisher { path, over, desk, accepting: Some(accepting) })
    }

    /// Starts accepting requests.
    pub fn open(&self, desk: Desk) {
        *self.desk.lock().unwrap_or_else(PoisonError::into_inner) = Some(desk);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let _ = UnixStream::connect(&self.path);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

fn serve(
    mut stream: UnixStream,
    written: broadcast::Receiver<ChangeSet>,
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
            // This client does not follow.
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
        // The watch loop has ended. The client retries; repeating a request is harmless.
        Err(_) => Answer::NotNow,
    }
}

fn tell(stream: &mut UnixStream, mut written: broadcast::Receiver<ChangeSet>) -> io::Result<()> {
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

/// Reads the next line. None at the end of the connection.
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

/// A connection to the recorder after its greeting.
struct Greeted {
    hello: Hello,
    lines: BufReader<UnixStream>,
}

/// Connects and waits for the greeting. None if no process records.
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

/// The greeting of the running recorder. None if no process records.
pub fn who(folder: &DataFolder) -> io::Result<Option<Hello>> {
    Ok(connect(&folder.socket())?.map(|greeted| greeted.hello))
}

/// Forwards a request to the recorder process and waits for the reply.
pub fn hand_over(folder: &DataFolder, request: &Request) -> io::Result<Answer> {
    let Some(Greeted { hello, mut lines }) = connect(&folder.socket())? else {
        return Ok(Answer::NotNow);
    };
    if hello.version != VERSION {
        let process = hello.process;
        return Ok(Answer::Failed(format!(
            "another version of unspool is recording (process {process}); stop it and try again"
        )));
    }
    if !hello.lasting {
        return Ok(Answer::NotNow);
    }
    // The recorder may have ended since the greeting.
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

/// A subscription to the recorder process.
pub struct Follower {
    lines: BufReader<UnixStream>,
}

impl Follower {
    /// Connects and waits for the greeting. None if no process records.
    pub fn connect(folder: &DataFolder) -> io::Result<Option<Follower>> {
        let Some(Greeted { mut lines, .. }) = connect(&folder.socket())? else { return Ok(None) };
        send(lines.get_mut(), &Wish::Follow)?;
        Ok(Some(Follower { lines }))
    }

    /// The next message. None when the recorder has ended.
    pub fn next_message(&mut self) -> io::Result<Option<Message>> {
        receive(&mut self.lines)
    }
}
