//! A recording proxy between an editor and the agent that it drives: bytes pass unchanged in both
//! directions, and the wire is recorded like that of a chat. Nothing that goes wrong with the
//! recording stops the editor or the agent.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};
use unspool_sources::decode::acp::agent_of_program;
use xxhash_rust::xxh3::Xxh3Default;

use crate::host::capture::{Capture, Direction, Junk};
use crate::wire::{self, Message};

/// A longer line passes, but only its beginning is recorded.
const MAX_LINE: usize = 32 * 1024 * 1024;
const LINE_HEAD: usize = 1000;
/// How many lines wait for the agent to say who it is.
const MAX_EARLY: usize = 1000;
/// How long output is read after the agent ended: what it started may keep its output open.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// How often each prompt of a session stood in it before, by digest.
pub type PromptCounts = BTreeMap<u64, u32>;

/// What to start, and where to record it.
pub struct ProxySpec {
    pub command: Vec<String>,
    pub folder: PathBuf,
    pub captures: PathBuf,
    /// Counts the prompts of a session that goes on, by the agent's name and its id of the session.
    pub count_prompts: Box<dyn Fn(&str, &str) -> PromptCounts + Send>,
}

/// An agent behind a proxy.
pub struct Proxy {
    /// Its process.
    pub process: u32,
    /// Is told when the process has ended.
    pub exit: std::sync::mpsc::Receiver<ExitStatus>,
    recording: Arc<Mutex<Recording>>,
    reader: thread::JoinHandle<()>,
}

impl Proxy {
    /// Starts the agent between this process's standard input and output.
    pub fn start(spec: ProxySpec) -> io::Result<Proxy> {
        let (program, arguments) =
            spec.command.split_first().ok_or_else(|| io::Error::other("no program is named"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(to_agent), Some(from_agent)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the agent has no pipes"));
        };
        let process = child.id();
        let recording = Arc::new(Mutex::new(Recording::new(spec)));
        let (side, shared) = (Direction::ToAgent, recording.clone());
        // A line is recorded before its last byte passes, so no reply is recorded before its request.
        // This thread ends with the process: a read of standard input cannot be stopped.
        thread::spawn(move || relay(io::stdin().lock(), to_agent, side, &shared));
        let (side, shared) = (Direction::ToClient, recording.clone());
        let reader = thread::spawn(move || relay(from_agent, io::stdout(), side, &shared));
        let (sender, exit) = std::sync::mpsc::channel();
        thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = sender.send(status);
            }
        });
        Ok(Proxy { process, exit, recording, reader })
    }

    /// Records the end of the agent. Its exit code is that of the proxy.
    pub fn finish(self, status: ExitStatus) {
        let begun = std::time::Instant::now();
        while !self.reader.is_finished() && begun.elapsed() < DRAIN_TIME {
            thread::sleep(Duration::from_millis(5));
        }
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let signal = signal.map(|signal| format!("signal {signal}"));
        recording.note(&json!({"what": "exit", "code": status.code(), "signal": signal}));
    }
}

/// Passes bytes on until either side closes.
fn relay(
    mut from: impl Read,
    mut to: impl Write,
    direction: Direction,
    recording: &Mutex<Recording>,
) {
    let mut lines = LineSplitter::default();
    let mut buffer = vec![0; 64 * 1024];
    let mut open = true;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let bytes = &buffer[..count];
        let mut held = recording.lock().unwrap_or_else(PoisonError::into_inner);
        lines.take(bytes, |line| held.line(direction, line));
        drop(held);
        // What comes after the other side is gone is still recorded.
        open = open && to.write_all(bytes).and_then(|()| to.flush()).is_ok();
    }
}

/// A line of the wire.
enum WireLine<'a> {
    Whole(&'a [u8]),
    TooLong(Junk),
}

/// Finds the lines in a stream of bytes.
#[derive(Default)]
struct LineSplitter {
    line: Vec<u8>,
    size: u64,
    digest: Xxh3Default,
}

impl LineSplitter {
    fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(WireLine<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.push(&bytes[..end]);
            if self.size > self.line.len() as u64 {
                let head = String::from_utf8_lossy(&self.line).into_owned();
                let digest = Some(self.digest.digest());
                each(WireLine::TooLong(Junk { size: self.size, digest, head }));
            } else if !self.line.trim_ascii().is_empty() {
                each(WireLine::Whole(&self.line));
            }
            self.line.clear();
            self.line.shrink_to(MAX_LINE / 32);
            self.size = 0;
            bytes = &bytes[end + 1..];
        }
        self.push(bytes);
    }

    fn push(&mut self, bytes: &[u8]) {
        let is_whole = self.size == self.line.len() as u64;
        self.size += bytes.len() as u64;
        if is_whole && self.line.len() + bytes.len() <= MAX_LINE {
            return self.line.extend_from_slice(bytes);
        }
        if is_whole {
            self.digest = Xxh3Default::new();
            self.digest.update(&self.line);
            self.line.truncate(LINE_HEAD);
        }
        self.digest.update(bytes);
    }
}

/// The names in a message that decide to which session it belongs.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct SessionName {
    session_id: Option<String>,
}

