//! The metadata file that Claude Code (since 2.1.197) writes next to a sub-agent's log:
//! `agent-<id>.meta.json`, one object with the call that started the agent and its description. It
//! is replaced as a whole, at the latest when the agent ends, and may appear before or after the
//! log. It names neither the agent nor its session; these come from the file name and from the log
//! or the folder. The file is read as one line that holds all of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::first_record::first_record;
use super::own_file::{Lines, OwnFile};

/// The file holds a few short fields.
const MAX_META_BYTES: u64 = 1024 * 1024;

pub const FILE: OwnFile = OwnFile {
    is_named: is_agent_meta,
    begins: None,
    lines: Lines::Whole(text),
    beside: Some(|log| meta_of_log(log).into_iter().collect()),
};

/// The line as Claude Code's log decoder reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MetaLine<'a> {
    r#type: &'a str,
    is_sidechain: bool,
    agent_id: &'a str,
    session_id: Option<String>,
    meta: Map<String, Value>,
}

/// True if a path is the metadata file of a sub-agent.
pub fn is_agent_meta(path: &Path) -> bool {
    agent_of(path).is_some()
}

/// The metadata file of a sub-agent's log, if it exists.
pub fn meta_of_log(log: &Path) -> Option<PathBuf> {
    let path = log.with_extension("meta.json");
    let is_meta = log.extension().is_some_and(|form| form == "jsonl") && is_agent_meta(&path);
    (is_meta && path.is_file()).then_some(path)
}

fn agent_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let id = name.strip_prefix("agent-")?.strip_suffix(".meta.json")?;
    (!id.is_empty()).then_some(id)
}

/// The metadata file as one line, or its raw bytes if it is not a JSON object. `None` for any
/// other file.
pub fn text(path: &Path, file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let Some(agent_id) = agent_of(path) else { return Ok(None) };
    let mut held = Vec::new();
    file.take(MAX_META_BYTES).read_to_end(&mut held)?;
    let Ok(meta) = serde_json::from_slice(&held) else { return Ok(Some(held)) };
    let session_id = session_of(path, agent_id);
    let line = MetaLine { r#type: "agent-meta", is_sidechain: true, agent_id, session_id, meta };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    Ok(Some(text))
}

/// The session that started the agent: from the first record of the log, else from the folder.
fn session_of(path: &Path, agent: &str) -> Option<String> {
    let folder = path.parent()?;
    let log = folder.join(format!("agent-{agent}.jsonl"));
    first_record::<FirstRecord>(&log).and_then(|record| record.session_id).or_else(|| {
        let within = folder.file_name().is_some_and(|name| name == "subagents");
        let named = folder.parent().filter(|_| within)?.file_name()?;
        Some(named.to_str()?.to_owned())
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FirstRecord {
    session_id: Option<String>,
}

#[cfg(test)]
#[path = "agent_meta_tests.rs"]
mod tests;
