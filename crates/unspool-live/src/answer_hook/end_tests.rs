use serde_json::json;

use super::*;

fn hook_question(call: Option<&str>, tool: &str, agent: Option<&str>) -> HookQuestion {
    let input = match tool {
        "AskUserQuestion" => json!({"questions": [{"question": "Unit?"}]}),
        _ => json!({"command": "ls"}),
    };
    let payload = json!({"session_id": "s", "hook_event_name": "PermissionRequest", "prompt_id": "p",
        "tool_name": tool, "tool_input": input, "tool_use_id": call, "agent_id": agent});
    HookQuestion::of_payload(&payload.to_string()).unwrap()
}

fn hook(event: &str, more: Value) -> Value {
    let mut payload = json!({"session_id": "s", "hook_event_name": event, "prompt_id": "p"});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    payload
}

const ALLOWED: Option<QuestionEnd> = Some(QuestionEnd::Answered("allowed"));

#[test]
fn other_hooks_say_that_it_is_over() {
    let question = hook_question(Some("t1"), "Bash", None);
    let end = |event: &str, more: Value| question.end_by_payload(&hook(event, more));
    assert_eq!(end("PostToolUse", json!({"tool_use_id": "t1"})), ALLOWED);
    assert_eq!(end("PostToolUseFailure", json!({"tool_use_id": "t1"})), ALLOWED);
    let refused = Some(QuestionEnd::Answered("refused"));
    assert_eq!(end("PermissionDenied", json!({"tool_use_id": "t1"})), refused);
    assert!(end("Stop", json!({})).is_some());
    assert!(end("UserPromptSubmit", json!({"prompt_id": "q"})).is_some());
    assert!(end("SessionEnd", json!({})).is_some());
    // Other calls, sub-agents, what is typed while the turn runs, other sessions.
    assert_eq!(end("PostToolUse", json!({"tool_use_id": "t2"})), None);
    assert_eq!(end("PreToolUse", json!({"tool_use_id": "t1"})), None);
    assert_eq!(end("Stop", json!({"agent_id": "a"})), None);
    assert_eq!(end("UserPromptSubmit", json!({})), None);
    assert_eq!(end("SessionEnd", json!({"session_id": "other"})), None);
}

#[test]
fn a_sub_agent_outlives_the_turn_of_its_session() {
    let question = hook_question(Some("t1"), "Bash", Some("a"));
    let end = |event: &str, more: Value| question.end_by_payload(&hook(event, more));
    assert_eq!(end("Stop", json!({})), None);
    assert_eq!(end("SubagentStop", json!({"agent_id": "b"})), None);
    assert!(end("SubagentStop", json!({"agent_id": "a"})).is_some());
    assert!(end("SessionEnd", json!({})).is_some());
}

#[test]
fn a_call_without_an_id_is_found_by_its_input() {
    let end = |question: &HookQuestion, tool: &str, input: Value| {
        let more = json!({"tool_name": tool, "tool_input": input, "tool_use_id": "t1"});
        question.end_by_payload(&hook("PostToolUse", more))
    };
    let question = hook_question(None, "Bash", None);
    assert_eq!(end(&question, "Bash", json!({"command": "ls"})), ALLOWED);
    assert_eq!(end(&question, "Bash", json!({"command": "pwd"})), None);
    let question = hook_question(None, "AskUserQuestion", None);
    let answered = json!({"questions": [{"question": "Unit?"}], "answers": {"Unit?": "K"}});
    assert_eq!(
        end(&question, "AskUserQuestion", answered),
        Some(QuestionEnd::Answered("answered"))
    );
}

#[test]
fn the_log_says_that_it_is_over() {
    let question = hook_question(Some("t1"), "Bash", None);
    let end = |content: Value, result: Value| {
        let record = json!({"type": "user", "message": {"role": "user", "content": content},
            "toolUseResult": result});
        question.end_by_log(&record)
    };
    let result = |call: &str, error: bool, text: &str| json!([{"type": "tool_result", "tool_use_id": call, "is_error": error, "content": text}]);
    assert_eq!(end(result("t1", false, "ok"), Value::Null), ALLOWED);
    assert_eq!(end(result("t1", true, "Exit code 1"), Value::Null), ALLOWED);
    let refused = Some(QuestionEnd::Answered("refused"));
    let rejected = json!("User rejected tool use");
    assert_eq!(end(result("t1", true, "The user doesn't want to"), rejected), refused);
    assert_eq!(end(result("t2", false, "ok"), Value::Null), None);
    let stopped = json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]);
    let interrupted = Some(QuestionEnd::Answered("interrupted"));
    assert_eq!(end(stopped, Value::Null), interrupted);
    assert_eq!(end(json!("[Request interrupted by user]"), Value::Null), interrupted);
    assert_eq!(end(json!("go on"), Value::Null), None);
    assert_eq!(question.end_by_log(&json!({"type": "assistant", "message": {}})), None);
}
