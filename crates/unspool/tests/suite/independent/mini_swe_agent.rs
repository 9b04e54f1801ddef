//! An independent reader of mini-swe-agent's trajectories of the chat completions API.

use serde_json::Value;
use unspool_model::part::ToolState;

use super::raw_session::{RawSession, state};
use super::{Kind, Tokens, add, number, string};

/// The command with which the model ends its work.
const SUBMIT: &str = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

/// `None` for a trajectory of another API.
pub fn session(bytes: &[u8]) -> Option<RawSession> {
    let (mut raw, mut submits) = (RawSession::default(), Vec::new());
    // Calls that were not executed: what follows says why.
    let mut refused: Vec<String> = Vec::new();
    let document: Value = serde_json::from_slice(bytes).unwrap();
    for message in document["messages"].as_array()? {
        let response = &message["extra"]["response"];
        match string(&message["role"]) {
            "assistant" => reply(message, response, &mut raw, &mut submits),
            // A reply in a wrong format is kept in the message that says so.
            "user" if !response.is_null() => {
                reply(&response["choices"][0]["message"], response, &mut raw, &mut submits);
            }
            "tool" => {
                let run = &message["extra"];
                let id = string(&message["tool_call_id"]);
                // What a submission printed ended the run; its result is a placeholder.
                let is_submission = submits.iter().any(|submit| submit == id);
                let is_ok = run["returncode"] == 0 && run["exception_info"] == "";
                raw.result(id, string(&run["raw_output"]), state(is_ok || is_submission));
                if run["exception_info"] == "action was not executed" && !is_submission {
                    refused.push(id.to_owned());
                }
            }
            "user" if !message["extra"]["interrupt_type"].is_null() => {
                let state = match string(&message["extra"]["interrupt_type"]) {
                    "UserRejection" => ToolState::Denied,
                    "UserInterruption" => ToolState::Interrupted,
                    _ => ToolState::Completed,
                };
                for id in refused.drain(..) {
                    raw.results.get_mut(&id).unwrap().state = state;
                }
            }
            // The run ends with the command that submits its result.
            "exit" if message["extra"]["exit_status"] == "Submitted" => {
                let last = raw.blocks.last().map(|(_, id)| id.clone()).unwrap_or_default();
                raw.result(&last, "", state(true));
            }
            "user" | "system" | "exit" => {}
            _ => return None,
        }
    }
    document["messages"]
        .as_array()?
        .iter()
        .all(|message| message["object"].is_null())
        .then_some(raw)
}

fn reply(message: &Value, response: &Value, raw: &mut RawSession, submits: &mut Vec<String>) {
    raw.say(Kind::Reasoning, string(&message["reasoning_content"]));
    raw.say(Kind::Text, string(&message["content"]));
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        raw.call(string(&call["id"]));
        if string(&call["function"]["arguments"]).contains(SUBMIT) {
            submits.push(string(&call["id"]).to_owned());
        }
    }
    let used = &response["usage"];
    let cached = number(&used["prompt_tokens_details"]["cached_tokens"]);
    let tokens = Tokens {
        input: number(&used["prompt_tokens"]) - cached,
        output: number(&used["completion_tokens"]),
        cache_read: cached,
        cache_creation: 0,
    };
    raw.tokens = add(raw.tokens, tokens);
}
