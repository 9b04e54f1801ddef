//! What a new user looks for first, in a pseudo-terminal.

use serde_json::{Value, json};

use crate::harness::{Machine, recorded};
use crate::terminal::{Terminal, half_written};

/// A log of Claude Code with one command and its output.
fn log_of_command(output: &str, failed: bool) -> Vec<u8> {
    let record = |nth: u32, fields: Value| {
        let uuid = |nth: u32| format!("00000000-0000-4000-8000-{nth:012}");
        let mut record = json!({"parentUuid": (nth > 1).then(|| uuid(nth - 1)), "uuid": uuid(nth),
            "timestamp": format!("2026-11-15T00:00:{nth:02}.000Z"), "isSidechain": false,
            "userType": "external", "cwd": "/home/dev/weather-app", "version": "2.1.325",
            "sessionId": "0f0e0d0c-0b0a-4908-8706-050403020100"});
        record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        format!("{record}\n")
    };
    let assistant = |content: Value, reason: &str| {
        json!({"type": "assistant", "requestId": "req_1", "message": {"id": "msg_1",
            "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": [content], "stop_reason": reason, "usage": {"input_tokens": 3}}})
    };
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash",
        "input": {"command": "make check"}});
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": output,
        "is_error": failed}]);
    let user =
        |content: Value| json!({"type": "user", "message": {"role": "user", "content": content}});
    let records = [
        record(1, user(json!("Check it"))),
        record(2, assistant(call, "tool_use")),
        record(3, user(result)),
        record(4, assistant(json!({"type": "text", "text": "It is broken."}), "end_turn")),
    ];
    records.concat().into_bytes()
}

/// A command that failed shows its end, which has the error; the rest opens.
#[test]
fn a_failed_command_shows_its_end_first() {
    let machine = Machine::new();
    let output: String = (1..=60).map(|nth| format!("line {nth} of the check\n")).collect();
    let log = log_of_command(&format!("Exit code 2\n{output}"), true);
    machine.write(".claude/projects/-home-dev-weather-app/failed.jsonl", &log);
    let mut terminal = Terminal::open(&machine, (100, 40), &[]);
    terminal.shows("Check it");
    terminal.press("\r");
    let screen = terminal.shows("It is broken.");
    assert!(screen.contains("line 60 of the check") && screen.contains("exit code 2"), "{screen}");
    assert!(!screen.contains("line 1 of the check"), "{screen}");
    let rows: Vec<&str> = screen.lines().collect();
    let row = |what: &str| rows.iter().position(|row| row.contains(what));
    let omitted = row("… +52 lines").unwrap_or_else(|| panic!("{screen}"));
    assert!(omitted < row("line 53 of the check").unwrap(), "it stands above: {screen}");
    terminal.press("g");
    terminal.moves_to("make check");
    terminal.press("o");
    terminal.shows("line 1 of the check");
}

/// R-003-43: the agent's tasks are below the transcript, also of a session that is only watched.
#[test]
fn the_tasks_of_a_watched_session_do_not_scroll() {
    let machine = Machine::new();
    machine.keep_turns_open();
    let log = recorded("claude-code/discovery-loop/log.jsonl");
    // As if it were written now: a session is live for half an hour.
    let minute = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:").to_string();
    let log = String::from_utf8(log).unwrap().replace("2026-11-15T00:22:", &minute).into_bytes();
    let (path, later) = half_written(&machine, &log);
    let mut terminal = Terminal::open(&machine, (100, 36), &[]);
    terminal.shows("1 session");
    terminal.press("\r");
    for line in later {
        machine.append(&path, line);
        if String::from_utf8_lossy(line).contains("TaskUpdate") {
            break;
        }
    }
    let screen = terminal.shows("── Tasks · ");
    let from_end = |text: &str| {
        text.lines().rev().position(|row| row.contains("── Tasks · ")).unwrap_or_default()
    };
    let place = from_end(&screen);
    assert!(screen.contains("Reproduce the early expiry"), "{screen}");
    terminal.press("g");
    let screen = terminal.shows("── Turn 1");
    assert_eq!(from_end(&screen), place, "it stays where it is: {screen}");
}
