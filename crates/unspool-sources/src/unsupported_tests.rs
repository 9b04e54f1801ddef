#![allow(clippy::unwrap_used)]

use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::decode::JsonOutline;
use crate::discover::find_files;
use crate::in_memory::{LoadError, SessionSet};
use crate::read::document::DocumentLines;

const THREAD: &str = r#"{"v":7,"id":"T-019b9d03-62e3-772f-9780-3e637f90eaec","created":1767865803494,"messages":[{"role":"user","messageId":0,"content":[{"type":"text","text":"hi"}]}]}"#;

fn of_text(text: &str) -> Option<&'static str> {
    of_record(&JsonOutline::default().read(text).unwrap())
}

#[test]
fn a_thread_of_amp_is_named_and_not_read_as_messages() {
    assert_eq!(of_text(THREAD), Some("a thread of Amp"));
    assert_eq!(of_text(&THREAD.replace("T-0", "T0")), None);
    assert_eq!(of_text(r#"{"id":"T-1","created":1}"#), None);
    let mut session_set = SessionSet::default();
    let lines = DocumentLines::new(THREAD.as_bytes());
    let error = session_set.read(Path::new("t.json"), lines, &mut |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::Unsupported { .. }), "{error}");
    let said = error.to_string();
    assert!(
        said.starts_with("t.json is a thread of Amp, which unspool does not read yet;"),
        "{said}"
    );
    assert!(session_set.sessions.is_empty());
}

#[test]
fn a_database_of_crush_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crush.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE sessions (id); CREATE TABLE messages (id);").unwrap();
    assert_eq!(of_database(&path).unwrap(), None);
    connection
        .execute_batch("CREATE TABLE files (id); CREATE TABLE goose_db_version (id);")
        .unwrap();
    assert_eq!(of_database(&path).unwrap(), Some("a database of Crush"));
    let (files, warnings) = find_files(&path);
    assert!(files.is_empty());
    assert_eq!(warnings[0].what, "a database of Crush, which unspool does not read yet");
    let text = folder.path().join("text.db");
    std::fs::write(&text, "no database").unwrap();
    assert_eq!(of_database(&text).unwrap(), None);
}

#[test]
fn a_database_of_opencode_without_a_table_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE session (id); CREATE TABLE message (id);").unwrap();
    // A view could compute without end.
    connection.execute_batch("CREATE VIEW part AS SELECT 1 AS id").unwrap();
    let (files, warnings) = find_files(&path);
    assert!(files.is_empty());
    assert_eq!(warnings[0].what, "no session is read: it has no table `part`");
    connection.execute_batch("DROP TABLE message").unwrap();
    assert_eq!(missing_table(&path).unwrap(), None, "a database of another program");
}
