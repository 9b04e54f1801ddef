//! `unspool show --follow`: prints what is stored, then what is added, and ends with the session.

use std::io::Read;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;

use jiff::Timestamp;

use crate::harness::{Machine, until};

const LOG: &str = ".codex/sessions/2026/11/16/rollout-2026-11-16T10-00-00-01a0e8a3-0000-7000-8000-000000000001.jsonl";
const ID: &str = "01a0e8a3-0000-7000-8000-000000000001";

/// A record of a Codex log, written now.
pub fn record(kind: &str, payload: &str) -> String {
    let now = Timestamp::now();
    format!("{{\"timestamp\":\"{now}\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
}

pub fn said(text: &str) -> String {
    let content = format!(r#"[{{"type":"output_text","text":"{text}"}}]"#);
    record(
        "response_item",
        &format!(r#"{{"type":"message","role":"assistant","content":{content}}}"#),
    )
}

/// A session with a running turn.
pub fn begin(id: &str) -> String {
    let now = Timestamp::now();
    [
        record(
            "session_meta",
            &format!(
                r#"{{"id":"{id}","timestamp":"{now}","cwd":"/w","originator":"codex_exec","cli_version":"0.166.0","source":"exec"}}"#
            ),
        ),
        record("event_msg", r#"{"type":"task_started","turn_id":"t1"}"#),
        record(
            "response_item",
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on"}]}"#,
        ),
        record("event_msg", r#"{"type":"user_message","message":"Go on"}"#),
        said("The first answer."),
    ]
    .concat()
}

/// The end of the turn.
pub fn end() -> String {
    record("event_msg", r#"{"type":"task_complete","turn_id":"t1"}"#)
}

/// Collects the output of a process while it runs.
fn output(child: &mut Child) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let (mut from, into) = (child.stdout.take().unwrap(), text.clone());
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    });
    text
}

#[track_caller]
fn until_printed(text: &Mutex<String>, wanted: &str) {
    until(wanted, || {
        let printed = text.lock().unwrap().clone();
        if printed.contains(wanted) { Ok(()) } else { Err(printed) }
    });
}

#[test]
fn what_is_added_is_printed_until_the_session_is_over() {
    let machine = Machine::new();
    machine.write(".config/unspool/config.toml", b"idle_after = 6\n");
    machine.write(LOG, begin(ID).as_bytes());
    machine.ok("d", &["sync"]);
    let mut child = machine.command("d", &["show", ID, "--follow"]).spawn().unwrap();
    let text = output(&mut child);
    until_printed(&text, "The first answer.");
    machine.append(LOG, said("The second answer.").as_bytes());
    until_printed(&text, "The second answer.");
    assert!(child.try_wait().unwrap().is_none(), "the turn is running");
    machine.append(LOG, (said("The last answer.") + &end()).as_bytes());
    assert!(child.wait().unwrap().success());
    until_printed(&text, "The last answer.");
    let printed = text.lock().unwrap().clone();
    assert!(!printed.contains('\u{1b}'), "a pipe gets no escapes: {printed:?}");
    for once in ["Go on", "The first answer.", "The second answer.", "The last answer."] {
        let body = printed.split("── Turn").nth(1).unwrap();
        assert_eq!(body.matches(once).count(), 1, "{once}: {printed}");
    }
}

#[test]
fn a_path_cannot_be_followed() {
    let machine = Machine::new();
    machine.write("log.jsonl", begin(ID).as_bytes());
    let path = machine.home().join("log.jsonl");
    let output = machine.run("d", &["show", path.to_str().unwrap(), "--follow"], "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--follow needs a session of the archive"), "{said}");
}
