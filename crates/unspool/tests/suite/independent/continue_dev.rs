//! An independent reader of Continue's session documents: one text and a list of calls per reply.

use serde_json::Value;
use unspool_model::part::ToolState;

use super::raw_session::RawSession;
use super::{Kind, Tokens, add, number, string};

pub fn session(bytes: &[u8]) -> RawSession {
    let mut raw = RawSession::default();
    let mut prompts = 0;
    let document: Value = serde_json::from_slice(bytes).unwrap();
    for item in document["history"].as_array().into_iter().flatten() {
        let message = &item["message"];
        // The summary stands for messages that are gone.
        if message["role"] != "assistant" || !item["conversationSummary"].is_null() {
            continue;
        }
        raw.say(Kind::Text, string(&message["content"]));
        for call in message["toolCalls"].as_array().into_iter().flatten() {
            raw.call(string(&call["id"]));
        }
        for state in item["toolCallStates"].as_array().into_iter().flatten() {
            // A call without an output has not ended.
            let ended = match string(&state["status"]) {
                "done" => ToolState::Completed,
                "errored" => ToolState::Failed,
                "canceled" => ToolState::Denied,
                _ => continue,
            };
            let output = string(&state["output"][0]["content"]);
            raw.result(string(&state["toolCallId"]), output, ended);
        }
        let used = &message["usage"];
        let details = &used["prompt_tokens_details"];
        let written = number(&details["cache_write_tokens"]);
        let cached = number(&details["cached_tokens"]).max(number(&details["cache_read_tokens"]));
        // Only Anthropic counts cached tokens beside the others, and has those that were written.
        let is_beside = !details["cache_write_tokens"].is_null();
        let prompt = number(&used["prompt_tokens"]);
        prompts += prompt;
        let tokens = Tokens {
            input: if is_beside { prompt } else { prompt - cached },
            output: number(&used["completion_tokens"]),
            cache_read: cached,
            cache_creation: written,
        };
        raw.tokens = add(raw.tokens, tokens);
    }
    // After a turn that is over, the sum of the document counts: calls of sub-agents and those before
    // a compaction are in no item.
    let last = document["history"].as_array().into_iter().flatten().rfind(|item| {
        let calls = item["message"]["toolCalls"].as_array();
        let is_users = calls.is_some_and(|calls| {
            calls.iter().any(|call| string(&call["id"]).starts_with("shell-"))
        });
        item["message"]["role"] == "assistant" && !is_users
    });
    let is_over = last.is_some_and(|item| {
        let calls = item["message"]["toolCalls"].as_array().map_or(0, Vec::len);
        !item["message"]["usage"].is_null() && calls == 0
    });
    let sum = &document["usage"];
    if is_over && !sum["promptTokens"].is_null() {
        raw.tokens.input += number(&sum["promptTokens"]) - prompts;
        raw.tokens.output += number(&sum["completionTokens"]) - raw.tokens.output;
    }
    raw
}
