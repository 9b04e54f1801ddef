#![allow(clippy::unwrap_used)]

use std::fs;

use super::*;
use crate::read::source;

const TABLES: &str = "
    CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL,
        title TEXT NOT NULL, version TEXT NOT NULL, time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
        time_updated INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
        time_created INTEGER, time_updated INTEGER, data TEXT);
    CREATE TABLE event_sequence (aggregate_id TEXT PRIMARY KEY, seq INTEGER);
    CREATE TABLE event (id TEXT PRIMARY KEY, aggregate_id TEXT, seq INTEGER, type TEXT, data TEXT);
    CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
    INSERT INTO session VALUES ('ses_a', NULL, '/w', 'A', '1.18.33', 100, 200);
";

fn database(folder: &Path) -> (PathBuf, Connection) {
    let path = folder.join("opencode.db");
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.execute_batch(TABLES).unwrap();
    (path, connection)
}

fn event(connection: &Connection, seq: i64, kind: &str, data: &str) {
    let id = format!("evt_{seq}");
    let row = params![id, "ses_a", seq, kind, data];
    connection.execute("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)", row).unwrap();
    let last = params!["ses_a", seq];
    connection.execute("INSERT OR REPLACE INTO event_sequence VALUES (?1, ?2)", last).unwrap();
}

fn message(connection: &Connection, id: &str, at: i64, data: &str, part: &str) {
    let row = params![id, "ses_a", at, at, data];
    connection.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?4, ?5)", row).unwrap();
    let row = params![format!("prt_{id}"), id, "ses_a", at, at, part];
    connection.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row).unwrap();
}

fn text(path: &Path) -> String {
    let (session, _) = sessions(path).unwrap().remove(0);
    let mut text = String::new();
    source::open(&session).unwrap().text().read_to_string(&mut text).unwrap();
    text
}

const HEAD: &str = r#"{"directory":"/w","id":"ses_a","time":{"created":100},"type":"opencode.session","version":"1.18.33"}"#;

#[test]
fn the_text_of_a_session_grows_at_its_end_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (path, writer) = database(folder.path());
    event(&writer, 0, "session.created.1", "{\"info\":\n{}}");
    let before = text(&path);
    let created = r#"{"id":"evt_0","seq":0,"type":"session.created.1","data":{"info": {}}}"#;
    assert_eq!(before, format!("{HEAD}\n{created}\n"));
    let stamp = sessions(&path).unwrap()[0].1;
    // The writer has it open and continues to write.
    event(&writer, 1, "message.removed.1", r#"{"messageID":"m"}"#);
    let after = text(&path);
    assert!(after.starts_with(&before) && after.len() > before.len());
    assert_ne!(sessions(&path).unwrap()[0].1, stamp);
    assert_eq!(stamp_of(&sessions(&path).unwrap()[0].0), Some(sessions(&path).unwrap()[0].1));
}

