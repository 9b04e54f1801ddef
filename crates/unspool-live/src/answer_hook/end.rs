//! When a question is over without an answer of ours: what other hooks of the session and its log
//! say. A line that says nothing about the question is no end.

use serde_json::Value;

use super::question::HookQuestion;
use crate::protocol::ANSWERED;
use crate::question_host::QuestionEnd;

impl HookQuestion {
    /// What the payload of another hook says.
    pub fn end_by_payload(&self, payload: &Value) -> Option<QuestionEnd> {
        let text = |name: &str| payload[name].as_str();
        if text("session_id") != Some(&self.session) {
            return None;
        }
        let event = text("hook_event_name")?;
        let of_us = text("agent_id") == self.sub_agent.as_deref();
        match event {
            "PostToolUse" | "PostToolUseFailure" => self.is_call(payload).then(|| self.yes()),
            "PermissionDenied" => self.is_call(payload).then(|| self.no()),
            "Stop" | "StopFailure" if of_us => Some(QuestionEnd::Gone("the turn has ended")),
            "SubagentStop" if of_us && self.sub_agent.is_some() => {
                Some(QuestionEnd::Gone("the turn has ended"))
            }
            // What is typed while a turn runs has the turn's id.
            "UserPromptSubmit" if of_us && text("prompt_id") != self.prompt.as_deref() => {
                Some(QuestionEnd::Gone("the turn has ended"))
            }
            "SessionEnd" => Some(QuestionEnd::Gone("the session has ended")),
            _ => None,
        }
    }

    fn yes(&self) -> QuestionEnd {
        QuestionEnd::Answered(if self.asks_person() { ANSWERED } else { "allowed" })
    }

    fn no(&self) -> QuestionEnd {
        QuestionEnd::Answered(if self.asks_person() { "declined" } else { "refused" })
    }

    /// True if a result says that a person said no. A call that ran and failed was allowed.
    fn is_refusal(&self, record: &Value, block: &Value) -> bool {
        let text = block["content"].as_str().unwrap_or_default();
        block["is_error"] == Value::Bool(true)
            && (self.asks_person()
                || record["toolUseResult"] == "User rejected tool use"
                || text.starts_with("The user doesn't want to proceed"))
    }

    fn is_call(&self, payload: &Value) -> bool {
        match (&self.call, payload["tool_use_id"].as_str()) {
            (Some(call), Some(other)) => call == other,
            (None, _) | (_, None) => {
                payload["tool_name"] == self.tool.as_str() && same_input(&self.input, payload)
            }
        }
    }

    /// What a line of the session's log says.
    pub fn end_by_log(&self, record: &Value) -> Option<QuestionEnd> {
        if record["type"] != "user" {
            return None;
        }
        let content = &record["message"]["content"];
        let is_interruption = |text: &str| text.starts_with("[Request interrupted by user");
        if content.as_str().is_some_and(is_interruption) {
            return Some(QuestionEnd::Answered("interrupted"));
        }
        let call = self.call.as_deref();
        content.as_array().into_iter().flatten().find_map(|block| match block["type"].as_str() {
            Some("tool_result") if call.is_some() && block["tool_use_id"].as_str() == call => {
                let refused = self.is_refusal(record, block);
                Some(if refused { self.no() } else { self.yes() })
            }
            Some("text") if block["text"].as_str().is_some_and(is_interruption) => {
                Some(QuestionEnd::Answered("interrupted"))
            }
            Some(_) | None => None,
        })
    }
}

/// True if a payload has this input. The input of a question has its answers when it is over.
fn same_input(input: &Value, payload: &Value) -> bool {
    let other = &payload["tool_input"];
    input == other || !input["questions"].is_null() && input["questions"] == other["questions"]
}

#[cfg(test)]
#[path = "end_tests.rs"]
mod tests;
