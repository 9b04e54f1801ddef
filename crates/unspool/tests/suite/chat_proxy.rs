//! `unspool acp`: between an editor and its agent. The editor is this test, the agent is the puppet.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::chat::{Stage, call, permission, puppet, result, signal};
use crate::harness::until;

/// An editor that speaks through the proxy.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Editor {
    fn start(stage: &Stage) -> Editor {
        let mut command = stage.machine.command("data", &["acp", "--"]);
        command.arg(puppet()).arg(stage.machine.home().join("script.json")).arg(stage.log());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Editor { child, input, output, next: 0 }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&line.to_string());
        id
    }

    /// Reads until a message fits, which it returns.
    fn read_until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the agent has ended");
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if fits(&message) {
                return message;
            }
        }
    }

    fn reply(&mut self, id: u64) -> Value {
        self.read_until(|message| message["id"] == id && message["method"].is_null())
    }

    fn begin(&mut self) {
        let id = self.request("initialize", json!({"protocolVersion": 1}));
        self.reply(id);
        let servers = json!([{"name": "db", "command": "db", "args": ["--token=s3cret"],
            "env": [{"name": "KEY", "value": "s3cret"}]}]);
        let id = self.request("session/new", json!({"cwd": "/p", "mcpServers": servers}));
        self.reply(id);
    }

    fn prompt(&mut self, text: &str) -> u64 {
        let blocks = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", json!({"sessionId": "s-1", "prompt": blocks}))
    }

    fn close(mut self) -> Option<i32> {
        drop(self.input.take());
        let mut rest = String::new();
        let _ = self.output.read_to_string(&mut rest);
        self.child.wait().unwrap().code()
    }
}

fn stage(prompts: Value) -> Stage {
    Stage::new(json!({"session": "s-1", "prompts": prompts}))
}

