//! Continue's index of sessions, `sessions.json` in the folder of its session documents: an array
//! with the start time of each session. It is read as one line per session whose document is there:
//! an entry alone is no session.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

use crate::read::own_file::{Lines, OwnFile};

/// Entries are short, and a user has some thousand sessions at most.
const MAX_INDEX_BYTES: u64 = 16 * 1024 * 1024;

pub const FILE: OwnFile = OwnFile {
    is_named: is_index,
    begins: None,
    lines: Lines::Whole(text),
    beside: Some(|_| Vec::new()),
};

pub fn is_index(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    path.file_name().is_some_and(|name| name == "sessions.json")
        && folder.is_some_and(|name| name == "sessions")
}

/// The index as lines. `None` for any other file.
pub fn text(path: &Path, file: &mut File) -> io::Result<Option<Vec<u8>>> {
    if !is_index(path) {
        return Ok(None);
    }
    let mut held = Vec::new();
    file.take(MAX_INDEX_BYTES).read_to_end(&mut held)?;
    // The file is rewritten in place, and may be cut off now.
    let entries: Vec<Value> = serde_json::from_slice(&held).unwrap_or_default();
    let mut text = Vec::new();
    for entry in entries {
        let id = entry.get("sessionId").and_then(Value::as_str).unwrap_or_default();
        if !id.is_empty() && path.with_file_name(format!("{id}.json")).is_file() {
            serde_json::to_writer(&mut text, &entry)?;
            text.push(b'\n');
        }
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_entry_without_its_document_is_no_session() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = folder.path().join("sessions");
        std::fs::create_dir(&sessions).unwrap();
        let index = sessions.join("sessions.json");
        let lines = || {
            let text = text(&index, &mut File::open(&index).unwrap()).unwrap().unwrap();
            String::from_utf8(text).unwrap()
        };
        std::fs::write(&index, r#"[{"sessionId":"a"},{"sessionId":"b"},{}]"#).unwrap();
        assert_eq!(lines(), "");
        std::fs::write(sessions.join("b.json"), "{}").unwrap();
        assert_eq!(lines(), "{\"sessionId\":\"b\"}\n");
        std::fs::write(&index, r#"[{"sessionId":"b"#).unwrap();
        assert_eq!(lines(), "");
        assert!(!is_index(&folder.path().join("sessions.json")));
    }
}
