//! An independent reader of Copilot CLI's logs: for each session the blocks in order, the result of
//! each call, and the tokens.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Kind, Lines, Tokens, add, number, string};

#[derive(Default)]
pub struct RawSession {
    /// Text, or the id of a call.
    pub blocks: Vec<(Kind, String)>,
    /// The output that the model got, whether it failed, and the exit code.
    pub results: BTreeMap<String, (String, bool, Option<i64>)>,
    pub tokens: Tokens,
    pub prompts: Vec<String>,
}

/// By session id; a sub-agent has its own.
pub fn sessions(bytes: &[u8]) -> BTreeMap<String, RawSession> {
    let mut own = String::new();
    let mut all: BTreeMap<String, RawSession> = BTreeMap::new();
    for record in Lines::of(bytes).values {
        let data = &record["data"];
        if record["type"] == "session.start" {
            own = string(&data["sessionId"]).to_owned();
        }
        let session = record["agentId"].as_str().unwrap_or(&own).to_owned();
        let raw_session = all.entry(session).or_default();
        match string(&record["type"]) {
            "user.message" if data["delivery"] != "steering" => {
                raw_session.prompts.push(string(&data["content"]).to_owned());
            }
            "assistant.message" => message(data, &mut raw_session.blocks),
            "session.error" => {
                raw_session.blocks.push((Kind::Error, string(&data["message"]).to_owned()));
            }
            "session.usage_record" => {
                let usage = &data["usage"];
                let tokens = Tokens {
                    input: number(&usage["inputTokens"]),
                    output: number(&usage["outputTokens"]),
                    cache_read: number(&usage["cacheReadTokens"]),
                    cache_creation: number(&usage["cacheWriteTokens"]),
                };
                raw_session.tokens = add(raw_session.tokens, tokens);
            }
            "tool.execution_complete" => {
                let failed = data["success"] != true;
                let text =
                    if failed { &data["error"]["message"] } else { &data["result"]["content"] };
                let exit = data["shellExecution"]["exitCode"].as_i64();
                let result = (string(text).to_owned(), failed, exit);
                raw_session.results.insert(string(&data["toolCallId"]).to_owned(), result);
            }
            _ => {}
        }
    }
    all
}

fn message(data: &Value, blocks: &mut Vec<(Kind, String)>) {
    let mut add = |kind: Kind, text: &Value| {
        if !string(text).trim().is_empty() {
            blocks.push((kind, string(text).to_owned()));
        }
    };
    if let Some(ordered) = data["reasoningBlocks"]["orderedBlocks"].as_array() {
        for block in ordered {
            match string(&block["type"]) {
                "thinking" => add(Kind::Reasoning, &block["thinking"]),
                "text" => add(Kind::Text, &block["text"]),
                "tool_use" => add(Kind::Tool, &block["id"]),
                other => panic!("{other}"),
            }
        }
        return;
    }
    add(Kind::Reasoning, &data["reasoningText"]);
    add(Kind::Text, &data["content"]);
    for request in data["toolRequests"].as_array().into_iter().flatten() {
        add(Kind::Tool, &request["toolCallId"]);
    }
}
