use serde_json::json;
use unspool_model::json::Json;
use unspool_model::part::{
    Answer, Decision, EarlierQuestion, Question, QuestionItem, Text, ToolState,
};
use unspool_model::session::TurnState;

use super::*;
use crate::present::agents::tests::turn;

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn call(name: &str, input: serde_json::Value) -> Tool {
    let input = Some(Json::from(input));
    Tool { name: name.into(), input, state: ToolState::Running, ..Tool::default() }
}

fn bash(command: &str) -> Tool {
    call("Bash", json!({ "command": command }))
}

fn permission(tool: Tool) -> Tool {
    let items = vec![QuestionItem { question: "Allow Bash?".into(), ..QuestionItem::default() }];
    let kind = QuestionKind::Permission;
    Tool { question: Some(Question { request_id: None, kind, items }), ..tool }
}

/// A turn of these calls, all made at second 0, looked at later; `running` is a command that runs.
fn activity(tools: Vec<Tool>, after: i64, running: &str) -> Activity {
    let state = |request: &CommandRequest<'_>| match request.command == running {
        true => CommandState::Running,
        false => CommandState::NotSeen,
    };
    look(tools, after, false, &state)
}

fn look(
    tools: Vec<Tool>,
    after: i64,
    permissions_are_reported: bool,
    command_state: &dyn Fn(&CommandRequest<'_>) -> CommandState,
) -> Activity {
    let bodies = tools.into_iter().map(|tool| Body::Tool(Box::new(tool)));
    let mut turn = turn(bodies.collect(), TurnState::Running);
    turn.parts.iter_mut().for_each(|part| part.started = Some(second(0)));
    let moment = Moment {
        now: second(after),
        last_heard: Some(second(0)),
        calls_come_late: false,
        permissions_are_reported,
        command_state,
    };
    Activity::of(&turn, &moment)
}

fn sentence(tools: Vec<Tool>, after: i64, running: &str) -> String {
    activity(tools, after, running).sentence(second(after))
}

#[test]
fn a_permission_names_the_command_and_how_long_it_waits() {
    let waits = || permission(bash("rm -rf build/"));
    assert_eq!(sentence(vec![waits()], 1, ""), "Waiting for you: rm -rf build/");
    assert_eq!(sentence(vec![waits()], 42, ""), "Waiting for you: rm -rf build/ · 40 s");
    assert_eq!(sentence(vec![waits()], 150, ""), "Waiting for you: rm -rf build/ · 2 min");
    assert_eq!(sentence(vec![waits()], 7_500, ""), "Waiting for you: rm -rf build/ · 2 h 5 min");
    let edit = permission(call("Write", json!({ "file_path": "/w/a.ts", "content": "x" })));
    assert_eq!(sentence(vec![edit], 1, ""), "Waiting for you: Write /w/a.ts 1 line");
}

// Gemini writes a call when it has ended: a text may be the last of its turn, or be followed by a
// call that runs or waits.
#[test]
fn a_text_may_be_the_end_where_calls_come_late() {
    let said = |text: &str| Body::Text(Text { text: text.into(), ..Text::default() });
    let turn = turn(vec![said("I run it.")], TurnState::Running);
    let look = |after: i64, calls_come_late: bool, runs: bool| {
        let state = if runs { CommandState::Running } else { CommandState::NotSeen };
        let moment = Moment {
            now: second(after),
            last_heard: Some(second(0)),
            calls_come_late,
            permissions_are_reported: false,
            command_state: &|_| state,
        };
        Activity::of(&turn, &moment)
    };
    let silent = Activity::Silent { since: Some(second(0)) };
    assert_eq!(look(11, true, false), silent);
    for (after, late, runs) in [(9, true, false), (11, true, true), (11, false, false)] {
        assert!(
            matches!(look(after, late, runs), Activity::Working { .. }),
            "{after} {late} {runs}"
        );
    }
}

#[test]
fn the_oldest_question_blocks() {
    let both = vec![permission(bash("first")), permission(bash("second"))];
    assert_eq!(sentence(both, 1, ""), "Waiting for you: first");
}

// No source says that a permission was granted before the command has ended.
#[test]
fn a_command_that_runs_does_not_wait() {
    let granted = vec![permission(bash("npm test"))];
    assert_eq!(sentence(granted.clone(), 300, "npm test"), "Bash: npm test · 5 min");
    assert_eq!(sentence(granted, 300, "npm run"), "Waiting for you: npm test · 5 min");
}

#[test]
fn a_call_that_stands_may_wait() {
    let npm = || vec![bash("npm test")];
    assert_eq!(sentence(npm(), 9, ""), "Bash: npm test");
    assert_eq!(sentence(npm(), 10, ""), "Maybe waiting for you: npm test · 10 s");
    assert_eq!(sentence(npm(), 10, "npm test"), "Bash: npm test · 10 s");
    let read = || vec![call("Read", json!({ "file_path": "/w/a.ts" }))];
    assert_eq!(sentence(read(), 30, ""), "Read: /w/a.ts · 30 s", "reading needs no permission");
    assert_eq!(sentence(read(), 90, ""), "No activity for 1 min");
}

// A command's process is gone before its result is in the log.
#[test]
fn a_command_that_ran_does_not_wait_again() {
    let ran = |request: &CommandRequest<'_>| match request.command {
        "npm test" => CommandState::Ran { last_seen: second(300) },
        _ => CommandState::NotSeen,
    };
    let shown = |tools: Vec<Tool>, after: i64| {
        look(tools, after, false, &ran).sentence(second(after)).replace(" · 5 min", "")
    };
    assert_eq!(shown(vec![bash("npm test")], 301), "Bash: npm test");
    assert_eq!(shown(vec![permission(bash("npm test"))], 301), "Bash: npm test");
    assert_eq!(shown(vec![bash("npm test"), bash("make")], 301), "Bash: npm test, and 1 more");
    // Nothing has happened since, but nobody is needed either.
    assert_eq!(shown(vec![bash("npm test")], 420), "No activity for 7 min");
    // The call behind it may wait after a while.
    let both = vec![bash("npm test"), bash("make")];
    assert_eq!(shown(both, 311), "Maybe waiting for you: make");
}

