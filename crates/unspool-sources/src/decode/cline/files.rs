//! The files of a Cline session, as lines. Cline keeps each conversation in one JSON document that
//! it writes again as a whole, with the time of the write in it. The text made of it here has only
//! what does not change, so that it grows at its end like a log:
//!
//! ```text
//! <session>.messages.json     {"type":"cline.session","sessionId":…,"agent":…,"origin":…}
//!                             one line for each message
//! <session>.json              {"type":"cline.manifest",…}      what it says about the session, and how a run ended that
//!                                                                was killed
//! <session>.compaction.json   {"type":"cline.compaction",…}    the summary, and where it belongs
//! ```
//!
//! A sub-agent's file does not name the call that started it. The call is the one of its parent
//! that has the sub-agent's task; it is looked up when the sub-agent's file is opened.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::read::document::DocumentLines;
use crate::read::own_file::{Lines, OwnFile};
use crate::read::regular_file::open_regular;

type Text = Box<dyn Read + Send>;

pub const CONVERSATION: OwnFile = OwnFile {
    is_named: |path| is_session_file(path) && !is_side_file(path),
    begins: None,
    lines: Lines::Streamed(lines),
    beside: None,
};

/// The manifest and the compaction.
pub const SIDE: OwnFile = OwnFile {
    is_named: is_side_file,
    begins: None,
    lines: Lines::Streamed(lines),
    beside: Some(side_files_of_log),
};

const MESSAGES_SUFFIX: &str = ".messages.json";
const COMPACTION_SUFFIX: &str = ".compaction.json";

/// A manifest or a compaction is read as a whole.
const MAX_DOCUMENT_BYTES: u64 = 64 * 1024 * 1024;

/// The fields of a manifest that are read as they are. Others change with every step.
const MANIFEST_FIELDS: [&str; 4] = ["session_id", "cwd", "started_at", "prompt"];
const METADATA_FIELDS: [&str; 6] =
    ["title", "git", "fork", "restoredFromSessionId", "importedFrom", "systemPrompt"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Messages,
    Manifest,
    Compaction,
}

/// The kind of a file in the folder of a session, and its name without the ending.
fn kind_of(path: &Path) -> Option<(Kind, &str)> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent()?.file_name()?.to_str()?;
    if !is_session_id(folder) {
        return None;
    }
    if let Some(stem) = name.strip_suffix(MESSAGES_SUFFIX) {
        return Some((Kind::Messages, stem));
    }
    if let Some(stem) = name.strip_suffix(COMPACTION_SUFFIX) {
        return Some((Kind::Compaction, stem));
    }
    let stem = name.strip_suffix(".json").filter(|stem| *stem == folder)?;
    Some((Kind::Manifest, stem))
}

