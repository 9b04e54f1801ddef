//! Looks whether a question is still open: in the payloads that other hooks spool, in the log, and at
//! the agent's process. Only what is new is read, so that a look costs next to nothing, and the
//! other hooks do nothing for it.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Duration, Instant};

use super::question::HookQuestion;
use crate::host::folder::{ChatFolders, StoredProcess};
use crate::host::process::is_running;
use crate::protocol::ANSWERED;
use crate::question_host::QuestionEnd;

/// More than this at once is not read: it is no answer to a dialog.
const MAX_READ: u64 = 16 * 1024 * 1024;
/// How much of the spool is searched for the call. It was reported a moment ago.
const SEARCHED: u64 = 4 * 1024 * 1024;

/// Gives the file to which hooks spool their payloads now: each day has its own.
pub type SpoolFile = Box<dyn Fn() -> PathBuf>;

/// A line of the spool.
#[derive(Deserialize)]
struct Spooled {
    payload: Value,
}

pub struct Watch {
    question: HookQuestion,
    spool_file: SpoolFile,
    spool: GrowingFile,
    logs: Vec<GrowingFile>,
    status: Option<DialogStatus>,
    agent: Option<StoredProcess>,
    parent: Option<u32>,
    deadline: Instant,
}

impl Watch {
    /// Watches from now on.
    pub fn new(
        question: HookQuestion,
        spool_file: SpoolFile,
        agent: Option<StoredProcess>,
        time: Duration,
    ) -> Watch {
        let logs = logs_of(&question).into_iter().map(GrowingFile::at_end).collect();
        Watch {
            spool: GrowingFile::at_end(spool_file()),
            status: agent.and_then(|agent| DialogStatus::of(&question, agent)),
            question,
            spool_file,
            logs,
            agent,
            parent: parent(),
            deadline: Instant::now() + time,
        }
    }

    /// How the question has ended, if it has.
    pub fn poll(&mut self) -> Option<QuestionEnd> {
        let spool = (self.spool_file)();
        let mut lines = self.spool.new_lines();
        if spool != self.spool.path {
            self.spool = GrowingFile { path: spool, offset: 0, rest: Vec::new() };
            lines.extend(self.spool.new_lines());
        }
        let session = self.question.session.as_str();
        for line in lines.iter().filter(|line| contains(line, session)) {
            let spooled = serde_json::from_slice::<Spooled>(line).ok();
            if let Some(end) = spooled.and_then(|line| self.question.end_by_payload(&line.payload))
            {
                return Some(end);
            }
        }
        for line in self.logs.iter_mut().flat_map(GrowingFile::new_lines) {
            let record = serde_json::from_slice::<Value>(&line).ok();
            if let Some(end) = record.and_then(|record| self.question.end_by_log(&record)) {
                return Some(end);
            }
        }
        if self.status.as_mut().is_some_and(DialogStatus::is_closed) {
            return Some(QuestionEnd::Answered(ANSWERED));
        }
        // A shell between the agent and the hook outlives the agent.
        let orphaned =
            parent() != self.parent || self.agent.is_some_and(|agent| !is_running(agent));
        if orphaned {
            return Some(QuestionEnd::Gone("the agent has ended"));
        }
        (Instant::now() > self.deadline).then_some(QuestionEnd::Gone("nobody answered here"))
    }
}

/// The file in which the agent says what it does. A call that was allowed may run for hours before a
/// hook or the log has anything about it.
struct DialogStatus {
    path: PathBuf,
    /// It has said that it waits for a person.
    was_open: bool,
    /// How often in a row it then said something else. Between two dialogs it does for a moment.
    closed: u32,
}

impl DialogStatus {
    /// `sessions/PID.json` beside the folder with the logs of all projects.
    fn of(question: &HookQuestion, agent: StoredProcess) -> Option<DialogStatus> {
        let folder = question.log.as_ref()?.ancestors().nth(3)?;
        let path = folder.join("sessions").join(format!("{}.json", agent.group));
        Some(DialogStatus { path, was_open: false, closed: 0 })
    }

    fn is_closed(&mut self) -> bool {
        #[derive(Deserialize)]
        struct Entry {
            status: String,
        }
        let text = std::fs::read(&self.path).unwrap_or_default();
        // It may be just being written, or not be there at all.
        let Ok(Entry { status }) = serde_json::from_slice(&text) else { return false };
        if status == "waiting" {
            (self.was_open, self.closed) = (true, 0);
        } else if self.was_open {
            self.closed += 1;
        }
        self.closed > 1
    }
}

