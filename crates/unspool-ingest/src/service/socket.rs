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
use unspool_model::change::ChangeSet;
use unspool_query::live::{Subscription, Update, Updates};
use unspool_query::request::Request;
use unspool_store::database::FileIdentity;
use unspool_store::store::Store;

use crate::lock::DataFolder;
use crate::recorder::Recorder;
use crate::service::request::RequestOutcome;
use crate::service::request_queue::{QueuedRequest, RequestQueue};

/// Read and write timeout. A client that does not send its command or does not read is
/// disconnected; it can connect and load again.
const IO_TIMEOUT: Duration = Duration::from_secs(5);
/// Raised with every incompatible change of the protocol.
const PROTOCOL_VERSION: u32 = 4;

/// A line from the recorder.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SocketMessage {
    /// The greeting. Every later write is reported.
    Hello(Hello),
    Update(Update),
    Reply(SocketReply),
}

/// Describes the recorder process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub version: u32,
    pub process: u32,
    /// True for a recorder that runs until it is stopped and accepts requests.
    pub long_lived: bool,
}

impl Hello {
    /// Why this process cannot talk to that recorder, if it cannot.
    fn incompatible(&self) -> Option<String> {
        let process = self.process;
        (self.version != PROTOCOL_VERSION).then(|| {
            format!(
                "another version of unspool is recording (process {process}); stop it and try again"
            )
        })
    }
}

/// The first line of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SocketCommand {
    Follow,
    Execute(Request),
}

/// The reply to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketReply {
    Completed(RequestOutcome),
    Failed(String),
    /// This recorder accepts no requests and will end soon.
    Unavailable,
}

/// The request queue, once the recorder accepts requests.
type SharedQueue = Arc<Mutex<Option<RequestQueue>>>;

/// Serves the socket until it is dropped.
pub struct Publisher {
    path: PathBuf,
    /// Of the socket, which is a file.
    identity: FileIdentity,
    over: Arc<AtomicBool>,
    request_queue: SharedQueue,
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
        // It takes write requests. Between the two calls the folder protects it.
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let (over, request_queue) = (Arc::new(AtomicBool::new(false)), SharedQueue::default());
        let (ended, open) = (over.clone(), request_queue.clone());
        let accepting = thread::Builder::new().name("changes".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                // Subscribe before the greeting, so that no write falls in between.
                let subscription = Subscription::from(recorder.subscribe());
                let open = open.clone();
                let _ = thread::Builder::new().name("follower".to_owned()).spawn(move || {
                    // A disconnected client is not an error.
                    let _ = serve(stream, subscription, &open);
                });
            }
        })?;
        let identity = FileIdentity::of(&path);
        Ok(Publisher { path, identity, over, request_queue, accepting: Some(accepting) })
    }

    /// Starts accepting requests.
    pub fn open(&self, request_queue: RequestQueue) {
        *self.request_queue.lock().unwrap_or_else(PoisonError::into_inner) = Some(request_queue);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // If the data folder was deleted, the socket is gone or belongs to another process. Nobody
        // can wake the accepting thread then; it ends with the process.
        if self.identity.check().is_err() {
            return;
        }
        // Wakes the accepting thread.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            let _ = accepting.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

fn serve(
    mut stream: UnixStream,
    subscription: Subscription<ChangeSet>,
    open: &SharedQueue,
) -> io::Result<()> {
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    let request_queue = open.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (process, long_lived) = (std::process::id(), request_queue.is_some());
    send(
        &mut stream,
        &SocketMessage::Hello(Hello { version: PROTOCOL_VERSION, process, long_lived }),
    )?;
    match receive(&mut BufReader::new(&stream))? {
        Some(SocketCommand::Follow) => publish(&mut stream, subscription),
        Some(SocketCommand::Execute(request)) => {
            // This client does not follow.
            drop(subscription);
            send(&mut stream, &SocketMessage::Reply(execute(request_queue, request)))
        }
        None => Ok(()),
    }
}

fn execute(request_queue: Option<RequestQueue>, request: Request) -> SocketReply {
    let Some(request_queue) = request_queue else { return SocketReply::Unavailable };
    let (reply, replied) = channel();
    request_queue.submit(QueuedRequest { request, reply });
    match replied.recv() {
        Ok(Ok(done)) => SocketReply::Completed(done),
        Ok(Err(error)) => SocketReply::Failed(error.to_string()),
        // The watch loop has ended. The client retries; repeating a request is harmless.
        Err(_) => SocketReply::Unavailable,
    }
}

fn publish(stream: &mut UnixStream, mut subscription: Subscription<ChangeSet>) -> io::Result<()> {
    while let Some(update) = subscription.next_blocking() {
        send(stream, &SocketMessage::Update(update))?;
    }
    Ok(())
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
struct Connection {
    hello: Hello,
    lines: BufReader<UnixStream>,
}

/// Connects and waits for the greeting. None if no process records.
fn connect(path: &Path) -> io::Result<Option<Connection>> {
    use io::ErrorKind::{ConnectionRefused, InvalidData, NotFound, UnexpectedEof};
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), NotFound | ConnectionRefused) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut lines = BufReader::new(stream);
    let greeting = receive(&mut lines).map_err(|error| {
        if matches!(error.kind(), InvalidData | UnexpectedEof) {
            io::Error::other("another version of unspool is recording; stop it and try again")
        } else {
            error
        }
    })?;
    match greeting {
        Some(SocketMessage::Hello(hello)) => Ok(Some(Connection { hello, lines })),
        Some(SocketMessage::Update(_) | SocketMessage::Reply(_)) | None => Ok(None),
    }
}

