//! An independent reader of Pi's session file: entries in the order of the file, whatever branch they
//! are on.

use serde_json::Value;
use unspool_model::part::ToolState;

use super::raw_session::{RawSession, state};
use super::{Kind, Lines, Tokens, add, number, string};

pub fn session(bytes: &[u8]) -> RawSession {
    let mut raw = RawSession::default();
    let records = Lines::of(bytes).values;
    let head = records.iter().find(|record| record["type"] == "session");
    let made = head.filter(|head| !head["parentSession"].is_null());
    let made = made.map(|head| string(&head["timestamp"]).to_owned());
    for record in &records {
        // What a fork copied is older than its file.
        let is_own = made.as_ref().is_none_or(|made| string(&record["timestamp"]) >= &**made);
        let message = &record["message"];
        let used = if message.is_null() { &record["usage"] } else { &message["usage"] };
        if is_own && !used.is_null() {
            let tokens = Tokens {
                input: number(&used["input"]),
                output: number(&used["output"]),
                cache_read: number(&used["cacheRead"]),
                cache_creation: number(&used["cacheWrite"]),
            };
            raw.tokens = add(raw.tokens, tokens);
        }
        match string(&message["role"]) {
            "assistant" => reply(message, &mut raw),
            "toolResult" => result(message, &mut raw),
            // A command of the user, named by its time.
            "bashExecution" => {
                let id = message["timestamp"].to_string();
                let state = match message["cancelled"] == true {
                    true => ToolState::Interrupted,
                    false => state(message["exitCode"] == 0),
                };
                raw.call(&id);
                raw.result(&id, string(&message["output"]), state);
            }
            _ => {}
        }
    }
    raw
}

fn reply(message: &Value, raw: &mut RawSession) {
    for block in message["content"].as_array().into_iter().flatten() {
        match string(&block["type"]) {
            // Its text is a placeholder.
            "thinking" if block["redacted"] == true => {
                raw.blocks.push((Kind::Reasoning, String::new()));
            }
            "thinking" => raw.say(Kind::Reasoning, string(&block["thinking"])),
            "text" => raw.say(Kind::Text, string(&block["text"])),
            "toolCall" => raw.call(string(&block["id"])),
            _ => {}
        }
    }
}

fn result(message: &Value, raw: &mut RawSession) {
    let text = string(&message["content"][0]["text"]);
    // A sub-agent that failed does not make the result an error.
    let is_error = message["isError"] == true;
    let is_stopped = is_error && text.trim_end().ends_with("Command aborted");
    let state = if is_stopped { ToolState::Interrupted } else { state(!is_error) };
    raw.result(string(&message["toolCallId"]), text, state);
}
