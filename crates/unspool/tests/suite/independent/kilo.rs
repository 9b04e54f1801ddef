//! An independent reader of Kilo's database: parts by the ids of their messages and their own, which
//! are in the order in which they began.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use unspool_model::part::ToolState;

use super::raw_session::{self, RawSession};
use super::{Kind, Tokens, add, number, string};

/// The sessions of a database, by id.
pub fn sessions(path: &Path) -> Vec<(String, RawSession)> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut statement = connection.prepare("SELECT id FROM session ORDER BY id").unwrap();
    let ids = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let ids: Vec<String> = ids.map(Result::unwrap).collect();
    ids.into_iter().map(|id| (id.clone(), session(&connection, &id))).collect()
}

fn session(connection: &Connection, id: &str) -> RawSession {
    let mut raw = RawSession::default();
    let created = "SELECT time_created FROM session WHERE id = ?1";
    let created: i64 = connection.query_row(created, [id], |row| row.get(0)).unwrap();
    let created = u64::try_from(created).unwrap();
    let sql = "SELECT message.data, part.data, part.message_id FROM part
               JOIN message ON message.id = part.message_id
               WHERE part.session_id = ?1 ORDER BY part.message_id, part.id";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([id], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    });
    for row in rows.unwrap() {
        let (message, part, message_id) = row.unwrap();
        let message: Value = serde_json::from_str(&message).unwrap();
        let part: Value = serde_json::from_str(&part).unwrap();
        // The text of a compaction is its summary, which stands for messages.
        let is_summary = message["summary"] == true && part["type"] == "text";
        if message["role"] == "assistant" && !is_summary {
            // Older messages were copied from another session, which counts them.
            let is_own = number(&message["time"]["created"]) >= created;
            if is_own || part["type"] != "step-finish" {
                take(&part, &message_id, &mut raw);
            }
        }
    }
    raw
}

fn take(part: &Value, message: &str, raw: &mut RawSession) {
    match string(&part["type"]) {
        "reasoning" => raw.say(Kind::Reasoning, string(&part["text"])),
        "text" => raw.say(Kind::Text, string(&part["text"])),
        "tool" => {
            let (state, id) = (&part["state"], format!("{message}/{}", string(&part["callID"])));
            raw.call(&id);
            let (held, output) = (state, state["output"].as_str().or(state["error"].as_str()));
            let (text, exit) = (output.unwrap_or_default(), &held["metadata"]["exit"]);
            let state = match string(&held["status"]) {
                // A command that was stopped has no exit code.
                "completed" if text.contains("User aborted the command") && exit.is_null() => {
                    ToolState::Interrupted
                }
                "completed" => {
                    raw_session::state(held["metadata"].get("exit").is_none_or(|exit| *exit == 0))
                }
                "error" if text.contains("rejected permission") => ToolState::Denied,
                "error" if text.contains("aborted") => ToolState::Interrupted,
                "error" => ToolState::Failed,
                _ => return,
            };
            raw.result(&id, text, state);
        }
        "step-finish" => {
            let used = &part["tokens"];
            let tokens = Tokens {
                input: number(&used["input"]),
                output: number(&used["output"]) + number(&used["reasoning"]),
                cache_read: number(&used["cache"]["read"]),
                cache_creation: number(&used["cache"]["write"]),
            };
            raw.tokens = add(raw.tokens, tokens);
        }
        _ => {}
    }
}
