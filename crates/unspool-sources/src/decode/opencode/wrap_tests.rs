//! R-X-17: the clock in ids wraps, and order goes by time and position. One session is read from
//! every OpenCode source, with the wrap before each of its ids in turn.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::decoder_tests::outline;
use crate::in_memory::SessionSet;

/// The last wrap of the clock and the next one.
const WRAPS: [&str; 2] = ["2026-08-14T11:19:55.136Z", "2028-10-17T20:04:31.872Z"];

/// The number of messages and parts in the session.
const IDS: i64 = 17;

const EXPECTED_OUTLINE: [&str; 3] = [
    r#"user ["one", "more"] completed: reasoning, early, bash completed, late"#,
    r#"user ["two"] completed: middle, read completed"#,
    r#"user ["three"] completed: last"#,
];

/// A message or a part, as a row of the database.
struct Row {
    id: String,
    at: i64,
    data: Value,
    parts: Vec<Row>,
}

/// `prefix_`, the lower 48 bits of the time in milliseconds and a counter, and a random suffix.
fn id(prefix: &str, at: i64) -> String {
    let made = (at * 0x1000 + 1) & 0xffff_ffff_ffff;
    // Ids of sessions count down.
    let made = if prefix == "ses" { 0xffff_ffff_ffff - made } else { made };
    format!("{prefix}_{made:012x}Zq3ThCbEuKx90w")
}

/// A session. Each id is one second younger than the one before it; the id with the number
/// `first_behind` is the first after the wrap.
struct Session {
    id: String,
    created: i64,
    messages: Vec<Row>,
}

fn session(wrap: i64, first_behind: i64) -> Session {
    let created = wrap - (first_behind + 1) * 1000;
    let mut at = created;
    let mut row = |prefix: &str, data: Value| {
        at += 1000;
        Row { id: id(prefix, at), at, data, parts: Vec::new() }
    };
    let text = |text: &str| json!({"type": "text", "text": text, "time": {"start": 1, "end": 2}});
    let tool = |tool: &str| {
        let state = json!({"status": "completed", "input": {}, "output": "x", "metadata": {}});
        json!({"type": "tool", "callID": "c", "tool": tool, "state": state})
    };
    let thought = json!({"type": "reasoning", "text": "hm", "time": {"start": 1, "end": 2}});
    let turns = [
        (vec![text("one"), text("more")], vec![thought, text("early"), tool("bash"), text("late")]),
        (vec![text("two")], vec![text("middle"), tool("read")]),
        (vec![text("three")], vec![text("last")]),
    ];
    let mut messages = Vec::new();
    for (said, replied) in turns {
        let mut user = row("msg", json!({"role": "user"}));
        user.data["time"] = json!({"created": user.at});
        user.parts = said.into_iter().map(|part| row("prt", part)).collect();
        let mut model = row("msg", json!({"role": "assistant", "parentID": user.id}));
        model.parts = replied.into_iter().map(|part| row("prt", part)).collect();
        let completed = model.parts.last().unwrap().at + 1;
        model.data["time"] = json!({"created": model.at, "completed": completed});
        model.data["finish"] = json!("stop");
        messages.extend([user, model]);
    }
    Session { id: id("ses", created), created, messages }
}

impl Session {
    fn info(&self) -> Value {
        json!({"id": self.id, "directory": "/w", "version": "1.18.33", "time": {"created": self.created}})
    }

    fn message(&self, row: &Row) -> Value {
        let mut info = row.data.clone();
        info["id"] = json!(row.id);
        info["sessionID"] = json!(self.id);
        info
    }

    fn part(&self, message: &Row, row: &Row) -> Value {
        let mut part = self.message(row);
        part["messageID"] = json!(message.id);
        part
    }

    /// The events in order: kinds and bodies.
    fn events(&self) -> Vec<(&'static str, Value)> {
        let mut events =
            vec![("session.created", json!({"sessionID": self.id, "info": self.info()}))];
        for message in &self.messages {
            let mut begun = self.message(message);
            begun["time"].as_object_mut().unwrap().remove("completed");
            begun.as_object_mut().unwrap().remove("finish");
            events.push(("message.updated", json!({"sessionID": self.id, "info": begun})));
            for part in &message.parts {
                let body = json!({"sessionID": self.id, "part": self.part(message, part), "time": part.at});
                events.push(("message.part.updated", body));
            }
            let info = self.message(message);
            events.push(("message.updated", json!({"sessionID": self.id, "info": info})));
        }
        events
    }

    // ── Sources ─────────────────────────────────────────────────────────────────────────────

