//! aider's chat history, `.aider.chat.history.md`, as lines of JSON. It is one Markdown file for all
//! sessions of a project, and is only appended to. Each record has its kind and its session:
//!
//! ```text
//! # aider chat started at 2026-11-16 07:04:24      {"aider":"start","session":"2026-11-16T07:04:24",…}
//! > Aider v0.86.2··                            →   {"aider":"line","session":…,"text":"Aider v0.86.2"}
//! #### Fix it··                                    {"aider":"prompt",…,"text":"Fix it"}
//! Done.                                            {"aider":"reply",…,"text":"Done."}
//! ```
//!
//! Prompts have a time if the file of what was typed is beside the history (`input_history.rs`).
//! Replies are not quoted, and may have lines that look like any of these. But every line that aider
//! writes itself ends with two spaces (shown as dots), and the lines of a reply do not.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::input_history::TypedTimes;
use super::question::answered_question;
use crate::read::own_file::{Lines, OwnFile};

pub const FILE_NAME: &str = ".aider.chat.history.md";
const START: &str = "# aider chat started at ";

pub const FILE: OwnFile = OwnFile {
    is_named: |_| false,
    begins: Some(("md", is_history)),
    lines: Lines::Streamed(|path, text| Box::new(HistoryLines::new(path, text))),
    beside: None,
};

/// True if a text begins as a chat history.
pub fn is_history(beginning: &[u8]) -> bool {
    beginning.trim_ascii_start().starts_with(START.as_bytes())
}

/// A record, as aider's decoder reads it.
#[derive(Serialize)]
struct Record<'a> {
    aider: &'a str,
    session: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    /// When a prompt was typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

/// What the lines so far are part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// Nothing, after an empty line.
    Nothing,
    /// Lines of aider, each a record.
    Lines,
    /// A message of aider with several lines: only the last one ends with two spaces.
    Message,
    Prompt,
    Reply,
}

/// Rewrites a chat history as lines of JSON while it is read.
pub struct HistoryLines<R> {
    source: BufReader<R>,
    /// The folder of the project, if the file has its usual name there.
    project: Option<String>,
    session: String,
    /// The start times of earlier sessions: two may begin in the same second.
    times: Vec<String>,
    typed: TypedTimes,
    open: Open,
    text: String,
    out: Vec<u8>,
    given: usize,
}

impl<R: Read> HistoryLines<R> {
    pub fn new(path: &Path, source: R) -> HistoryLines<R> {
        let is_usual = path.file_name().is_some_and(|name| name == FILE_NAME);
        let folder = path.parent().filter(|_| is_usual);
        let project = folder.map(|folder| {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
        });
        HistoryLines {
            source: BufReader::new(source),
            project: project.map(|folder| folder.to_string_lossy().into_owned()),
            session: String::new(),
            times: Vec::new(),
            typed: if is_usual { TypedTimes::beside(path) } else { TypedTimes::default() },
            open: Open::Nothing,
            text: String::new(),
            out: Vec::new(),
            given: 0,
        }
    }

    fn take(&mut self, line: &str) {
        let own = line.strip_suffix("  ");
        let is_after_gap = self.open != Open::Lines && self.text.ends_with("\n\n")
            || matches!(self.open, Open::Nothing);
        if let Some(time) = line.strip_prefix(START).filter(|_| is_after_gap).and_then(time_of) {
            self.close();
            return self.start(time);
        }
        if self.open == Open::Message {
            self.add(own.unwrap_or(line));
            if own.is_some() {
                self.close();
                self.open = Open::Lines;
            }
            return;
        }
        let prompt = own.and_then(|own| own.strip_prefix("####"));
        if let Some(text) = prompt {
            if self.open != Open::Prompt {
                self.close();
            }
            self.open = Open::Prompt;
            return self.add(text.strip_prefix(' ').unwrap_or(text));
        }
        if let Some(text) = own.and_then(|own| own.strip_prefix('>')) {
            self.close();
            self.open = Open::Lines;
            return self.write("line", text.strip_prefix(' ').unwrap_or(text));
        }
        // A reply always begins after an empty line.
        if let Some(text) = line.strip_prefix("> ").filter(|_| self.open == Open::Lines) {
            self.open = Open::Message;
            return self.add(text);
        }
        match self.open {
            Open::Reply => self.add(line),
            Open::Nothing | Open::Lines | Open::Prompt | Open::Message => {
                if line.is_empty() {
                    self.close();
                } else {
                    self.close();
                    self.open = Open::Reply;
                    self.add(line);
                }
            }
        }
    }

    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes what is open.
    fn close(&mut self) {
        let text = std::mem::take(&mut self.text);
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing | Open::Lines => {}
            Open::Message => self.write("line", text.trim_end_matches('\n')),
            Open::Prompt => self.write("prompt", text.trim_end_matches('\n')),
            Open::Reply => self.write("reply", text.trim()),
        }
    }

    fn start(&mut self, time: DateTime) {
        let written = time.to_string();
        let before = self.times.iter().filter(|held| **held == written).count();
        let folder = self.project.as_deref().and_then(|project| project.rsplit('/').next());
        self.session = match folder {
            Some(folder) => format!("{written}.{folder}"),
            None => written.clone(),
        };
        if before > 0 {
            self.session.push_str(&format!(".{}", before + 1));
        }
        self.times.push(written);
        self.typed.begin_session(time);
        let started = local(time);
        let (session, project) = (self.session.clone(), self.project.clone());
        let project = project.as_deref();
        let (text, at) = (None, None);
        self.put(&Record { aider: "start", session: &session, text, started, project, at });
    }

    fn write(&mut self, kind: &str, text: &str) {
        let session = self.session.clone();
        let at = match kind {
            "prompt" => self.typed.take_prompt(text).and_then(local),
            _ => None,
        };
        if let Some(question) = answered_question(text).filter(|_| kind == "line") {
            self.typed.pass_answer(question.answer);
        }
        let (text, started, project) = (Some(text), None, None);
        self.put(&Record { aider: kind, session: &session, text, started, project, at });
    }

    fn put(&mut self, record: &Record<'_>) {
        if let Ok(line) = serde_json::to_vec(record) {
            self.out.extend(line);
            self.out.push(b'\n');
        }
    }

    /// The end of the file so far. A reply may still grow, so its line has no end yet. A prompt is
    /// written at once.
    fn finish(&mut self) {
        let may_grow = matches!(self.open, Open::Reply | Open::Message);
        self.close();
        if may_grow && self.out.last() == Some(&b'\n') {
            self.out.pop();
        }
    }
}

impl<R: Read> Read for HistoryLines<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() {
            self.out.clear();
            self.given = 0;
            let mut line = Vec::new();
            if self.source.read_until(b'\n', &mut line)? == 0 {
                self.finish();
                if self.out.is_empty() {
                    return Ok(0);
                }
                break;
            }
            let line = String::from_utf8_lossy(&line);
            self.take(line.trim_end_matches(['\n', '\r']));
        }
        let rest = &self.out[self.given..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

/// The local time of the machine that wrote it, which is most likely this one.
fn local(time: DateTime) -> Option<String> {
    TimeZone::system().to_timestamp(time).ok().map(|time| time.to_string())
}

fn time_of(text: &str) -> Option<DateTime> {
    DateTime::strptime("%Y-%m-%d %H:%M:%S", text.trim()).ok()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
