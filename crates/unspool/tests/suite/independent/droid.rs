//! An independent reader of Droid's session files. Tokens are in the settings beside a file, for the
//! session as a whole.

use serde_json::Value;
use unspool_model::part::ToolState;

use super::raw_session::{RawSession, state};
use super::{Kind, Lines, Tokens, number, string};

pub fn session(bytes: &[u8], settings: Option<&[u8]>) -> RawSession {
    let mut raw = RawSession::default();
    let mut refused: Vec<String> = Vec::new();
    for record in Lines::of(bytes).values {
        // The end of the turn says whether a person refused the calls or stopped the turn.
        if record["type"] == "agent_turn_outcome" && record["reason"] == "cancelled" {
            for id in refused.drain(..) {
                raw.results.get_mut(&id).unwrap().state = ToolState::Interrupted;
            }
        }
        let message = &record["message"];
        // What has no model the program wrote itself.
        let is_program = message["modelId"].is_null() && message["openaiMessageId"].is_null();
        for block in message["content"].as_array().into_iter().flatten() {
            match (string(&message["role"]), string(&block["type"])) {
                ("assistant", "thinking") => raw.say(Kind::Reasoning, string(&block["thinking"])),
                ("assistant", "text") if !is_program => raw.say(Kind::Text, string(&block["text"])),
                ("assistant", "tool_use") => raw.call(string(&block["id"])),
                ("user", "tool_result") => {
                    let state = result(block, &mut raw);
                    let id = string(&block["tool_use_id"]).to_owned();
                    refused.extend((state == ToolState::Denied).then_some(id));
                }
                _ => {}
            }
        }
    }
    let settings: Value =
        settings.map(|bytes| serde_json::from_slice(bytes).unwrap()).unwrap_or_default();
    let used = &settings["tokenUsage"];
    raw.tokens = Tokens {
        input: number(&used["inputTokens"]),
        output: number(&used["outputTokens"]),
        cache_read: number(&used["cacheReadTokens"]),
        cache_creation: number(&used["cacheCreationTokens"]),
    };
    raw
}

fn result(block: &Value, raw: &mut RawSession) -> ToolState {
    let text = block["content"].as_str();
    let text = text.or(block["content"][0]["text"].as_str()).unwrap_or_default();
    let timed_out = text.starts_with("Command timed out after ")
        && !text.contains("[Process exited with code ");
    let exit = text.rsplit("[Process exited with code ").next().filter(|_| text.ends_with(']'));
    let is_ok = exit.is_none_or(|code| code == "0]" || !text.contains("[Process exited"));
    let is_ok = is_ok && block["is_error"] != true && !timed_out;
    let refusals =
        ["cancelled by user", "is not permitted in this exec", "insufficient permission"];
    let state = if block["is_error"] == true && refusals.iter().any(|words| text.contains(words)) {
        ToolState::Denied
    } else if block["is_error"] == true && text.contains("terminated by signal") {
        ToolState::Interrupted
    } else {
        state(is_ok)
    };
    raw.result(string(&block["tool_use_id"]), text, state);
    state
}
