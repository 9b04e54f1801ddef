//! Traces of agents: an index, and a file for each body that the index names. Each line of the index
//! becomes `{"trace_index": LINE, "payload": BODY}`, so that a decoder needs no other file. Claude Code
//! writes `index.jsonl` beside its bodies, Codex `trace.jsonl` beside the folder `payloads`.
//!
//! A body is opened by the name in the index, inside the folder of the index only. One that is not
//! there, or is no file of its folder, is reported with the line: `{"trace_index": …, "problem": …}`.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::first_record::first_record;
use super::regular_file::open_regular;
use super::restartable_reader::RestartableReader;

/// The name of a file of spans, which has its content itself.
pub const SPANS: &str = "spans.jsonl";

/// A longer body is left out. Models take a few megabytes.
const MAX_BODY_BYTES: u64 = 64 * 1024 * 1024;

/// The parts of an index line that name a body, or say what the index is.
#[derive(Deserialize)]
struct IndexLine {
    request_file: Option<String>,
    rollout_id: Option<String>,
    payload: Option<CodexEvent>,
}

#[derive(Deserialize)]
struct CodexEvent {
    request_payload: Option<CodexPayload>,
}

#[derive(Deserialize)]
struct CodexPayload {
    path: Option<String>,
}

impl IndexLine {
    fn is_of_trace(&self) -> bool {
        self.request_file.is_some() || self.rollout_id.is_some() && self.payload.is_some()
    }

    fn body(self) -> Option<String> {
        let of_codex = || self.payload?.request_payload?.path;
        self.request_file.or_else(of_codex)
    }
}

/// True for a path that may be an index.
pub fn is_index(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| ["index.jsonl", "trace.jsonl"].contains(&name))
}

/// True for a path that may be what an agent writes down when Unspool starts it.
pub fn is_trace(path: &Path) -> bool {
    is_index(path) || path.file_name().is_some_and(|name| name == SPANS)
}

/// True for a body that an index beside it names.
pub fn is_payload(path: &Path) -> bool {
    let (Some(folder), Some(name)) =
        (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return false;
    };
    let is_body = name.ends_with(".request.json") || name.ends_with(".response.json");
    let in_payloads = folder.file_name().is_some_and(|name| name == "payloads");
    let codex = || folder.parent().is_some_and(|trace| trace.join("trace.jsonl").is_file());
    is_body && folder.join("index.jsonl").is_file()
        || in_payloads && codex()
        || name == "manifest.json" && folder.join("trace.jsonl").is_file()
}

/// The lines of an index with their bodies. `None` if the path is no index.
pub fn open(path: &Path) -> io::Result<Option<RestartableReader>> {
    if !is_index(path) || !first_record::<IndexLine>(path).is_some_and(|line| line.is_of_trace()) {
        return Ok(None);
    }
    let path = path.to_owned();
    let begin = move || -> io::Result<Box<dyn Read + Send>> {
        let folder = path.parent().unwrap_or(Path::new("")).canonicalize()?;
        let index = BufReader::new(open_regular(&path)?);
        Ok(Box::new(TraceLines { index, folder, line: Vec::new(), given: 0 }))
    };
    Ok(Some(RestartableReader::new(begin)))
}

struct TraceLines {
    index: BufReader<File>,
    folder: PathBuf,
    /// The line that is being given.
    line: Vec<u8>,
    given: usize,
}

impl Read for TraceLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.line.len() {
            self.line.clear();
            self.given = 0;
            self.index.read_until(b'\n', &mut self.line)?;
            if let Some(whole) = self.line.strip_suffix(b"\n") {
                self.line = with_body(whole, &self.folder);
            }
        }
        let rest = self.line.get(self.given..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

/// An index line with its body. What is no JSON stays as it is, to be reported.
fn with_body(line: &[u8], folder: &Path) -> Vec<u8> {
    let mut whole = Vec::with_capacity(line.len() + 32);
    if serde_json::from_slice::<IgnoredAny>(line).is_err() {
        whole.extend_from_slice(line);
        whole.push(b'\n');
        return whole;
    }
    whole.extend_from_slice(b"{\"trace_index\":");
    whole.extend_from_slice(line);
    let name = serde_json::from_slice(line).ok().and_then(IndexLine::body);
    if let Some(name) = name {
        match body(folder, &name) {
            Ok(body) => {
                whole.extend_from_slice(b",\"payload\":");
                whole.extend_from_slice(&body);
            }
            Err(problem) => {
                let mut text = String::new();
                let _ = write!(text, "{name}: {problem}");
                whole.extend_from_slice(b",\"problem\":");
                whole.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
            }
        }
    }
    whole.extend_from_slice(b"}\n");
    whole
}

/// A body as one line of JSON.
fn body(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    let name = Path::new(name);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err("not a file in the folder of its index".to_owned());
    }
    let path = folder.join(name);
    let found = path.canonicalize().map_err(|error| error.to_string())?;
    if !found.starts_with(folder) {
        return Err("leads out of the folder of its index".to_owned());
    }
    let file = open_regular(&found).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    file.take(MAX_BODY_BYTES + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_BODY_BYTES {
        return Err(format!("has more than the {MAX_BODY_BYTES} bytes that are read"));
    }
    serde_json::from_slice::<IgnoredAny>(&text).map_err(|error| format!("not JSON: {error}"))?;
    Ok(compact(&text))
}

/// Removes the spaces between the tokens.
fn compact(json: &[u8]) -> Vec<u8> {
    let (mut compact, mut in_string, mut escaped) = (Vec::with_capacity(json.len()), false, false);
    for byte in json {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            in_string = *byte == b'"';
        }
        compact.push(*byte);
    }
    compact
}

#[cfg(test)]
#[path = "trace_files_tests.rs"]
mod tests;
