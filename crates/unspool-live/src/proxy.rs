//! A recording proxy between an editor and the agent that it drives: bytes pass unchanged in both
//! directions, and the wire is recorded like that of a chat. Nothing that goes wrong with the
//! recording stops the editor or the agent.

mod recording;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use xxhash_rust::xxh3::Xxh3Default;

use crate::host::capture::{Direction, Junk};
use recording::Recording;

/// A longer line passes, but only its beginning is recorded.
const MAX_LINE: usize = 32 * 1024 * 1024;
const LINE_HEAD: usize = 1000;
/// How long an agent may take to end after its standard input is closed, and after SIGTERM.
const CLOSE_TIME: Duration = Duration::from_secs(2);
const TERM_TIME: Duration = Duration::from_secs(3);
/// How often what waits for the capture is tried again.
const RETRY_TIME: Duration = Duration::from_millis(200);
const STEP: Duration = Duration::from_millis(5);
/// How long output is read after the agent ended: what it started may keep its output open.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// How often each prompt of a session stood in it before, by digest.
pub type PromptCounts = BTreeMap<u64, u32>;

/// What to start, and where to record it.
pub struct ProxySpec {
    pub command: Vec<String>,
    pub folder: PathBuf,
    pub captures: PathBuf,
    /// Counts the prompts of a session that goes on, by the agent's id of it.
    pub count_prompts: Arc<dyn Fn(&str) -> PromptCounts + Send + Sync>,
}

/// An agent behind a proxy.
pub struct Proxy {
    /// Its process.
    pub process: u32,
    /// Is told when the process has ended.
    pub exit: std::sync::mpsc::Receiver<ExitStatus>,
    recording: Arc<Mutex<Recording>>,
    reader: thread::JoinHandle<()>,
    /// The reader waits for output of the agent.
    waits: Arc<AtomicBool>,
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
        thread::spawn(move || {
            relay(io::stdin().lock(), to_agent, side, &shared, &AtomicBool::new(false));
            end_after(process);
        });
        let (side, shared) = (Direction::ToClient, recording.clone());
        let waits = Arc::new(AtomicBool::new(false));
        let waiting = waits.clone();
        let reader =
            thread::spawn(move || relay(from_agent, io::stdout(), side, &shared, &waiting));
        let shared = recording.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(RETRY_TIME);
                shared.lock().unwrap_or_else(PoisonError::into_inner).retry();
            }
        });
        let (sender, exit) = std::sync::mpsc::channel();
        thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = sender.send(status);
            }
        });
        Ok(Proxy { process, exit, recording, reader, waits })
    }

    /// Records the end of the agent. Its exit code is that of the proxy.
    pub fn finish(self, status: ExitStatus) {
        // Only while nothing comes: an editor may read slowly.
        let mut silent = Duration::ZERO;
        while !self.reader.is_finished() && silent < DRAIN_TIME {
            thread::sleep(STEP);
            silent =
                if self.waits.load(Ordering::Relaxed) { silent + STEP } else { Duration::ZERO };
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
    waits: &AtomicBool,
) {
    let mut lines = LineSplitter::default();
    let mut buffer = vec![0; 64 * 1024];
    let mut open = true;
    // Whatever goes wrong with the recording, the bytes pass.
    let mut record = |bytes: &[u8]| {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let mut held = recording.lock().unwrap_or_else(PoisonError::into_inner);
            lines.take(bytes, |line| held.line(direction, line));
        }));
    };
    loop {
        waits.store(true, Ordering::Relaxed);
        let read = from.read(&mut buffer);
        waits.store(false, Ordering::Relaxed);
        let count = match read {
            // The end cuts a last line off.
            Ok(0) => return record(b"\n"),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return record(b"\n"),
        };
        let bytes = &buffer[..count];
        record(bytes);
        // What comes after the other side is gone is still recorded.
        open = open && to.write_all(bytes).and_then(|()| to.flush()).is_ok();
    }
}

/// Ends an agent that does not end with its input, as some do.
fn end_after(process: u32) {
    let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return };
    for (time, signal) in [(CLOSE_TIME, Signal::TERM), (TERM_TIME, Signal::KILL)] {
        // This process ends when the agent has ended, and this thread with it.
        thread::sleep(time);
        let _ = kill_process(process, signal);
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