/// The greeting of the running recorder. None if no process records.
pub fn recorder_hello(folder: &DataFolder) -> io::Result<Option<Hello>> {
    Ok(connect(&folder.socket())?.map(|connection| connection.hello))
}

/// Forwards a request to the recorder process and waits for the reply.
pub fn forward_request(folder: &DataFolder, request: &Request) -> io::Result<SocketReply> {
    let Some(Connection { hello, mut lines }) = connect(&folder.socket())? else {
        return Ok(SocketReply::Unavailable);
    };
    if let Some(reason) = hello.incompatible() {
        return Ok(SocketReply::Failed(reason));
    }
    if !hello.long_lived {
        return Ok(SocketReply::Unavailable);
    }
    // The recorder may have ended since the greeting.
    if send(lines.get_mut(), &SocketCommand::Execute(request.clone())).is_err() {
        return Ok(SocketReply::Unavailable);
    }
    match receive(&mut lines)? {
        Some(SocketMessage::Reply(reply)) => Ok(reply),
        Some(SocketMessage::Hello(_) | SocketMessage::Update(_)) | None => {
            Ok(SocketReply::Unavailable)
        }
    }
}

/// A connection that follows the recorder process.
pub struct Follower {
    lines: BufReader<UnixStream>,
}

impl Follower {
    /// Connects and waits for the greeting. None if no process records.
    pub fn connect(folder: &DataFolder) -> io::Result<Option<Follower>> {
        let Some(Connection { hello, mut lines }) = connect(&folder.socket())? else {
            return Ok(None);
        };
        if let Some(reason) = hello.incompatible() {
            return Err(io::Error::other(reason));
        }
        send(lines.get_mut(), &SocketCommand::Follow)?;
        Ok(Some(Follower { lines }))
    }

    /// Publishes every update to this process's subscribers until the recorder ends.
    pub fn relay(mut self, updates: &Updates) -> io::Result<()> {
        while let Some(message) = receive(&mut self.lines)? {
            match message {
                SocketMessage::Update(update) => updates.publish(update),
                SocketMessage::Hello(_) | SocketMessage::Reply(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use super::connect;

    #[test]
    fn a_greeting_of_another_version_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let recorder = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"{\"hello\":{\"version\":1,\"process\":7}}\n").unwrap();
        });
        let error = connect(&path).err().map(|error| error.to_string());
        recorder.join().unwrap();
        let expected = "another version of unspool is recording; stop it and try again";
        assert_eq!(error.as_deref(), Some(expected));
    }
}
