//! What changed when, and who did it and why: a line for each version of an item.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::adaptation::{Item, Trial};
use unspool_store::private_file;

use super::state::VersionedItem;

/// A version of an item.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    pub at: Timestamp,
    pub key: String,
    pub version: u64,
    /// The version of the whole state that has it first.
    pub state: u64,
    pub sha256: String,
    /// `cli`, `page`, `api`, `mcp`, or `file` for what was changed in a file.
    pub who: String,
    /// The finding or the words that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub title: String,
    pub content: String,
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

impl Change {
    pub fn of(
        versioned: &VersionedItem,
        state: u64,
        at: Timestamp,
        who: &str,
        why: Option<&str>,
    ) -> Change {
        let Item { title, content, enabled, trial, .. } = versioned.item.clone();
        let (who, why) = (who.to_owned(), why.map(str::to_owned));
        let (key, sha256, version) = (versioned.key(), versioned.sha256.clone(), versioned.version);
        Change { at, key, version, state, sha256, who, why, title, content, enabled, trial }
    }
}

/// Appends lines in one write, so that no other line stands between.
pub fn append(file: &Path, lines: &[impl Serialize]) -> io::Result<()> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    let mut out = private_file::options().append(true).create(true).open(file)?;
    // A line that a crash cut off must not swallow the next one.
    if !text.is_empty() && !ends_with_newline(file)? {
        text.insert(0, b'\n');
    }
    out.write_all(&text)
}

fn ends_with_newline(file: &Path) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = fs::File::open(file)?;
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == [b'\n'])
}

/// The lines that can be read, and how many cannot.
pub fn lines<T: for<'de> Deserialize<'de>>(file: &Path) -> io::Result<(Vec<T>, usize)> {
    let text = match fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let (mut lines, mut unreadable) = (Vec::new(), 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(line) => lines.push(line),
            Err(_) => unreadable += 1,
        }
    }
    Ok((lines, unreadable))
}