/// The capture, from the first line on.
struct Recording {
    spec: ProxySpec,
    capture: Option<Capture>,
    agent: &'static str,
    /// Lines from before the agent said who it is.
    early: Vec<(Direction, String, u64)>,
    /// The sessions of requests without a reply, by who replies and the id.
    requests: BTreeMap<(bool, String), String>,
}

impl Recording {
    fn new(spec: ProxySpec) -> Recording {
        let (capture, early, requests) = (None, Vec::new(), BTreeMap::new());
        Recording { spec, capture, agent: "acp", early, requests }
    }

    fn line(&mut self, direction: Direction, line: WireLine<'_>) {
        let bytes = match line {
            WireLine::Whole(bytes) => bytes,
            WireLine::TooLong(junk) => return self.junk(&junk),
        };
        let messages = std::str::from_utf8(bytes).ok().and_then(wire::split);
        let Some(messages) = messages else {
            return self.junk(&Junk::short(&String::from_utf8_lossy(bytes)));
        };
        for message in messages {
            self.message(direction, message);
        }
    }

    fn junk(&mut self, junk: &Junk) {
        if let Some(capture) = &mut self.capture {
            capture.junk(junk, now());
            let _ = capture.flush();
        }
    }

    fn message(&mut self, direction: Direction, text: &str) {
        let now = now();
        let parsed = wire::parse_one(text);
        if self.capture.is_none() {
            let opens = match &parsed {
                Message::Response { result: Ok(result), .. } => agent_info(result),
                Message::Response { .. }
                | Message::Request { .. }
                | Message::Notification { .. }
                | Message::Invalid => None,
            };
            match opens {
                Some(info) => self.open(&info, now),
                // No agent that we can name: it is recorded as one of many.
                None if self.early.len() >= MAX_EARLY => self.open(&Value::Null, now),
                None => {
                    let text = recorded(&parsed, text);
                    return self.early.push((direction, text, now));
                }
            }
        }
        self.record(direction, &parsed, text, now);
    }

    fn open(&mut self, info: &Value, now: u64) {
        self.agent = agent_of_program(info["name"].as_str().unwrap_or_default());
        let title = info["title"].as_str().or(info["name"].as_str());
        let head = json!({"acp": 1, "agent": self.agent, "name": title, "cwd": self.spec.folder,
            "connection": now, "prompts": {}, "t": now});
        self.capture = Some(Capture::new(&self.spec.captures, now, &head));
        for (direction, text, at) in std::mem::take(&mut self.early) {
            self.record(direction, &wire::parse_one(&text), &text, at);
        }
    }

    fn record(&mut self, direction: Direction, parsed: &Message, text: &str, now: u64) {
        let to_agent = direction == Direction::ToAgent;
        let session = self.session_of(to_agent, parsed);
        let text = recorded(parsed, text);
        let Some(capture) = &mut self.capture else { return };
        capture.set_session(session.as_deref());
        if let (Message::Request { method, .. }, Some(session)) = (parsed, &session)
            && matches!(method.as_str(), "session/resume")
        {
            let counts = (self.spec.count_prompts)(self.agent, session);
            capture.note(&json!({"what": "prompts", "prompts": counts}), now);
        }
        capture.message(direction, &text, now);
        // A recording that fails stops nothing.
        let _ = capture.flush();
    }

    /// The session of a message: it names it, or it replies to a message that does.
    fn session_of(&mut self, to_agent: bool, message: &Message) -> Option<String> {
        let named = |params: &str| {
            serde_json::from_str::<SessionName>(params).unwrap_or_default().session_id
        };
        match message {
            Message::Request { id, params, .. } => {
                let session = named(params);
                if let Some(session) = &session {
                    self.requests.insert((!to_agent, id.as_json().to_owned()), session.clone());
                }
                session
            }
            Message::Notification { params, .. } => named(params),
            Message::Response { id, result } => {
                let asked = self.requests.remove(&(to_agent, id.as_json().to_owned()));
                asked.or_else(|| named(result.as_ref().ok()?))
            }
            Message::Invalid => None,
        }
    }

    fn note(&mut self, note: &Value) {
        let open: Vec<String> = {
            let prompts = self.requests.iter().filter(|((to_agent, _), _)| !to_agent);
            prompts.map(|(_, session)| session.clone()).collect()
        };
        let Some(capture) = &mut self.capture else { return };
        // Each session with a request that has no reply learns why.
        for session in open {
            capture.set_session(Some(&session));
            capture.note(note, now());
        }
        let _ = capture.flush();
    }
}

/// What is recorded of a message: of MCP servers only their names, the rest may be secret.
fn recorded(parsed: &Message, text: &str) -> String {
    let Message::Request { method, .. } = parsed else { return text.to_owned() };
    if !matches!(method.as_str(), "session/new" | "session/load" | "session/resume") {
        return text.to_owned();
    }
    let message = serde_json::from_str::<Value>(text).unwrap_or_default();
    crate::outgoing::Outgoing::with_servers(message).recorded.unwrap_or_else(|| text.to_owned())
}

/// What an agent says about itself in the reply to `initialize`.
fn agent_info(result: &str) -> Option<Value> {
    let result = serde_json::from_str::<Value>(result).ok()?;
    let is_initialize = result.get("agentInfo").is_some()
        || result.get("agentCapabilities").is_some()
        || result.get("protocolVersion").is_some();
    is_initialize.then(|| result["agentInfo"].clone())
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}
