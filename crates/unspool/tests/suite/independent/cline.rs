//! An independent reader of Cline's conversations: messages in the order of the document.

use serde_json::Value;
use unspool_model::part::ToolState;

use super::raw_session::{RawSession, state};
use super::{Kind, Tokens, add, number, string};

pub fn session(bytes: &[u8]) -> RawSession {
    let mut raw = RawSession::default();
    let document: Value = serde_json::from_slice(bytes).unwrap();
    let made = string(&document["sessionId"]).split('_').next().and_then(|at| at.parse().ok());
    for message in document["messages"].as_array().into_iter().flatten() {
        let is_error = message["metadata"]["displayRole"] == "error";
        let is_model = message["role"] == "assistant" && !is_error;
        for block in message["content"].as_array().into_iter().flatten() {
            match string(&block["type"]) {
                "thinking" if is_model => raw.say(Kind::Reasoning, string(&block["thinking"])),
                "text" if is_model => raw.say(Kind::Text, string(&block["text"])),
                "tool_use" => raw.call(string(&block["id"])),
                "tool_result" => result(block, &mut raw),
                _ => {}
            }
        }
        let used = &message["metrics"];
        // Older messages were copied, except in a sub-agent, whose id begins with its parent's.
        let is_own = made.is_none_or(|made: u64| number(&message["ts"]) >= made);
        if !used.is_null() && is_own {
            let (read, written) =
                (number(&used["cacheReadTokens"]), number(&used["cacheWriteTokens"]));
            let tokens = Tokens {
                input: number(&used["inputTokens"]) - read - written,
                output: number(&used["outputTokens"]),
                cache_read: read,
                cache_creation: written,
            };
            raw.tokens = add(raw.tokens, tokens);
        }
    }
    raw
}

fn result(block: &Value, raw: &mut RawSession) {
    let content = &block["content"];
    let text = content.as_str().unwrap_or_default();
    let object: Value = serde_json::from_str(text).unwrap_or_default();
    let entries: Vec<&Value> = match content.as_array() {
        Some(entries) => entries.iter().collect(),
        None => vec![&object],
    };
    let is_bad = |entry: &&Value| {
        entry["success"] == false || entry["isError"] == true || entry["error"].is_string()
    };
    let is_ok = block["is_error"] != true && !entries.iter().any(is_bad);
    let says = |words: &str| entries.iter().any(|entry| string(&entry["error"]).contains(words));
    let state = if block["is_error"] == true && says("rejected by the user") {
        ToolState::Denied
    } else if says("Command was aborted") || says("Interactive runtime abort requested") {
        ToolState::Interrupted
    } else {
        state(is_ok)
    };
    let first = entries[0];
    let said = ["result", "text", "error"].iter().find_map(|name| first[*name].as_str());
    let said = said.or(first["content"][0]["text"].as_str());
    let plain = Some(text).filter(|text| !text.starts_with('{'));
    raw.result(string(&block["tool_use_id"]), said.or(plain).unwrap_or_default(), state);
}