#[test]
fn a_session_older_than_events_is_read_from_its_messages() {
    let folder = tempfile::tempdir().unwrap();
    let (path, writer) = database(folder.path());
    // Ordered by time: ids wrapped in August 2026.
    message(&writer, "msg_f", 10, r#"{"role":"user"}"#, r#"{"type":"text"}"#);
    message(&writer, "msg_0", 20, r#"{"role":"assistant"}"#, r#"{"type":"text"}"#);
    let expected = format!(
        "{HEAD}\n{}\n{}\n",
        r#"{"info":{"id":"msg_f","sessionID":"ses_a","role":"user"},"parts":[{"id":"prt_msg_f","messageID":"msg_f","type":"text"}]}"#,
        r#"{"info":{"id":"msg_0","sessionID":"ses_a","role":"assistant"},"parts":[{"id":"prt_msg_0","messageID":"msg_0","type":"text"}]}"#,
    );
    assert_eq!(text(&path), expected);
    // Continued by a version that writes events: those follow the messages.
    let again = r#"{"info":{"id":"msg_f","role":"user","summary":{},"time":{"created":10}}}"#;
    event(&writer, 0, "message.updated.1", again);
    let next = r#"{"info":{"id":"msg_1","role":"user","time":{"created":30}}}"#;
    event(&writer, 1, "message.updated.1", next);
    message(&writer, "msg_1", 30, r#"{"role":"user"}"#, r#"{"type":"text"}"#);
    let grown = text(&path);
    assert!(grown.starts_with(&expected));
    assert_eq!(grown.lines().count(), 5);
}

#[test]
fn nothing_is_made_beside_the_database() {
    // Law 7.
    let folder = tempfile::tempdir().unwrap();
    let (path, writer) = database(folder.path());
    event(&writer, 0, "session.created.1", "{}");
    drop(writer);
    let files = || fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files(), 1, "the writer leaves one file");
    assert_eq!(text(&path).lines().count(), 2);
    assert_eq!(files(), 1);
}

#[test]
fn a_writer_is_not_blocked_by_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let (path, writer) = database(folder.path());
    for seq in 0..2000 {
        event(&writer, seq, "session.created.1", &format!("{{\"text\":\"{:0500}\"}}", seq));
    }
    let mut source = open(&path, "ses_a").unwrap();
    let mut some = [0; 1000];
    source.text().read_exact(&mut some).unwrap();
    writer.busy_timeout(Duration::ZERO).unwrap();
    event(&writer, 2000, "session.created.1", "{}");
    writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut rest = String::new();
    source.text().read_to_string(&mut rest).unwrap();
    let expected = some.iter().filter(|byte| **byte == b'\n').count() + rest.lines().count();
    assert_eq!(expected, 2002, "the head and all events, read in several chunks");
}

#[test]
fn databases_of_others_hold_no_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(sessions(&path).unwrap().is_empty());
    fs::write(&path, "no database").unwrap();
    assert!(sessions(&path).unwrap().is_empty());
    assert!(sessions(&folder.path().join("none.db")).is_err());
}

#[test]
fn a_session_that_is_not_there_is_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    // Characters with a special meaning in a URI.
    let inside = folder.path().join("50% of #1?");
    fs::create_dir(&inside).unwrap();
    let (path, _writer) = database(&inside);
    let error = open(&path, "ses_b").err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(open(&path, "ses_a").is_ok());
}

#[test]
fn a_row_that_cannot_be_read_does_not_cost_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let (path, writer) = database(folder.path());
    message(&writer, "msg_1", 10, r#"{"role":"user"}"#, r#"{"type":"text"}"#);
    message(&writer, "msg_2", 20, r#"{"role":"assistant"}"#, r#"{"type":"text"}"#);
    message(&writer, "msg_3", 30, r#"{"role":"assistant"}"#, r#"{"type":"text"}"#);
    message(&writer, "msg_4", 40, r#"{"role":"assistant"}"#, r#"{"type":"text"}"#);
    let set = "UPDATE part SET data = ?2 WHERE message_id = ?1";
    writer.execute(set, params!["msg_1", [0u8, 255, 10, 254]]).unwrap();
    writer.execute(set, params!["msg_2", br#"{"type":"text","text":"blob"}"#]).unwrap();
    writer.execute(set, params!["msg_3", "half of {"]).unwrap();
    let long = "UPDATE part SET data = zeroblob(200000000) WHERE message_id = ?1";
    writer.execute(long, ["msg_4"]).unwrap();
    let text = text(&path);
    assert!(text.len() < 2000, "the long row was read: {} bytes", text.len());
    for line in text.lines() {
        serde_json::from_str::<Value>(line).expect(line);
    }
    let parts: Vec<Value> = text
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["parts"][0].clone())
        .collect();
    assert_eq!(parts[0]["reason"], "the column is not UTF-8");
    assert_eq!((&parts[0]["type"], &parts[0]["bytes"]), (&"unreadable".into(), &4.into()));
    assert_eq!(parts[1]["text"], "blob");
    assert_eq!(parts[2]["reason"], "the column is not JSON");
    assert_eq!(
        (&parts[3]["reason"], &parts[3]["bytes"]),
        (&"the column is too long".into(), &200_000_000.into())
    );
}
