//! Attaches to a running OpenCode server. Its server-sent events (`GET /event`) are appended to a
//! capture file in the data folder, and the recorder reads that file like any other source, in
//! addition to OpenCode's database. So there is one way in, a capture survives a crash, and any
//! process may record.
//!
//! The server never resends events. Each connection therefore gets its own capture file: events
//! missed between two connections would otherwise look like a gap inside one text. The database has
//! all of it in the end.

mod context;
mod requests;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;
use unspool_store::private_file;
use ureq::config::ConfigBuilder;
use ureq::http::{StatusCode, Uri};
use ureq::typestate::AgentScope;

use crate::lock::DataFolder;
use context::{AttachContext, CapturedEvent, Unknown, as_events};

/// Timeout for connecting, and for fetching one message.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server sends at least a heartbeat every ten seconds. The first event may take longer: 1.18 was
/// seen to be silent for 100 seconds at its first start.
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// Backoff between connection attempts: first delay and maximum.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(15);
/// A longer line is not an event.
const MAX_LINE_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Debug, Error)]
pub enum AttachError {
    #[error(
        "invalid OpenCode server address `{0}`: expected something like http://127.0.0.1:4096 (only \
         http is supported)"
    )]
    Address(String),
    #[error(
        "cannot connect to {url} ({error}); start a server there with `opencode serve --port N`, \
         or give the address of a running one"
    )]
    Silent { url: String, error: String },
    #[error("{url} does not send events ({what}); is it an OpenCode server?")]
    NotEvents { url: String, what: String },
    #[error("cannot write {path}: {error}")]
    Write { path: PathBuf, error: io::Error },
}

impl DataFolder {
    /// The folder of stream captures.
    pub fn streams(&self) -> PathBuf {
        self.path().join("streams")
    }
}

/// How long to keep reconnecting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetryLimit {
    /// Until the server answers again.
    Forever,
    /// For this long after the connection was lost; not at all if it was never up.
    For(Duration),
}

