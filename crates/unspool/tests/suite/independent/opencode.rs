//! An independent reader of OpenCode's database. It reads the tables of messages and parts, while
//! the product reads the events if there are any. Rows are ordered by the time and id of the
//! message, and the id of the part.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::Kind;

/// The content of one session's rows.
#[derive(Default, Debug)]
pub struct Rows {
    pub session: String,
    pub parent: Option<String>,
    /// Kind and text; for a tool its message and call id.
    pub blocks: Vec<(Kind, String)>,
    /// The output of each call, and whether it failed.
    pub results: BTreeMap<String, (String, bool)>,
    /// Input, output with reasoning, read from the cache, written to the cache.
    pub tokens: (u64, u64, u64, u64),
    /// The user's texts, without synthetic ones.
    pub prompts: Vec<String>,
    pub records: i64,
    pub cost: f64,
}

pub fn opencode(database: &Path) -> Vec<Rows> {
    let connection =
        Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let wanted = "SELECT id, parent_id, time_created, cost FROM session";
    let mut sessions = connection.prepare(wanted).unwrap();
    let mut rows = sessions.query([]).unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let mut session = Rows {
            session: row.get(0).unwrap(),
            parent: row.get(1).unwrap(),
            cost: row.get(3).unwrap(),
            ..Rows::default()
        };
        let created: i64 = row.get(2).unwrap();
        first_version(&connection, &mut session, created);
        second_version(&connection, &mut session);
        let count = "SELECT count(*) FROM event WHERE aggregate_id = ?1";
        session.records =
            connection.query_row(count, [&session.session], |row| row.get(0)).unwrap();
        found.push(session);
    }
    found
}

fn values(connection: &Connection, wanted: &str, of: &str) -> Vec<(String, i64, Value)> {
    let mut rows = connection.prepare(wanted).unwrap();
    let found = rows.query_map([of], |row| {
        let text: String = row.get(2)?;
        Ok((row.get(0)?, row.get(1)?, serde_json::from_str(&text).unwrap()))
    });
    found.unwrap().map(Result::unwrap).collect()
}

fn first_version(connection: &Connection, session: &mut Rows, created: i64) {
    let messages = "SELECT id, time_created, data FROM message WHERE session_id = ?1 \
         ORDER BY time_created, id";
    for (message, sent, info) in values(connection, messages, &session.session) {
        let of_user = info["role"] == "user";
        // Messages copied by a fork are counted in the original session.
        if !of_user && sent >= created {
            count(&mut session.tokens, &info["tokens"]);
        }
        let parts = "SELECT id, 0, data FROM part WHERE message_id = ?1 ORDER BY id";
        for (_, _, part) in values(connection, parts, &message) {
            let text = part["text"].as_str().unwrap_or_default().to_owned();
            let hidden = part["synthetic"] == true || text.is_empty();
            match part["type"].as_str().unwrap() {
                "text" if hidden => {}
                "text" if of_user => session.prompts.push(text),
                // Summaries are not replies.
                "text" if info["summary"] == true => {}
                "text" => session.blocks.push((Kind::Text, text)),
                "reasoning" if !hidden => session.blocks.push((Kind::Reasoning, text)),
                "tool" => {
                    let call = format!("{message}/{}", part["callID"].as_str().unwrap());
                    session.blocks.push((Kind::Tool, call.clone()));
                    let state = &part["state"];
                    let wrong = state["status"] == "error";
                    let output_text = if wrong { &state["error"] } else { &state["output"] };
                    let output_text = output_text.as_str().unwrap_or_default().to_owned();
                    let cut = output_text.contains("<shell_metadata>");
                    let wrong = wrong || part["tool"] == "invalid" || cut;
                    session.results.insert(call, (output_text, wrong));
                }
                _ => {}
            }
        }
    }
}

fn second_version(connection: &Connection, session: &mut Rows) {
    let messages = "SELECT id, seq, data FROM session_message WHERE session_id = ?1 ORDER BY seq";
    for (message, _, data) in values(connection, messages, &session.session) {
        if let Some(text) = data["text"].as_str() {
            session.prompts.push(text.to_owned());
        }
        count(&mut session.tokens, &data["tokens"]);
        for content in data["content"].as_array().into_iter().flatten() {
            let text = content["text"].as_str().unwrap_or_default().to_owned();
            match content["type"].as_str().unwrap() {
                "text" => session.blocks.push((Kind::Text, text)),
                "reasoning" => session.blocks.push((Kind::Reasoning, text)),
                "tool" => {
                    let call = format!("{message}/{}", content["id"].as_str().unwrap());
                    session.blocks.push((Kind::Tool, call.clone()));
                    let state = &content["state"];
                    let wrong = state["status"] == "error";
                    let texts: Vec<&str> = state["content"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(|content| content["text"].as_str())
                        .collect();
                    let error = state["error"]["message"].as_str().unwrap_or_default();
                    let output_text = if wrong { error.to_owned() } else { texts.join("\n") };
                    session.results.insert(call, (output_text, wrong));
                }
                other => panic!("{other} is no kind that this reader knows"),
            }
        }
    }
}

fn count(sum: &mut (u64, u64, u64, u64), tokens: &Value) {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    sum.0 += number(&tokens["input"]);
    sum.1 += number(&tokens["output"]) + number(&tokens["reasoning"]);
    sum.2 += number(&tokens["cache"]["read"]);
    sum.3 += number(&tokens["cache"]["write"]);
}