#[test]
fn a_call_without_a_permission_does_not_wait_where_hooks_report_them() {
    let none = |_: &CommandRequest<'_>| CommandState::NotSeen;
    let shown = |tool: Tool| look(vec![tool], 30, true, &none).sentence(second(30));
    assert_eq!(shown(bash("npm test")), "Bash: npm test · 30 s");
    assert_eq!(shown(permission(bash("npm test"))), "Waiting for you: npm test · 30 s");
}

#[test]
fn each_question_about_a_call_has_its_own_key() {
    let keys = std::cell::RefCell::new(Vec::new());
    let note = |request: &CommandRequest<'_>| {
        keys.borrow_mut().push(request.question);
        CommandState::NotSeen
    };
    let mut call = permission(bash("make"));
    look(vec![call.clone()], 1, false, &note);
    let question = call.question.clone().unwrap();
    let answer = Answer {
        decision: Decision::Allowed,
        text: "allowed".into(),
        choices: Vec::new(),
        observed: true,
        by: None,
    };
    call.earlier = vec![EarlierQuestion { question, answer }];
    look(vec![call], 1, false, &note);
    let mut keys = keys.into_inner();
    keys.dedup();
    assert_eq!(keys.len(), 2);
}

#[test]
fn a_call_behind_one_that_runs_does_not_wait() {
    let both = vec![bash("npm test"), bash("npm publish")];
    assert_eq!(sentence(both, 30, "npm test"), "Bash: npm test, and 1 more · 30 s");
}

#[test]
fn an_agent_that_writes_nothing_is_silent_and_does_not_work() {
    assert_eq!(activity(vec![], 59, ""), Activity::Working { what: "working".into(), since: None });
    assert_eq!(sentence(vec![], 60, ""), "No activity for 1 min");
    assert_eq!(sentence(vec![], 720, ""), "No activity for 12 min");
}

#[test]
fn a_record_from_the_future_does_not_say_that_the_agent_works() {
    assert!(matches!(activity(vec![], -59, ""), Activity::Working { .. }));
    assert!(matches!(activity(vec![], -3600, ""), Activity::Silent { .. }));
    assert!(matches!(activity(vec![bash("npm test")], -3600, ""), Activity::Silent { .. }));
}