/// Connection events to report to the user.
#[derive(Debug)]
pub enum AttachEvent<'a> {
    Attached,
    /// An event of the server, as it came.
    Received(&'a [u8]),
    /// The connection ended; reconnecting.
    Disconnected,
    /// There is no connection; trying again.
    Lost(&'a AttachError),
}

/// An OpenCode server, by the URL of its event stream.
#[derive(Clone, Debug)]
pub struct OpencodeServer {
    url: String,
}

/// The result of a capture.
#[derive(Clone, Debug, Default)]
pub struct CaptureResult {
    pub events: u64,
    /// The capture files, one for each connection that sent events.
    pub paths: Vec<PathBuf>,
}

impl OpencodeServer {
    /// Parses a server address, with or without the path of the event stream.
    pub fn at(address: &str) -> Result<OpencodeServer, AttachError> {
        let wrong = || AttachError::Address(address.to_owned());
        let uri: Uri = address.parse().map_err(|_| wrong())?;
        if uri.scheme_str() != Some("http") || uri.host().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        let bare = address.trim_end_matches('/');
        let url = match uri.path() {
            "" | "/" if uri.query().is_none() => format!("{bare}/event"),
            _ => address.to_owned(),
        };
        Ok(OpencodeServer { url })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Captures events until the server is unreachable for longer than the retry limit.
    pub fn capture(
        &self,
        folder: &DataFolder,
        retry_limit: RetryLimit,
        mut report: impl FnMut(AttachEvent<'_>),
    ) -> Result<CaptureResult, AttachError> {
        let (mut captured, mut context) = (CaptureResult::default(), AttachContext::default());
        let (mut attached, mut pause) = (false, FIRST_RETRY_DELAY);
        let mut lost = Instant::now();
        let mut said = false;
        loop {
            match self.connect() {
                Ok(stream) => {
                    report(AttachEvent::Attached);
                    (attached, pause, said) = (true, FIRST_RETRY_DELAY, false);
                    self.record_stream(folder, stream, &mut captured, &mut context, &mut report)?;
                    report(AttachEvent::Disconnected);
                    lost = Instant::now();
                }
                Err(error) => {
                    let given_up = match retry_limit {
                        RetryLimit::Forever => false,
                        RetryLimit::For(time) => !attached || lost.elapsed() > time,
                    };
                    match (given_up, attached) {
                        (true, false) => return Err(error),
                        (true, true) => return Ok(captured),
                        (false, _) if !said => report(AttachEvent::Lost(&error)),
                        (false, _) => {}
                    }
                    said = true;
                }
            }
            thread::sleep(pause);
            pause = (pause * 2).min(MAX_RETRY_DELAY);
        }
    }

    fn record_stream(
        &self,
        folder: &DataFolder,
        mut stream: impl BufRead,
        captured: &mut CaptureResult,
        context: &mut AttachContext,
        report: &mut impl FnMut(AttachEvent<'_>),
    ) -> Result<(), AttachError> {
        let mut events = Events::default();
        let mut capture: Option<Capture> = None;
        context.begin();
        // Whether the stream ends or fails, the caller reconnects.
        while let Ok(Some(event)) = events.next(&mut stream) {
            if CapturedEvent::read(&event).is_about_connection() {
                continue;
            }
            let capture = match &mut capture {
                Some(capture) => capture,
                None => {
                    let new = create(folder)?;
                    captured.paths.push(new.path.clone());
                    capture.insert(new)
                }
            };
            if let Some(unknown) = context.note(&event) {
                for line in self.introduce(&unknown, context) {
                    capture.write(line)?;
                }
            }
            capture.write(event.clone())?;
            captured.events += 1;
            // After it is on disk: whoever answers it finds the call.
            report(AttachEvent::Received(&event));
        }
        Ok(())
    }

    /// The events that introduce a message unknown to the current capture.
    fn introduce(&self, unknown: &Unknown, context: &mut AttachContext) -> Vec<Vec<u8>> {
        let cached_events = context.cached_events(unknown);
        if !cached_events.is_empty() {
            return cached_events;
        }
        // If the server has no answer, the message is introduced by its final event.
        let mut fetched = self.fetch_events(unknown, context);
        if let Some(parent) = context.unknown_parent(&unknown.message, &unknown.session) {
            fetched.splice(..0, self.fetch_events(&parent, context));
        }
        fetched
    }

    fn fetch_events(&self, unknown: &Unknown, context: &mut AttachContext) -> Vec<Vec<u8>> {
        let Unknown { session, message } = unknown;
        let path = format!("/session/{session}/message/{message}");
        let events = self.get(&path).map_or_else(Vec::new, |answer| as_events(&answer));
        events.iter().for_each(|event| drop(context.note(event)));
        events
    }

    fn config(&self) -> ConfigBuilder<AgentScope> {
        ureq::Agent::config_builder()
            // Contact only the named server: no proxy, no redirects.
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_per_read(Some(READ_TIMEOUT))
    }

    /// Opens the event stream.
    fn connect(&self) -> Result<impl BufRead + use<>, AttachError> {
        let silent = |error: &dyn std::fmt::Display| AttachError::Silent {
            url: self.url.clone(),
            error: error.to_string(),
        };
        let agent = ureq::Agent::new_with_config(self.config().build());
        let request = agent.get(&self.url).header("accept", "text/event-stream");
        let response = request.call().map_err(|error| silent(&error))?;
        let not_events = |what| AttachError::NotEvents { url: self.url.clone(), what };
        if response.status() != StatusCode::OK {
            return Err(not_events(format!("status {}", response.status())));
        }
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return Err(not_events(kind.unwrap_or("no content type").to_owned()));
        }
        Ok(BufReader::new(response.into_body().into_reader()))
    }
}

/// The capture file of one connection.
struct Capture {
    path: PathBuf,
    file: File,
}

impl Capture {
    fn write(&mut self, mut line: Vec<u8>) -> Result<(), AttachError> {
        line.push(b'\n');
        // A single write, so that a concurrent reader sees only whole lines.
        self.file
            .write_all(&line)
            .map_err(|error| AttachError::Write { path: self.path.clone(), error })
    }
}

fn create(folder: &DataFolder) -> Result<Capture, AttachError> {
    let streams = folder.streams();
    let failed = |error| AttachError::Write { path: streams.clone(), error };
    folder.create().and_then(|()| fs::create_dir_all(&streams)).map_err(failed)?;
    let mut options = private_file::options();
    options.append(true).create_new(true);
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    let mut nth = 0;
    loop {
        let process = std::process::id();
        let path = streams.join(format!("opencode-{since}-{process}-{nth}.jsonl"));
        match options.open(&path) {
            Ok(file) => return Ok(Capture { path, file }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => nth += 1,
            Err(error) => return Err(AttachError::Write { path, error }),
        }
    }
}

/// An incremental parser of server-sent events.
#[derive(Default)]
struct Events {
    data: Vec<u8>,
    line: Vec<u8>,
}

impl Events {
    /// The data of the next complete event, on one line. None at the end of the stream.
    fn next(&mut self, from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
        loop {
            self.line.clear();
            from.take(MAX_LINE_BYTES).read_until(b'\n', &mut self.line)?;
            if !self.line.ends_with(b"\n") {
                return Ok(None);
            }
            let line = self.line.trim_ascii_end();
            if let Some(data) = line.strip_prefix(b"data:") {
                // Joining data lines is safe: JSON strings contain no raw line feeds.
                self.data.extend_from_slice(data.trim_ascii());
            } else if line.is_empty() && !self.data.is_empty() {
                return Ok(Some(std::mem::take(&mut self.data)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_http_servers() {
        for (address, url) in [
            ("http://127.0.0.1:4096", "http://127.0.0.1:4096/event"),
            ("http://localhost:4096/", "http://localhost:4096/event"),
            ("http://[::1]:4096/global/event", "http://[::1]:4096/global/event"),
            ("http://box:1/event?directory=/p", "http://box:1/event?directory=/p"),
        ] {
            assert_eq!(OpencodeServer::at(address).unwrap().url(), url);
        }
        for address in ["https://127.0.0.1:4096", "127.0.0.1:4096", "file:///event", "", "http://"]
        {
            assert!(
                matches!(OpencodeServer::at(address), Err(AttachError::Address(_))),
                "{address}"
            );
        }
    }

    #[test]
    fn events_come_when_they_are_whole() {
        let text =
            b": hello\ndata: {\"a\":\ndata: 1}\n\nid: 4\r\ndata:{\"b\":2}\r\n\r\ndata: {\"cut\"";
        let (mut from, mut events) = (text.as_slice(), Events::default());
        let mut next = || events.next(&mut from).unwrap().map(|it| String::from_utf8(it).unwrap());
        assert_eq!(next().as_deref(), Some("{\"a\":1}"));
        assert_eq!(next().as_deref(), Some("{\"b\":2}"));
        assert_eq!(next(), None);
    }
}