fn parent() -> Option<u32> {
    let parent = rustix::process::getppid()?;
    u32::try_from(parent.as_raw_nonzero().get()).ok()
}

/// The log of the session, and that of the sub-agent which asks.
fn logs_of(question: &HookQuestion) -> Vec<PathBuf> {
    let Some(log) = &question.log else { return Vec::new() };
    let own = question
        .sub_agent
        .as_ref()
        .map(|agent| log.with_extension("").join("subagents").join(format!("agent-{agent}.jsonl")));
    // A sub-agent's calls are in its own log; an interruption of the session ends it too.
    std::iter::once(log.clone()).chain(own).collect()
}

/// The call that a question is about, which its payload does not name. As in the archive, a request
/// is about the oldest call of its turn with this tool and input that has no request yet; ours is the
/// last request. No other waiting hook is about the same call.
pub fn find_call(
    question: &HookQuestion,
    agent: &str,
    spool: &Path,
    folders: &ChatFolders,
) -> Option<String> {
    if question.call.is_some() {
        return question.call.clone();
    }
    let length = spool.metadata().ok()?.len();
    let offset = length.saturating_sub(SEARCHED);
    let mut file = GrowingFile { path: spool.to_owned(), offset, rest: Vec::new() };
    // Calls without a request, and those with one.
    let (mut open, mut asked): (VecDeque<String>, Vec<String>) = Default::default();
    for line in file.new_lines().iter().filter(|line| contains(line, &question.session)) {
        let Ok(Spooled { payload }) = serde_json::from_slice(line) else { continue };
        let call = payload["tool_use_id"].as_str();
        match payload["hook_event_name"].as_str() {
            Some("PreToolUse") if is_alike(question, &payload) => {
                open.extend(call.map(str::to_owned));
            }
            Some("PermissionRequest") if is_alike(question, &payload) => {
                asked.extend(open.pop_front());
            }
            Some("PostToolUse" | "PostToolUseFailure" | "PermissionDenied") => {
                open.retain(|other| Some(other.as_str()) != call);
                asked.retain(|other| Some(other.as_str()) != call);
            }
            Some(_) | None => {}
        }
    }
    let taken = taken_calls(agent, &question.session, folders);
    asked.into_iter().rev().chain(open).find(|call| !taken.contains(call))
}

/// True if a payload is about a call that the question could be about.
fn is_alike(question: &HookQuestion, payload: &Value) -> bool {
    let is = |name: &str, value: Option<&str>| payload[name].as_str() == value;
    is("session_id", Some(&question.session))
        && is("prompt_id", question.prompt.as_deref())
        && is("agent_id", question.sub_agent.as_deref())
        && is("tool_name", Some(&question.tool))
        && payload["tool_input"] == question.input
}

/// The calls that other waiting hooks of the session are about.
fn taken_calls(agent: &str, session: &str, folders: &ChatFolders) -> BTreeSet<String> {
    let states = folders.all().into_iter().filter_map(|folder| Some(folder.read()?.state));
    let ours = states.filter(|state| {
        state.answers_only && state.agent == agent && state.session.as_deref() == Some(session)
    });
    ours.flat_map(|state| state.questions).filter_map(|open| open.call).collect()
}

fn contains(line: &[u8], text: &str) -> bool {
    line.windows(text.len().max(1)).any(|part| part == text.as_bytes())
}

/// A file of lines that others append to.
struct GrowingFile {
    path: PathBuf,
    offset: u64,
    /// The beginning of a line that is not complete.
    rest: Vec<u8>,
}

impl GrowingFile {
    fn at_end(path: PathBuf) -> GrowingFile {
        let offset = path.metadata().map_or(0, |found| found.len());
        GrowingFile { path, offset, rest: Vec::new() }
    }

    /// The lines that were completed since the last time.
    fn new_lines(&mut self) -> Vec<Vec<u8>> {
        let length = self.path.metadata().map_or(0, |found| found.len());
        if length <= self.offset {
            // A file that was written anew is followed from its end.
            self.offset = self.offset.min(length);
            return Vec::new();
        }
        let mut read = Vec::new();
        let from = |mut file: File| {
            file.seek(SeekFrom::Start(self.offset))?;
            file.take(MAX_READ).read_to_end(&mut read)
        };
        if File::open(&self.path).and_then(from).is_err() {
            return Vec::new();
        }
        self.offset += read.len() as u64;
        self.rest.extend(read);
        let mut lines: Vec<Vec<u8>> =
            self.rest.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        self.rest = lines.pop().unwrap_or_default();
        if self.rest.len() as u64 > MAX_READ {
            self.rest.clear();
        }
        lines
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