/// `<milliseconds>_<letters>`.
fn is_session_id(id: &str) -> bool {
    let Some((time, letters)) = id.split_once('_') else { return false };
    time.len() >= 12
        && time.bytes().all(|byte| byte.is_ascii_digit())
        && !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// True if a path has the name of a file of a session.
pub fn is_session_file(path: &Path) -> bool {
    kind_of(path).is_some()
}

/// True if a path is a file of a session that is not a conversation.
pub fn is_side_file(path: &Path) -> bool {
    match kind_of(path) {
        Some((Kind::Manifest | Kind::Compaction, _)) => true,
        Some((Kind::Messages, _)) | None => false,
    }
}

/// The other files of a conversation that exist.
pub fn side_files_of_log(path: &Path) -> Vec<PathBuf> {
    let Some((Kind::Messages, stem)) = kind_of(path) else { return Vec::new() };
    let names = [format!("{stem}.json"), format!("{stem}{COMPACTION_SUFFIX}")];
    names.map(|name| path.with_file_name(name)).into_iter().filter(|path| path.is_file()).collect()
}

/// The lines of a file of a session; the text of any other file.
fn lines(path: &Path, text: Text) -> Text {
    let Some((kind, stem)) = kind_of(path) else { return text };
    let line = match kind {
        Kind::Messages => return Box::new(MessageLines::new(path, text)),
        Kind::Manifest => document(text).map(|manifest| manifest_line(path, stem, &manifest)),
        Kind::Compaction => {
            document(text).map(|compaction| compaction_line(path, stem, &compaction))
        }
    };
    let line = line.map(|line| format!("{line}\n")).unwrap_or_default();
    Box::new(io::Cursor::new(line.into_bytes()))
}

/// A document as a whole; `None` if it is not complete or not an object. Cline writes it in place,
/// so a reader may find a part of it.
fn document(text: Text) -> Option<Map<String, Value>> {
    serde_json::from_reader(BufReader::new(text.take(MAX_DOCUMENT_BYTES))).ok()
}

fn manifest_line(path: &Path, session: &str, manifest: &Map<String, Value>) -> Value {
    let mut line = Map::new();
    line.insert("type".to_owned(), "cline.manifest".into());
    let mut copy = |from: &Map<String, Value>, names: &[&str]| {
        for name in names {
            if let Some(value) = from.get(*name) {
                line.insert((*name).to_owned(), value.clone());
            }
        }
    };
    copy(manifest, &MANIFEST_FIELDS);
    if let Some(Value::Object(metadata)) = manifest.get("metadata") {
        copy(metadata, &METADATA_FIELDS);
    }
    if let Some(end) = end_of_run(path, session, manifest) {
        line.insert("end".to_owned(), end);
    }
    Value::Object(line)
}

/// How the last run ended, if only the manifest says so: a run that was killed writes no message
/// about it. `failed` means nothing if Cline found later that the process is gone, because it looks
/// for the process of the first run.
fn end_of_run(path: &Path, session: &str, manifest: &Map<String, Value>) -> Option<Value> {
    let status = manifest.get("status")?.as_str()?;
    let is_guess =
        manifest.get("metadata").is_some_and(|metadata| metadata["terminal_marker"].is_string());
    if is_guess || !["failed", "cancelled"].contains(&status) {
        return None;
    }
    let messages = path.with_file_name(format!("{session}{MESSAGES_SUFFIX}"));
    let prompt = open_prompt(&messages)?;
    Some(json!({ "status": status, "prompt": prompt, "at": manifest.get("ended_at") }))
}

fn compaction_line(path: &Path, session: &str, compaction: &Map<String, Value>) -> Value {
    let key = compaction.get("source_last_message_key").and_then(Value::as_str).unwrap_or_default();
    let last = key.strip_prefix("id:").unwrap_or(key);
    let summary = compaction.get("messages").and_then(|messages| messages.get(0));
    let metadata = summary.and_then(|summary| summary.get("metadata"));
    let messages = path.with_file_name(format!("{session}{MESSAGES_SUFFIX}"));
    json!({
        "type": "cline.compaction",
        "sessionId": session,
        "after": last,
        "prompt": prompt_before(&messages, last),
        "metadata": metadata,
    })
}

// ── Conversations ───────────────────────────────────────────────────────────────────────────

/// What is needed of a message to find prompts and calls.
#[derive(Deserialize)]
struct Message {
    id: Option<String>,
    role: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    metrics: Value,
}

impl Message {
    fn blocks(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let blocks = self.content.as_array().map(Vec::as_slice).unwrap_or_default();
        blocks.iter().filter(move |block| block["type"] == kind)
    }

    fn text(&self) -> String {
        let texts = self.blocks("text").filter_map(|block| block["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Cline's own messages in the user's name are marked.
    fn is_prompt(&self) -> bool {
        let is_own = self.metadata["userRunSpan"] == 0 || self.metadata["kind"].is_string();
        let is_result = self.blocks("tool_result").next().is_some();
        self.role.as_deref() == Some("user") && !is_result && !is_own
    }

    /// The turn is over: a reply without calls, or an error. A reply that was cut has no counts.
    fn ends_turn(&self) -> bool {
        let is_whole = self.metrics.is_object() && self.blocks("tool_use").next().is_none();
        let is_error = self.metadata["displayRole"] == "error";
        self.role.as_deref() == Some("assistant") && (is_whole || is_error)
    }
}

/// The messages of a conversation, one at a time.
fn messages(path: &Path) -> impl Iterator<Item = Message> {
    let file = open_regular(path).ok();
    let lines =
        file.into_iter().flat_map(|file| BufReader::new(DocumentLines::new(file)).split(b'\n'));
    lines.filter_map(|line| {
        let message: Message = serde_json::from_slice(&line.ok()?).ok()?;
        message.role.is_some().then_some(message)
    })
}

/// The id of the prompt of the turn that a message is in.
fn prompt_before(path: &Path, last: &str) -> Option<String> {
    let mut prompt = None;
    for message in messages(path) {
        let is_last = message.id.as_deref() == Some(last);
        if message.is_prompt() {
            prompt = message.id.or(prompt);
        }
        if is_last {
            break;
        }
    }
    prompt
}

/// The id of the prompt whose turn is not over at the end of a conversation.
fn open_prompt(path: &Path) -> Option<String> {
    let mut open = None;
    for message in messages(path) {
        if message.is_prompt() {
            open = message.id;
        } else if message.ends_turn() {
            open = None;
        }
    }
    open
}

/// The call of the parent that gave a sub-agent its task. Sub-agents with the same task are in the
/// order of their calls: their names begin with the time.
fn call_of_agent(path: &Path, parent: &str) -> Option<String> {
    let task = messages(path).next()?.text();
    let is_agent = |path: &PathBuf| {
        let kind = kind_of(path);
        kind.is_some_and(|(kind, stem)| kind == Kind::Messages && stem != parent)
    };
    let entries = path.parent()?.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut agents: Vec<PathBuf> = entries.filter(is_agent).collect();
    agents.sort();
    let alike = agents.iter().take_while(|agent| *agent != path);
    let before = alike.filter(|agent| messages(agent).next().is_some_and(|m| m.text() == task));
    let nth = before.count();
    let parent = path.with_file_name(format!("{parent}{MESSAGES_SUFFIX}"));
    let mut calls = Vec::new();
    for message in messages(&parent) {
        for call in message.blocks("tool_use").filter(|call| call["input"]["task"] == *task) {
            calls.extend(call["id"].as_str().map(str::to_owned));
        }
    }
    calls.into_iter().nth(nth)
}

/// Reads a conversation as lines: its head without what changes, and its messages.
struct MessageLines {
    path: PathBuf,
    source: BufReader<DocumentLines<Text>>,
    begun: bool,
    out: Vec<u8>,
    given: usize,
}

impl MessageLines {
    fn new(path: &Path, text: Text) -> MessageLines {
        let source = BufReader::new(DocumentLines::new(text));
        let (begun, out, given) = (false, Vec::new(), 0);
        MessageLines { path: path.to_owned(), source, begun, out, given }
    }

    /// Makes the next line. False at the end, and at a line that is not complete.
    fn make(&mut self) -> io::Result<bool> {
        self.out.clear();
        self.given = 0;
        let mut line = Vec::new();
        self.source.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok(false);
        }
        if !std::mem::replace(&mut self.begun, true) {
            let Ok(head) = serde_json::from_slice::<Map<String, Value>>(&line) else {
                return Ok(false);
            };
            self.out = format!("{}\n", self.head(&head)).into_bytes();
            return Ok(true);
        }
        // The fields after the list follow its messages.
        let is_message = serde_json::from_slice::<Message>(&line).is_ok_and(|m| m.role.is_some());
        if is_message {
            self.out = line;
        }
        Ok(true)
    }

    fn head(&self, head: &Map<String, Value>) -> Value {
        let field = |name: &str| head.get(name).cloned().unwrap_or(Value::Null);
        let origin = field("origin");
        let parent = origin["parentThreadId"].as_str();
        let call = parent.and_then(|parent| call_of_agent(&self.path, parent));
        json!({
            "type": "cline.session",
            "sessionId": field("sessionId"),
            "agent": field("agent"),
            "origin": origin,
            "callId": call,
        })
    }
}

impl Read for MessageLines {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() {
            if !self.make()? {
                return Ok(0);
            }
        }
        let rest = &self.out[self.given..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