#[test]
fn a_session_of_an_editor_is_recorded() {
    let stage = stage(json!({"go": [{"think": "Hm."}, call("c"), permission("c", "execute"),
        result("c", "completed", "ok"), {"say": "Done."}]}));
    let mut editor = Editor::start(&stage);
    editor.begin();
    let prompt = editor.prompt("go");
    let asked = editor.read_until(|message| message["method"] == "session/request_permission");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"],
        "result": {"outcome": {"outcome": "selected", "optionId": "y"}}});
    editor.send(&answer.to_string());
    assert_eq!(editor.reply(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.close(), Some(0));
    // The agent got what the editor sent, secrets included; the archive and its files did not.
    let received = stage.received();
    assert!(received[1].to_string().contains("s3cret"), "{}", received[1]);
    stage.machine.ok("data", &["sync"]);
    let turns = stage.turns();
    assert_eq!((turns.len(), &turns[0]["state"]), (1, &json!("completed")));
    assert_eq!(turns[0]["user"][0]["text"], "go");
    let parts = turns[0]["parts"].as_array().unwrap();
    let kinds: Vec<&str> = parts.iter().map(|part| part["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "tool", "text"]);
    assert_eq!(parts[1]["answer"]["decision"], "allowed", "{}", parts[1]);
    for entry in fs::read_dir(stage.machine.data("data").join("streams")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        assert!(text.contains("\"name\":\"db\"") && !text.contains("s3cret"), "{text}");
    }
}

/// Bytes pass unchanged: what is not of the protocol, long lines, and both directions at once.
#[test]
fn bytes_pass_unchanged_and_without_limit() {
    let stage = stage(json!({"go": [{"raw": "Warning: \u{1b}[31mnot JSON"}, {"long": 33_600_000},
        {"say": "Done."}]}));
    let mut editor = Editor::start(&stage);
    editor.begin();
    let prompt = editor.prompt("go");
    // An editor that writes much while the agent does: neither waits for the other.
    let padding = "x".repeat(2_000_000);
    let note = json!({"jsonrpc": "2.0", "method": "_editor/note", "params": {"text": padding}});
    let line = note.to_string();
    editor.send(&line);
    let mut warning = String::new();
    editor.output.read_line(&mut warning).unwrap();
    assert_eq!(warning, "Warning: \u{1b}[31mnot JSON\n");
    let mut long = String::new();
    editor.output.read_line(&mut long).unwrap();
    assert_eq!(long.len(), 33_600_001);
    editor.reply(prompt);
    until("the note", || {
        let log = fs::read_to_string(stage.log()).unwrap();
        if log.lines().any(|got| got == line) { Ok(()) } else { Err(log.len()) }
    });
    editor.close();
    stage.machine.ok("data", &["sync"]);
    let turn = stage.turns()[0].to_string();
    assert!(turn.contains("34 MB") && turn.contains("Done."), "{turn}");
}

/// Whatever an editor sends, its bytes pass, and an agent that ignores the end of its input is ended.
#[test]
fn strange_messages_pass_and_a_rude_agent_is_ended() {
    let stage =
        Stage::new(json!({"session": "s-1", "stays": true, "prompts": {"go": [{"say": "Done."}]}}));
    let mut editor = Editor::start(&stage);
    editor.begin();
    for line in [
        r#"{"jsonrpc":"2.0","method":"session/new","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"session/new","params":{"mcpServers":["x",7]}}"#,
        r#"[[1,"session/new",{}]]"#,
    ] {
        editor.send(line);
    }
    let prompt = editor.prompt("go");
    assert_eq!(editor.reply(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.close(), Some(128 + 15));
}

/// An agent that dies: its turn says so, and its code is the proxy's.
#[test]
fn the_end_of_the_agent_is_recorded_and_passed_on() {
    let stage = stage(json!({"go": [{"say": "I will"}, {"exit": 3}]}));
    let mut editor = Editor::start(&stage);
    editor.begin();
    editor.prompt("go");
    assert_eq!(editor.child.wait().unwrap().code(), Some(3));
    stage.machine.ok("data", &["sync"]);
    let turn = stage.turns()[0].clone();
    assert_eq!(turn["state"], "failed", "{turn}");
    assert!(turn.to_string().contains("with code 3"), "{turn}");
}

/// A signal to the proxy ends the agent; a disk that cannot be written stops nothing.
#[test]
fn signals_are_passed_on_and_a_full_disk_stops_nothing() {
    let stage = stage(json!({"go": [{"say": "Done."}]}));
    fs::create_dir_all(stage.machine.data("data")).unwrap();
    fs::write(stage.machine.data("data").join("streams"), "in the way").unwrap();
    let mut editor = Editor::start(&stage);
    editor.begin();
    let prompt = editor.prompt("go");
    assert_eq!(editor.reply(prompt)["result"]["stopReason"], "end_turn");
    signal(editor.child.id(), "-TERM");
    assert_eq!(editor.child.wait().unwrap().code(), Some(128 + 15));
    let missing = stage.machine.run("data", &["acp", "--", "no-such-agent"], "");
    assert_eq!(missing.status.code(), Some(1));
    let text = String::from_utf8_lossy(&missing.stderr);
    assert!(text.contains("no-such-agent") && text.contains("is it installed"), "{text}");
}

/// The same words again, in a session that goes on in another connection, are another turn.
#[test]
fn a_session_that_goes_on_has_its_own_turns() {
    let stage = stage(json!({"go": [{"say": "Done."}]}));
    for method in ["session/new", "session/resume"] {
        let mut editor = Editor::start(&stage);
        let id = editor.request("initialize", json!({"protocolVersion": 1}));
        editor.reply(id);
        let mut params = json!({"cwd": "/p", "mcpServers": []});
        if method == "session/resume" {
            params["sessionId"] = json!("s-1");
        }
        let id = editor.request(method, params);
        editor.reply(id);
        let id = editor.prompt("go");
        editor.reply(id);
        editor.close();
        stage.machine.ok("data", &["sync"]);
    }
    assert_eq!(stage.turns().len(), 2);
}
