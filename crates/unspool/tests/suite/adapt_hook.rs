//! The hook that prints adaptations: what it prints is found again in what an agent recorded, and
//! whatever is wrong, it prints nothing and does not keep the agent.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::case::root;
use crate::harness::Machine;

const ID: &str = "adn.tools.edit-reread";
const HOOK: [&str; 4] = ["hook", "--adapt", "--agent", "claude-code"];
/// What the hook waits for input or a disk, and the start of a process on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

fn payload() -> String {
    json!({ "session_id": "s", "cwd": "/home/dev/app", "hook_event_name": "SessionStart" })
        .to_string()
}

/// What the hook prints. It never fails and never says anything else.
#[track_caller]
fn prints(machine: &Machine, payload: &[u8]) -> String {
    let mut child = machine.command("d", &HOOK).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(payload);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn enabled() -> (Machine, PathBuf) {
    let machine = Machine::new();
    machine.ok("d", &["adapt", "enable", ID]);
    let folder = machine.data("d").join("adaptations");
    assert!(prints(&machine, payload().as_bytes()).contains(ID));
    (machine, folder)
}

#[test]
fn the_hook_prints_nothing_for_a_payload_that_is_none() {
    let (machine, _) = enabled();
    assert_eq!(prints(&machine, b"{\"session_id\": \"\xff\xfe\"}"), "", "no UTF-8");
    assert_eq!(prints(&machine, &[b'['; 200_000]), "", "too deep");
    // A payload is cut at 8 MB, and half a payload is none.
    let long = json!({ "hook_event_name": "SessionStart", "prompt": "x".repeat(9 << 20) });
    assert_eq!(prints(&machine, long.to_string().as_bytes()), "", "too long");
    // What is not known of a session is not needed.
    let least = json!({ "hook_event_name": "SessionStart", "more": [1] });
    assert!(prints(&machine, least.to_string().as_bytes()).contains(ID));
}

#[test]
fn the_hook_prints_nothing_for_a_state_that_cannot_be_read() {
    let (machine, folder) = enabled();
    let state = folder.join("now.json");
    let whole = fs::read_to_string(&state).unwrap();
    let of = |text: &[u8]| {
        fs::write(&state, text).unwrap();
        prints(&machine, payload().as_bytes())
    };
    assert_eq!(of(b"\xff\xfe{}"), "", "no UTF-8");
    assert_eq!(of(&[b'['; 200_000]), "", "too deep");
    assert_eq!(
        of(whole.replacen("\"items\":[", "\"items\":[{},", 1).as_bytes()),
        "",
        "an item of nothing"
    );
    assert_eq!(
        of(whole.replace("\"enabled\":true", "\"enabled\":false").as_bytes()),
        "",
        "all are off"
    );
    fs::remove_file(&state).unwrap();
    fs::create_dir(&state).unwrap();
    assert_eq!(prints(&machine, payload().as_bytes()), "", "a folder");
    fs::remove_dir(&state).unwrap();
    // A disk that does not answer: nobody writes into this pipe.
    assert!(Command::new("mkfifo").arg(&state).status().unwrap().success());
    let began = Instant::now();
    assert_eq!(prints(&machine, payload().as_bytes()), "", "a pipe");
    assert!(began.elapsed() < PATIENCE);
    fs::remove_file(&state).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(prints(&machine, payload().as_bytes()), "", "no folder");
    fs::remove_dir_all(machine.data("d")).unwrap();
    fs::write(machine.data("d"), "no folder").unwrap();
    assert_eq!(prints(&machine, payload().as_bytes()), "", "a file in place of the data folder");
}

#[test]
fn the_hook_does_not_keep_an_agent_that_sends_nothing() {
    let (machine, _) = enabled();
    let mut child = machine.command("d", &HOOK).spawn().unwrap();
    let held = child.stdin.take();
    let began = Instant::now();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!((said.as_str(), began.elapsed() < PATIENCE), ("", true));
    drop(held);
}

#[test]
fn the_hook_says_nothing_when_nobody_listens_or_notes() {
    let (machine, folder) = enabled();
    // What was delivered cannot be noted: the text is there all the same.
    fs::remove_file(folder.join("delivered.jsonl")).unwrap();
    fs::create_dir(folder.join("delivered.jsonl")).unwrap();
    assert!(prints(&machine, payload().as_bytes()).contains(ID));
    fs::remove_dir(folder.join("delivered.jsonl")).unwrap();
    // Nobody reads what it prints, so nothing was delivered.
    let mut command = Command::new("sh");
    let script = "printf '%s' \"$1\" | \"$2\" --data \"$3\" hook --adapt --agent claude-code >&-";
    command
        .args(["-c", script, "sh", &payload(), env!("CARGO_BIN_EXE_unspool")])
        .arg(machine.data("d"));
    machine.set_environment(&mut command);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

// R-002-13
#[test]
fn a_frame_that_gemini_escaped_is_seen_and_not_altered() {
    let machine = Machine::new();
    let text = "Use Vec<T> & never a <b>.";
    machine.ok("d", &["adapt", "update", ID, "--content", text]);
    machine.ok("d", &["adapt", "enable", ID]);
    let session = "67994e8d-c1c8-461b-920c-88432183e60b";
    let payload = json!({ "session_id": session, "hook_event_name": "SessionStart", "cwd": "/w" });
    let arguments = ["hook", "--adapt", "--agent", "gemini"];
    let printed = machine.run("d", &arguments, &payload.to_string()).stdout;
    let printed: Value = serde_json::from_slice(&printed).unwrap();
    let frame = printed["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(frame.contains(text));
    // The recording has what Gemini does with brackets: the text of the hook had a `<b>`.
    let log =
        fs::read_to_string(root().join("fixtures/gemini/hooks-add-context/log.jsonl")).unwrap();
    let recorded = "The team prefers metric units; &lt;b&gt; is escaped.";
    assert!(log.contains(recorded));
    let escaped = frame.replace('<', "&lt;").replace('>', "&gt;");
    let quoted = Value::from(escaped).to_string();
    // Where an adaptation was seen is looked for in sessions since it was enabled.
    let log = log.replace(recorded, quoted.trim_matches('"')).replace("\"2026-11-", "\"2096-11-");
    machine.write(".gemini/tmp/app/chats/session-2026-11-19T01-27-67994e8d.jsonl", log.as_bytes());
    machine.ok("d", &["sync"]);
    let facts = machine.json("d", &["adapt", "show", ID])["facts"].clone();
    assert_eq!(
        (&facts["delivered_sessions"], &facts["seen_sessions"]),
        (&json!(1), &json!(1)),
        "{facts}"
    );
    let seen = &facts["sessions"][0];
    assert_eq!((&seen["altered"], &seen["seen"]), (&json!(false), &json!(true)), "{facts}");
}
