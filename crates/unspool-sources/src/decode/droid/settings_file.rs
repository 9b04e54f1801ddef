//! The settings file that Droid keeps next to a session file: `<session>.settings.json`, one object
//! with the tokens of the session, its model and its modes. It is replaced as a whole at each step.
//! The session comes from the file name. The file is read as one line that holds all of it, with
//! what the first line of the session file says about other sessions.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::read::first_record::first_record;
use crate::read::own_file::{Lines, OwnFile};
use crate::read::regular_file::open_regular;

/// The file holds a few short fields, and one count of tokens for each sub-agent.
const MAX_SETTINGS_BYTES: u64 = 1024 * 1024;
const SUFFIX: &str = ".settings.json";

pub const FILE: OwnFile = OwnFile {
    is_named: is_settings,
    begins: None,
    lines: Lines::Whole(text),
    beside: Some(|log| settings_of_log(log).into_iter().collect()),
};

/// The line as Droid's log decoder reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SettingsLine<'a> {
    droid: &'a str,
    session: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    calling_session_id: Option<String>,
    /// The session that this one continues after a compaction: its tokens are in the settings of
    /// both.
    #[serde(skip_serializing_if = "Option::is_none")]
    continues: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inherited_usage: Option<Value>,
    settings: Map<String, Value>,
}

/// True if a path is the settings file of a session. The agent's own settings, and those of other
/// agents, are called `settings.json`.
pub fn is_settings(path: &Path) -> bool {
    session_of(path).is_some()
}

/// The settings file of a session file, if it exists.
pub fn settings_of_log(log: &Path) -> Option<PathBuf> {
    let path = log.with_extension("settings.json");
    let is_settings = log.extension().is_some_and(|form| form == "jsonl") && is_settings(&path);
    (is_settings && path.is_file()).then_some(path)
}

/// The session of a settings file. Its name is a UUID.
fn session_of(path: &Path) -> Option<&str> {
    let id = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
    let is_uuid = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_uuid.then_some(id)
}

/// The settings file as one line, or its raw bytes if it is not a JSON object. `None` for any other
/// file.
pub fn text(path: &Path, file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let Some(session) = session_of(path) else { return Ok(None) };
    let mut held = Vec::new();
    file.take(MAX_SETTINGS_BYTES).read_to_end(&mut held)?;
    let Ok(settings) = serde_json::from_slice(&held) else { return Ok(Some(held)) };
    let log = path.with_file_name(format!("{session}.jsonl"));
    let start = first_record::<FirstRecord>(&log).unwrap_or_default();
    let continues = start.parent.filter(|_| start.forked_at_message_id.is_none());
    let inherited_usage = continues.as_ref().and_then(|origin| usage_of(path, origin));
    let line = SettingsLine {
        droid: "settings",
        session,
        calling_session_id: start.calling_session_id,
        continues,
        inherited_usage,
        settings,
    };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    Ok(Some(text))
}

/// The tokens of another session in the same folder.
fn usage_of(path: &Path, session: &str) -> Option<Value> {
    let file = open_regular(&path.with_file_name(format!("{session}{SUFFIX}"))).ok()?;
    let mut settings: Map<String, Value> =
        serde_json::from_reader(file.take(MAX_SETTINGS_BYTES)).ok()?;
    settings.remove("tokenUsage")
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FirstRecord {
    parent: Option<String>,
    forked_at_message_id: Option<String>,
    calling_session_id: Option<String>,
}

#[cfg(test)]
#[path = "settings_file_tests.rs"]
mod tests;