    /// The database. Rows are stored in id order, so that no reader can rely on row order.
    fn database(&self, folder: &Path, with_events: bool) -> PathBuf {
        let path = folder.join(if with_events { "events.db" } else { "rows.db" });
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "PRAGMA synchronous = off;
                 BEGIN;
                 CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT,
                    version TEXT, time_created INTEGER, time_updated INTEGER);
                 CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
                    data TEXT);
                 CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);",
            )
            .unwrap();
        let row = params![self.id, self.created];
        let wanted = "INSERT INTO session VALUES (?1, NULL, '/w', '1.18.33', ?2, ?2)";
        connection.execute(wanted, row).unwrap();
        let mut messages: Vec<&Row> = self.messages.iter().collect();
        messages.sort_by_key(|message| &message.id);
        for message in messages {
            let row = params![message.id, self.id, message.at, message.data.to_string()];
            connection.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?4)", row).unwrap();
            for part in by_id(&message.parts) {
                let row = params![part.id, message.id, part.data.to_string()];
                connection.execute("INSERT INTO part VALUES (?1, ?2, ?3)", row).unwrap();
            }
        }
        if with_events {
            connection
                .execute_batch(
                    "CREATE TABLE event_sequence (aggregate_id TEXT PRIMARY KEY, seq INTEGER);
                     CREATE TABLE event (id TEXT PRIMARY KEY, aggregate_id TEXT, seq INTEGER,
                        type TEXT, data TEXT);",
                )
                .unwrap();
            let mut events: Vec<_> = self.numbered().collect();
            events.sort_by(|a, b| a.0.cmp(&b.0));
            for (id, seq, kind, body) in events {
                let row = params![id, self.id, seq, format!("{kind}.1"), body.to_string()];
                let wanted = "INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)";
                connection.execute(wanted, row).unwrap();
            }
        }
        connection.execute_batch("COMMIT").unwrap();
        PathBuf::from(format!("{}#{}", path.display(), self.id))
    }

    /// Events with their ids, which also cross the wrap, and their numbers.
    fn numbered(&self) -> impl Iterator<Item = (String, i64, &'static str, Value)> {
        let times = self.created..;
        let events = self.events().into_iter().zip(times.step_by(700)).zip(0..);
        events.map(|(((kind, body), at), seq)| (id("evt", at), seq, kind, body))
    }

    /// As `opencode export` writes it: messages by time, and the parts of each by id.
    fn export(&self, folder: &Path) -> PathBuf {
        let messages = self.messages.iter().map(|message| {
            let parts = by_id(&message.parts).into_iter().map(|part| self.part(message, part));
            json!({"info": self.message(message), "parts": parts.collect::<Vec<_>>()})
        });
        let messages: Vec<Value> = messages.collect();
        let path = folder.join("export.json");
        fs::write(&path, json!({"info": self.info(), "messages": messages}).to_string()).unwrap();
        path
    }

    fn stream(&self, folder: &Path) -> PathBuf {
        let mut text = String::from("data: {\"type\":\"server.connected\",\"properties\":{}}\n\n");
        for (id, _, kind, body) in self.numbered() {
            let event = json!({"id": id, "type": kind, "properties": body});
            text += &format!("data: {event}\n\n");
        }
        let path = folder.join("stream.sse");
        fs::write(&path, text).unwrap();
        path
    }

    /// The output of `run --format json` for the first turn, whose text ends before its tool does.
    fn printed(&self, folder: &Path) -> PathBuf {
        let message = &self.messages[1];
        let line = |kind: &str, at: i64, part: Value| {
            let line = json!({"type": kind, "timestamp": at, "sessionID": self.id, "part": part});
            format!("{line}\n")
        };
        let frame = |rest: &str, at: i64| {
            let mut part = json!({"type": rest, "messageID": message.id, "id": id("prt", at)});
            part["reason"] = json!("stop");
            part
        };
        let mut text = line("step_start", message.at, frame("step-start", message.at + 1));
        for part in message.parts.iter().rev() {
            text += &line("part", part.at, self.part(message, part));
        }
        let end = message.parts.last().unwrap().at + 1;
        text += &line("step_finish", end, frame("step-finish", end));
        let path = folder.join("run.jsonl");
        fs::write(&path, text).unwrap();
        path
    }
}

fn by_id(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| &row.id);
    rows
}

fn outline_of(paths: &[&PathBuf]) -> Vec<String> {
    let mut session_set = SessionSet::default();
    for path in paths {
        session_set.read_file(path, &mut |_| {}).unwrap();
    }
    assert_eq!(session_set.sessions.len(), 1, "{paths:?}");
    outline(&session_set.sessions[0].transcript())
}

/// The clock values of a session's ids, in the order of their creation.
fn clocks(session: &Session) -> Vec<u64> {
    let rows = session.messages.iter();
    let ids = rows.flat_map(|message| [message].into_iter().chain(&message.parts));
    ids.map(|row| super::clock(&row.id).unwrap()).collect()
}

#[test]
fn order_goes_by_time_and_position_wherever_the_clock_of_ids_wraps() {
    // R-X-17
    for wrap in WRAPS {
        let wrap = wrap.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        assert_eq!((id("msg", wrap).get(4..16), wrap % (1 << 36)), (Some("000000000001"), 0));
        for first_behind in 0..=IDS {
            let session = session(wrap, first_behind);
            let clocks = clocks(&session);
            assert_eq!(clocks.len(), usize::try_from(IDS).unwrap());
            // Ids sort in creation order only if all of them are on one side of the wrap.
            let one_side = first_behind == 0 || first_behind == IDS;
            assert_eq!(clocks.is_sorted(), one_side, "{first_behind}");

            let folder = tempfile::tempdir().unwrap();
            let log = session.database(folder.path(), true);
            let rows = session.database(folder.path(), false);
            let export = session.export(folder.path());
            let stream = session.stream(folder.path());
            for paths in [
                &[&log][..],
                &[&rows],
                &[&export],
                &[&stream],
                &[&log, &stream],
                &[&stream, &log],
                &[&rows, &stream],
                &[&stream, &rows],
                &[&stream, &export],
            ] {
                assert_eq!(outline_of(paths), EXPECTED_OUTLINE, "{wrap} {first_behind} {paths:?}");
            }
            let printed = EXPECTED_OUTLINE[0].replace(r#""one", "more""#, "");
            let run = session.printed(folder.path());
            assert_eq!(outline_of(&[&run]), [printed], "{wrap} {first_behind}");
        }
    }
}
