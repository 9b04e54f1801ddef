use std::collections::BTreeMap;

use super::*;
use crate::chat::{MIN_READING_TIME, validate};
use crate::protocol::{FieldValue, UserAnswer};

fn payload(tool: &str, input: Value) -> HookQuestion {
    let payload = json!({"session_id": "s", "cwd": "/w", "hook_event_name": "PermissionRequest",
        "tool_name": tool, "tool_input": input});
    HookQuestion::of_payload(&payload.to_string()).unwrap()
}

fn questions() -> HookQuestion {
    payload(
        "AskUserQuestion",
        json!({"questions": [
            {"question": "Unit?", "header": "Unit", "multiSelect": false, "options": [
                {"label": "Celsius", "description": "Metric"}, {"label": "Fahrenheit"}]},
            {"question": "Outputs?", "header": "Out", "multiSelect": true, "options": [
                {"label": "JSON"}, {"label": "Table"}, {"label": "CSV"}]}]}),
    )
}

fn decide(question: &HookQuestion, answer: &UserAnswer, words: Option<&str>) -> Decision {
    let open = question.open(0);
    let valid = validate(&open, answer, MIN_READING_TIME).unwrap();
    question.decide(&valid, words)
}

fn value(chosen: &[&str], own: Option<&str>) -> FieldValue {
    let chosen = chosen.iter().map(|text| (*text).to_owned()).collect();
    FieldValue { chosen, own_words: own.map(str::to_owned) }
}

fn form(first: FieldValue, second: FieldValue) -> UserAnswer {
    UserAnswer::Form(BTreeMap::from([("0".to_owned(), first), ("1".to_owned(), second)]))
}

fn decision(of: &Decision) -> &Value {
    assert_eq!(of.output["hookSpecificOutput"]["hookEventName"], "PermissionRequest");
    &of.output["hookSpecificOutput"]["decision"]
}

#[test]
fn a_permission_is_allowed_or_refused() {
    let question = payload("Bash", json!({"command": "rm -rf build"}));
    let open = question.open(7);
    assert_eq!((open.text.as_str(), open.since), ("Allow `rm -rf build`?", 7));
    assert_eq!(open.subject["rawInput"]["command"], "rm -rf build");
    let option = |id: &str| UserAnswer::Option(id.to_owned());
    let yes = decide(&question, &option("allow"), Some("ignored"));
    assert_eq!(decision(&yes), &json!({"behavior": "allow"}));
    let no = decide(&question, &option("deny"), None);
    let refused = "The user refused this call.";
    assert_eq!(decision(&no), &json!({"behavior": "deny", "message": refused}));
    let no = decide(&question, &option("deny"), Some(" Use trash. "));
    assert_eq!(decision(&no), &json!({"behavior": "deny", "message": "Use trash."}));
    let declined = decide(&question, &UserAnswer::Decline, None);
    assert_eq!(decision(&declined)["behavior"], "deny");
}

#[test]
fn questions_are_answered_in_the_input_of_the_call() {
    let question = questions();
    let input = question.input.clone();
    let answered = |answer: &UserAnswer| {
        let made = decide(&question, answer, None);
        let made = decision(&made);
        assert_eq!(made["behavior"], "allow");
        assert_eq!(made["updatedInput"]["questions"], input["questions"]);
        made["updatedInput"]["answers"].clone()
    };
    let chosen = form(value(&["Fahrenheit"], None), value(&["JSON", "CSV"], None));
    assert_eq!(answered(&chosen), json!({"Unit?": "Fahrenheit", "Outputs?": "JSON, CSV"}));
    let own = form(value(&[], Some("Kelvin")), value(&["Table"], Some("XML")));
    assert_eq!(answered(&own), json!({"Unit?": "Kelvin", "Outputs?": "Table, XML"}));
    let both = form(value(&["Celsius"], Some("no, Kelvin")), value(&["Table"], None));
    assert_eq!(answered(&both), json!({"Unit?": "no, Kelvin", "Outputs?": "Table"}));
    let declined = decide(&question, &UserAnswer::Decline, Some("Ask me later"));
    assert_eq!(decision(&declined), &json!({"behavior": "deny", "message": "Ask me later"}));
}

#[test]
fn an_answer_that_does_not_fit_is_none() {
    let question = questions();
    let open = question.open(0);
    let refused = |answer: &UserAnswer, now| validate(&open, answer, now).unwrap_err();
    let missing = form(value(&[], None), value(&["JSON"], None));
    assert!(refused(&missing, 1000).contains("needs an answer"));
    let unknown = form(value(&["Kelvin"], None), value(&["JSON"], None));
    assert!(refused(&unknown, 1000).contains("choices"));
    let early = form(value(&["Celsius"], None), value(&["JSON"], None));
    assert!(refused(&early, MIN_READING_TIME - 1).contains("just come"));
    assert!(refused(&UserAnswer::Option("allow".to_owned()), 1000).contains("form"));
}

#[test]
fn edits_are_shown_as_diffs() {
    let input = json!({"file_path": "/w/a.rs", "old_string": "a", "new_string": "b"});
    let subject = payload("Edit", input).open(0).subject;
    let diff = json!([{"type": "diff", "path": "/w/a.rs", "oldText": "a", "newText": "b"}]);
    assert_eq!(subject["content"], diff);
    assert_eq!(subject["rawInput"], json!({"file_path": "/w/a.rs"}));
    let subject = payload("Write", json!({"file_path": "/w/a.rs", "content": "c"})).open(0).subject;
    assert_eq!(subject["content"][0]["newText"], "c");
    let long = "x".repeat(MAX_SUBJECT_BYTES);
    let subject = payload("Bash", json!({"command": long})).open(0).subject;
    assert!(subject["omitted_bytes"].as_u64().is_some());
}

#[test]
fn other_events_are_no_questions() {
    let payload = json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {}});
    assert!(HookQuestion::of_payload(&payload.to_string()).is_none());
    assert!(HookQuestion::of_payload("no JSON").is_none());
}
