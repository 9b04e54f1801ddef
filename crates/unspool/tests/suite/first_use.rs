//! What a new user looks for first, in a pseudo-terminal.

use serde_json::{Value, json};

use crate::harness::{Machine, recorded};
use crate::terminal::{Terminal, half_written};

/// A machine without sessions offers the demo, and Enter opens it.
#[test]
fn an_empty_list_offers_the_demo() {
    let machine = Machine::new();
    let mut terminal = Terminal::open(&machine, (110, 30), &[]);
    let screen = terminal.shows("Enter opens the demo");
    assert!(screen.contains("No sessions yet."), "{screen}");
    terminal.press("\r");
    let screen = terminal.shows("The forecast cache keeps missing");
    assert!(screen.contains("demo · "), "the status line says what it is: {screen}");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    // The user's own archive has none of it.
    assert_eq!(machine.sessions("archive").unwrap_or_default(), Vec::<Value>::new());
    let mut terminal = Terminal::open(&machine, (110, 30), &["--demo"]);
    terminal.shows("The forecast cache keeps missing");
}

#[test]
fn the_demo_needs_a_terminal_and_no_command() {
    let machine = Machine::new();
    for (arguments, expected) in [
        (&["--demo"][..], "unspool serve --demo"),
        (&["--demo", "list"], "unspool serve --demo"),
        (&["--demo", "--connect", "http://127.0.0.1:1"], "cannot be used with"),
    ] {
        let output = machine.run("archive", arguments, "");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(expected), "{arguments:?}: {error}");
    }
}

/// The newest session is on the screen while older ones are still being read.
#[test]
fn the_newest_session_comes_first() {
    let machine = Machine::new();
    let log = String::from_utf8(recorded("claude-code/discovery-loop/log.jsonl")).unwrap();
    let id = "112b2623-935f-4249-9e9a-c45c61ba0d98";
    assert!(log.contains(id));
    // Before the newest one, which is listed by what it says.
    let log = log.replace("2026-11-15T", "2026-11-14T");
    for nth in 0..300 {
        let other = format!("{nth:08}{}", &id[8..]);
        let path = format!(".claude/projects/-home-dev-weather-app/{other}.jsonl");
        machine.write(&path, log.replace(id, &other).as_bytes());
        let file = std::fs::File::options().append(true).open(machine.home().join(path)).unwrap();
        let age = std::time::Duration::from_secs(3600 * (nth + 1));
        file.set_modified(std::time::SystemTime::now() - age).unwrap();
    }
    let newest = log_of_command("fine\n", false);
    machine.write(".claude/projects/-home-dev-weather-app/newest.jsonl", &newest);
    let mut terminal = Terminal::open(&machine, (100, 20), &[]);
    // Files are read newest first, two at a time.
    let screen = terminal.shows("Check it");
    assert!(screen.contains("reading more …"), "others are still to come: {screen}");
    assert!(!screen.contains("301 sessions"), "{screen}");
    terminal.hides("reading more …");
    terminal.shows("301 sessions");
}

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
