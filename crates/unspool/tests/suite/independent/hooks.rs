//! The permission questions in a capture of hook payloads. A PermissionRequest has no call id; it
//! belongs to the PreToolUse before it with the same tool and input.

use std::path::Path;

use serde_json::Value;

use super::{Lines, bytes_of, string};

#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    pub session_id: String,
    /// The sub-agent that asks, if it is one.
    pub agent_id: Option<String>,
    pub tool_name: String,
    pub tool_input: Value,
    /// `None` without a PreToolUse: versions up to 2.0.x have no call ids in hooks.
    pub tool_use_id: Option<String>,
}

/// Lists the PermissionRequests, in order.
pub fn hook_questions(path: &Path) -> Vec<Question> {
    hook_questions_of(&bytes_of(path))
}

pub fn hook_questions_of(bytes: &[u8]) -> Vec<Question> {
    let mut started: Vec<Value> = Vec::new();
    let mut questions = Vec::new();
    for payload in Lines::of(bytes).values {
        match string(&payload["hook_event_name"]) {
            "PreToolUse" => started.push(payload),
            "PermissionRequest" => {
                // The nearest one: the same command may have been requested before. Each call is
                // asked about once, so a second equal question belongs to an earlier call.
                let same = |call: &Value| {
                    ["session_id", "agent_id", "tool_name", "tool_input"]
                        .iter()
                        .all(|key| call[*key] == payload[*key])
                };
                let call = started.iter().rposition(same).map(|at| started.remove(at));
                let id = call.and_then(|call| call["tool_use_id"].as_str().map(str::to_owned));
                questions.push(Question {
                    session_id: string(&payload["session_id"]).to_owned(),
                    agent_id: payload["agent_id"].as_str().map(str::to_owned),
                    tool_name: string(&payload["tool_name"]).to_owned(),
                    tool_input: payload["tool_input"].clone(),
                    tool_use_id: id,
                });
            }
            _ => {}
        }
    }
    questions
}
