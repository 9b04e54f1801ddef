//! The wire of a host: what goes to the agent, what comes from it, and the capture of both.

use std::collections::VecDeque;
use std::io;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};

use super::Host;
use super::capture::{Capture, Direction, Junk};
use super::lines::{Line, Lines};
use crate::chat::Input;
use crate::outgoing::Outgoing;
use crate::wire;

/// The most that is kept of the time before the agent said who it is.
const MAX_EARLY_BYTES: usize = 16 * 1024 * 1024;

/// A line of the agent from before it said who it is.
pub(super) enum EarlyLine {
    Message(Direction, String),
    Junk(Junk),
}

impl Host {
    pub(super) fn open_capture(&mut self, agent: &str, now: u64) {
        let spec = self.chat.spec();
        let head = json!({"acp": 1, "agent": agent, "name": self.chat.state.program,
            "cwd": spec.folder, "connection": self.clock.0, "chat": self.folder.id,
            "prompts": spec.prompts, "t": now});
        let mut capture = Capture::new(&self.folders.captures, now, &head);
        for (line, at) in self.early.drain(..) {
            match line {
                EarlyLine::Message(direction, line) => capture.message(direction, &line, at),
                EarlyLine::Junk(junk) => capture.junk(&junk, at),
            }
        }
        self.capture = Some(capture);
        self.flush();
    }

    /// Keeps a line from before the agent said who it is. An agent that says much but not that is
    /// ended when its time is up.
    fn keep_early(&mut self, line: EarlyLine, now: u64) {
        self.early_bytes += match &line {
            EarlyLine::Message(_, text) => text.len(),
            EarlyLine::Junk(junk) => junk.head.len(),
        };
        if self.early_bytes <= MAX_EARLY_BYTES {
            self.early.push((line, now));
        }
    }

    pub(super) fn record(&mut self, direction: Direction, line: &str) {
        let now = self.now();
        match &mut self.capture {
            Some(capture) => {
                capture.set_session(self.chat.state.session.as_deref());
                capture.message(direction, line, now);
                self.flush();
            }
            None => self.keep_early(EarlyLine::Message(direction, line.to_owned()), now),
        }
    }

    /// Writes the capture, and says so when that begins or stops to work.
    pub(super) fn flush(&mut self) {
        let Some(capture) = &mut self.capture else { return };
        let result = capture.flush().map(|()| capture.path().to_owned());
        let news = match (&result, &self.chat.state.unrecorded) {
            (Ok(path), None) => self.chat.state.capture.as_deref() != Some(path),
            (Ok(_), Some(_)) | (Err(_), None) => true,
            (Err(_), Some(_)) => false,
        };
        if news {
            let result = result.map_err(|error| format!("the chat is not recorded: {error}"));
            let now = self.now();
            let effects = self.chat.take(Input::Capture(result), now);
            self.execute(effects, now);
        }
    }

    pub(super) fn wrote(&mut self, written: io::Result<usize>) {
        match written {
            Ok(count) => self.written += count,
            Err(_) => {
                // The agent closed its input: it ends, or is ended.
                self.outbox.clear();
                return self.stop_agent();
            }
        }
        if self.outbox.front().is_some_and(|(_, bytes)| self.written >= bytes.len()) {
            self.written = 0;
            let Some((outgoing, _)) = self.outbox.pop_front() else { return };
            for line in outgoing.recorded.as_ref().map_or(&outgoing.lines[..], std::slice::from_ref)
            {
                self.record(Direction::ToAgent, line);
            }
            self.take(Input::Written { prompt: outgoing.prompt });
        }
    }

    pub(super) fn line(&mut self, line: io::Result<Line>) {
        match line {
            Ok(Line::Text(text)) => match wire::split(&text) {
                Some(messages) => {
                    for message in messages {
                        self.record(Direction::ToClient, message);
                        self.take(Input::Message(wire::parse_one(message)));
                    }
                }
                None => self.junk(Junk::short(&text)),
            },
            Ok(Line::Unreadable(junk)) => self.junk(junk),
            Ok(Line::End) | Err(_) => self.stdout = None,
        }
    }

    fn junk(&mut self, junk: Junk) {
        let (now, bytes) = (self.now(), junk.size);
        match &mut self.capture {
            Some(capture) => {
                capture.junk(&junk, now);
                self.flush();
            }
            None => self.keep_early(EarlyLine::Junk(junk), now),
        }
        self.take(Input::Junk { bytes });
    }
}

/// Writes the next bytes to the agent. Pending if there are none.
pub(super) async fn write_some(
    stdin: &mut Option<ChildStdin>,
    outbox: &VecDeque<(Outgoing, Vec<u8>)>,
    written: usize,
) -> io::Result<usize> {
    match (stdin, outbox.front()) {
        (Some(stdin), Some((_, bytes))) => match stdin.write(&bytes[written..]).await {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            other => other,
        },
        (_, _) => std::future::pending().await,
    }
}

/// An agent that reads nothing is not read either: each of its requests has a reply that waits.
const MAX_OUTBOX: usize = 1000;
/// The same in bytes: replies name what the agent named.
const MAX_OUTBOX_BYTES: usize = 8 * 1024 * 1024;

/// Reads the next line of the agent. Pending if nothing is to be read.
pub(super) async fn next_line(
    stdout: &mut Option<Lines<ChildStdout>>,
    outbox: &VecDeque<(Outgoing, Vec<u8>)>,
) -> io::Result<Line> {
    let bytes: usize = outbox.iter().map(|(_, bytes)| bytes.len()).sum();
    match stdout {
        Some(lines) if outbox.len() < MAX_OUTBOX && bytes < MAX_OUTBOX_BYTES => lines.next().await,
        Some(_) | None => std::future::pending().await,
    }
}
