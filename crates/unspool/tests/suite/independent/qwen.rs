//! An independent reader of Qwen Code's session log: one record per reply, in the order of the file.

use serde_json::Value;
use unspool_model::part::ToolState;

use super::raw_session::{RawSession, state};
use super::{Kind, Lines, Tokens, add, number, string};

pub fn session(bytes: &[u8]) -> RawSession {
    let mut raw = RawSession::default();
    for record in Lines::of(bytes).values {
        // Copies count in the session that they were copied from.
        let is_own = record["forkedFrom"].is_null();
        match string(&record["type"]) {
            "assistant" => reply(&record, is_own, &mut raw),
            "tool_result" => result(&record, &mut raw),
            "system" if is_own => program_call(&record, &mut raw),
            _ => {}
        }
    }
    raw
}

fn reply(record: &Value, is_own: bool, raw: &mut RawSession) {
    for part in record["message"]["parts"].as_array().into_iter().flatten() {
        let call = &part["functionCall"];
        let kind = if part["thought"] == true { Kind::Reasoning } else { Kind::Text };
        match call.is_null() {
            true => raw.say(kind, string(&part["text"])),
            false => raw.call(string(&call["id"])),
        }
    }
    let used = &record["usageMetadata"];
    if is_own && !used.is_null() {
        let cached = number(&used["cachedContentTokenCount"]);
        let tokens = Tokens {
            input: number(&used["promptTokenCount"]) - cached,
            output: number(&used["candidatesTokenCount"]),
            cache_read: cached,
            cache_creation: 0,
        };
        raw.tokens = add(raw.tokens, tokens);
    }
}

fn result(record: &Value, raw: &mut RawSession) {
    let result = &record["toolCallResult"];
    for part in record["message"]["parts"].as_array().into_iter().flatten() {
        let response = &part["functionResponse"];
        let is_stopped = result["executionStatus"] == "cancelled";
        let output = response["response"]["output"].as_str();
        let shown = result["resultDisplay"].as_str().filter(|_| is_stopped);
        let error = response["response"]["error"].as_str().filter(|_| !is_stopped);
        let output = shown.or(output).or(error).unwrap_or_default();
        let state = match result["status"].as_str() {
            // A person refused, or the program did because nobody could be asked.
            Some("cancelled") if result["executionStatus"] == "not_started" => ToolState::Denied,
            Some("error") if result["errorType"] == "execution_denied" => ToolState::Denied,
            Some("cancelled") => ToolState::Interrupted,
            Some(status) => state(status == "success"),
            None => state(response["response"]["error"].is_null()),
        };
        raw.result(string(&response["id"]), output, state);
    }
}

/// Tokens of compactions and of the agents that keep the memory, which have no log of their own.
fn program_call(record: &Value, raw: &mut RawSession) {
    let event = &record["systemPayload"]["uiEvent"];
    let is_program = string(&event["prompt_id"]).starts_with("compress-")
        || string(&event["subagent_name"]).starts_with("managed-auto-memory");
    if event["event.name"] == "qwen-code.api_response" && is_program {
        let cached = number(&event["cached_content_token_count"]);
        let tokens = Tokens {
            input: number(&event["input_token_count"]) - cached,
            output: number(&event["output_token_count"]),
            cache_read: cached,
            cache_creation: 0,
        };
        raw.tokens = add(raw.tokens, tokens);
    }
}
