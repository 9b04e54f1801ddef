//! `unspool chat` with the puppet, a scripted agent (`tests/puppet`): the real program, real
//! processes, a real archive.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Machine, until};

/// A machine with a puppet and its script.
pub struct Stage {
    pub machine: Machine,
}

impl Stage {
    pub fn new(script: Value) -> Stage {
        let stage = Stage { machine: Machine::new() };
        stage.machine.write("script.json", script.to_string().as_bytes());
        stage
    }

    /// One prompt, `go`, and what the puppet does then.
    fn go(actions: Value) -> Stage {
        Stage::new(json!({"session": "s-1", "prompts": {"go": actions}}))
    }

    pub fn log(&self) -> PathBuf {
        self.machine.home().join("puppet.log")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.command("data", &["chat"]);
        let script = self.machine.home().join("script.json");
        command.args(arguments).arg("--project").arg(self.machine.home());
        command.arg("--").arg(puppet()).arg(script).arg(self.log());
        command
    }

    pub fn chat(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The lines of `--json`.
    fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        json_lines(&self.chat(&[arguments, &["--json"]].concat()))
    }

    /// What the puppet got. It writes while this reads: a line without its end is not yet there.
    pub fn received(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn answers(&self) -> Vec<Value> {
        let received = self.received().into_iter();
        received
            .filter(|line| line["method"].is_null())
            .map(|line| line["result"].clone())
            .collect()
    }

    pub fn turns(&self) -> Vec<Value> {
        let shown = self.machine.json("data", &["show", "s-1"]);
        shown["turns"].as_array().unwrap().clone()
    }

    pub fn chats(&self) -> Vec<Value> {
        let listed = self.machine.json("data", &["chat", "--list"]);
        listed.as_array().unwrap().clone()
    }

    /// Ends what still runs. A chat without a client ends by itself after its turn, so it may be
    /// gone between the list and the command.
    pub fn end_chats(&self) {
        until("the end of all chats", || {
            let chats = self.chats();
            for chat in &chats {
                self.machine.run("data", &["chat", "--end", chat["id"].as_str().unwrap()], "");
            }
            if chats.is_empty() { Ok(()) } else { Err(chats) }
        });
    }
}

/// The newest build of the puppet: cargo puts all test targets into one folder.
pub fn puppet() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let built = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("puppet-") && !name.contains('.')
    });
    let newest = built.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.unwrap_or_else(|| panic!("build the puppet: cargo test --test suite --test puppet"))
}

fn json_lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The names of the lines, in order.
fn names(lines: &[Value]) -> Vec<String> {
    let name = |line: &Value| line.as_object().unwrap().keys().next().unwrap().clone();
    lines.iter().map(name).collect()
}

pub fn permission(call: &str, kind: &str) -> Value {
    json!({"permission": {
        "toolCall": {"toolCallId": call, "title": "cargo test", "kind": kind,
            "rawInput": {"command": "cargo test"}},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
            {"optionId": "n", "name": "No", "kind": "reject_once"}]}})
}

pub fn call(call: &str) -> Value {
    json!({"call": {"toolCallId": call, "title": "cargo test", "kind": "execute",
        "status": "pending", "rawInput": {"command": "cargo test"}}})
}

pub fn result(call: &str, status: &str, text: &str) -> Value {
    json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status,
        "content": [{"type": "content", "content": {"type": "text", "text": text}}]}})
}

#[test]
fn a_reply_is_printed_and_in_the_archive() {
    let stage =
        Stage::go(json!([{"think": "Let me see."}, call("c"), result("c", "completed", "ok"),
        {"say": "All tests "}, {"say": "pass."}]));
    let output = stage.chat(&["-p", "go"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "All tests pass.\n");
    assert_eq!(stderr(&output), "");
    let turns = stage.turns();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["state"], "completed");
    let kinds: Vec<&str> =
        turns[0]["parts"].as_array().unwrap().iter().map(|p| p["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "tool", "text"]);
    assert_eq!(turns[0]["user"][0]["text"], "go");
    // Nothing is left but the capture and the archive.
    assert!(stage.chats().is_empty());
    // The message may come from standard input.
    let mut child = stage.command(&["-p", "-"]);
    let mut child = child.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"go").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn json_lines_have_the_parts_of_the_archive_in_order() {
    let stage = Stage::go(json!([{"think": "Hm."}, call("c"), permission("c", "execute"),
        {"sleep": 300}, result("c", "completed", "ok"), {"say": "Done."}]));
    let lines = stage.lines(&["-p", "go", "--permissions", "allow"]);
    let names = names(&lines);
    assert_eq!(names.first().map(String::as_str), Some("chat"));
    assert_eq!(names[1], "start");
    assert_eq!(names.last().map(String::as_str), Some("end"));
    assert!(names.contains(&"answered".to_owned()));
    let answered = lines.iter().find(|line| line["answered"].is_object()).unwrap();
    assert_eq!(answered["answered"]["by"], "rule");
    let parts: Vec<Value> = lines
        .iter()
        .filter(|line| line["part"].is_object())
        .map(|line| {
            let mut part = line["part"].clone();
            assert_eq!(part.as_object_mut().unwrap().remove("turn"), Some(json!(1)));
            part
        })
        .collect();
    assert_eq!(Value::Array(parts), stage.turns()[0]["parts"]);
    let end = &lines.last().unwrap()["end"];
    assert_eq!((&end["state"], &end["stop_reason"]), (&json!("completed"), &json!("end_turn")));
    assert_eq!(end["turn"], 1);
}

/// Law 7 of the chat: nobody but a person or a rule of theirs says yes.
#[test]
fn chat_law_7_nobody_but_a_rule_says_yes() {
    for (rule, kind, expected) in [
        (&[][..], "execute", "n"),
        (&["--permissions", "allow-reads"][..], "read", "y"),
        (&["--permissions", "allow-reads"][..], "edit", "n"),
        (&["--permissions", "allow"][..], "edit", "y"),
    ] {
        let stage = Stage::go(json!([permission("c", kind), {"say": "ok"}]));
        let output = stage.chat(&[&["-p", "go"], rule].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("Allow cargo test?"), "{}", stderr(&output));
        assert_eq!(stage.answers()[0]["outcome"]["optionId"], expected, "{rule:?} {kind}");
        let tool = &stage.turns()[0]["parts"][0];
        let decision = if expected == "y" { "allowed" } else { "denied" };
        assert_eq!(tool["answer"]["decision"], decision, "{tool}");
        assert_eq!(tool["answer"]["by"], "rule", "{tool}");
    }
}

#[test]
fn answers_may_come_on_standard_input() {
    let form = json!({"form": {"mode": "form", "message": "Which?", "requestedSchema": {"properties":
        {"unit": {"type": "string", "oneOf": [{"const": "c", "title": "Celsius"}]}}}}});
    let stage = Stage::go(json!([permission("c", "execute"), form, permission("d", "edit"),
        {"say": "ok"}]));
    let mut child = stage.command(&["-p", "go", "--json", "--permissions", "ask"]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = [
        json!({"answer": {"question": "0", "answer": {"option": "y"}}}),
        json!({"answer": {"question": "1", "answer": {"form": {"unit": {"chosen": ["c"]}}}}}),
    ];
    let ids = ["0", "1"];
    for (nth, line) in lines.iter().enumerate() {
        until("a question", || {
            let asked = fs::read_to_string(stage.log()).unwrap_or_default();
            // The puppet asks one after the other.
            let open = stage.chats().first().map_or(0, |chat| {
                chat["state"]["questions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|question| question["id"] == ids[nth])
                    .count()
            });
            if open == 1 { Ok(()) } else { Err(asked) }
        });
        std::io::Write::write_all(&mut input, format!("{line}\n").as_bytes()).unwrap();
    }
    // No more answers: what is asked then is declined.
    until("the last question", || {
        let open = stage.chats().first().map_or(0, |chat| {
            chat["state"]["questions"].as_array().unwrap().iter().filter(|q| q["id"] == "2").count()
        });
        if open == 1 { Ok(()) } else { Err(open) }
    });
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let answers = stage.answers();
    assert_eq!(answers[0]["outcome"]["optionId"], "y");
    assert_eq!(answers[1], json!({"action": "accept", "content": {"unit": "c"}}));
    assert_eq!(answers[2]["outcome"]["outcome"], "cancelled");
    let questions = json_lines(&output).iter().filter(|line| line["question"].is_object()).count();
    assert_eq!(questions, 3);
}

/// What cannot start, and what is no agent, says why and leaves no turn (R-004-24).
#[test]
fn chat_law_10_a_prompt_that_was_not_sent_leaves_no_turn() {
    for (script, sentence) in [
        (
            json!({"start": [{"stderr": "node: version 18 is too old"}, {"exit": 1}]}),
            "version 18 is too old",
        ),
        (json!({"initialize": {"protocolVersion": 2}}), "speaks version 2"),
        (json!({"refuse": {"code": -32000, "message": "Authentication required"}}), "log in"),
        (
            json!({"refuse": {"code": -32603, "message": "Internal error",
            "data": {"details": "no disk"}}}),
            "no disk",
        ),
        (
            json!({"start": [{"flood": 0}, {"long": 1_200_000}], "initialize": null}),
            "does not speak",
        ),
    ] {
        let stage = Stage::new(script);
        let output = stage.chat(&["-p", "go"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(sentence), "{}", stderr(&output));
        let prompts = stage.received().iter().any(|line| line["method"] == "session/prompt");
        assert!(!prompts, "the message was not sent");
        assert_eq!(stage.machine.sessions("data").unwrap_or_default(), Vec::<Value>::new());
    }
    let machine = Machine::new();
    let missing = machine.run("data", &["chat", "-p", "go", "--", "no-such-agent"], "");
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("is it installed"), "{}", stderr(&missing));
    let missing = machine.run("data", &["chat", "-p", "go", "--agent", "gemini"], "");
    assert!(stderr(&missing).contains("npm install -g @google/gemini-cli"), "{}", stderr(&missing));
    let unknown = machine.run("data", &["chat", "-p", "go", "--agent", "hal"], "");
    assert!(stderr(&unknown).contains("claude-code, codex"), "{}", stderr(&unknown));
    let folder = machine.run("data", &["chat", "-p", "go", "--project", "/no/such", "--", "x"], "");
    assert!(stderr(&folder).contains("is not a folder"), "{}", stderr(&folder));
}

/// Banners, broken JSON, lines without end, replies to nothing, batches: counted, never fatal.
#[test]
fn output_that_is_not_of_the_protocol_is_skipped() {
    let stage = Stage::new(json!({"session": "s-1", "start": [{"raw": "Welcome to the agent!"}],
        "prompts": {"go": [
            {"raw": "{\"jsonrpc\":\"2.0\",\"id\":"}, {"raw": "{\"id\":4711,\"result\":{}}"},
            {"raw": "{\"method\":\"_vendor/news\",\"params\":{}}"},
            {"raw": "{\"id\":\"f-1\",\"method\":\"fs/read_text_file\",\"params\":{}}"},
            {"long": 33_600_000}, {"say": "Still here."}]}}));
    let output = stage.chat(&["-p", "go"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Still here.\n");
    let refused = stage.received().into_iter().find(|line| line["id"] == "f-1").unwrap();
    assert_eq!(refused["error"]["code"], -32601);
    let captures = stage.machine.data("data").join("streams");
    let capture = fs::read_dir(captures).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(capture).unwrap();
    assert!(text.len() < 100_000, "the line without end is not kept: {}", text.len());
    let junk: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["dir"] == "junk")
        .collect();
    assert!(junk.iter().any(|line| line["msg"]["size"] == 33_600_000), "{junk:?}");
}

#[test]
fn an_agent_that_dies_fails_its_turn() {
    for (action, said) in [(json!({"exit": 3}), "with code 3"), (json!({"kill": true}), "SIGKILL")]
    {
        let stage = Stage::go(json!([{"say": "I will"}, call("c"), {"stderr": "boom"}, action]));
        let output = stage.chat(&["-p", "go"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        let turns = stage.turns();
        assert_eq!(turns[0]["state"], "failed");
        let text = turns[0].to_string();
        assert!(text.contains("I will") && text.contains("boom"), "{text}");
        assert_eq!(turns[0]["parts"][1]["state"], "interrupted", "{text}");
    }
}

fn interrupt(child: &Child) {
    signal(child.id(), "-INT");
}

pub fn signal(process: u32, signal: &str) {
    Command::new("kill").args([signal, &process.to_string()]).status().unwrap();
}

#[test]
fn an_interruption_keeps_what_came() {
    let stage =
        Stage::go(json!([{"say": "Half of "}, {"ask": permission("c", "edit")["permission"]},
        {"wait": "cancel"}]));
    let child = stage.command(&["-p", "go", "--permissions", "deny"]).spawn().unwrap();
    until("the prompt", || match stage.answers().len() {
        1 => Ok(()),
        other => Err(other),
    });
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Half of\n");
    assert_eq!(stage.turns()[0]["state"], "interrupted");
    let cancels = stage.received().iter().filter(|l| l["method"] == "session/cancel").count();
    assert_eq!(cancels, 1);
    // The same when time is up.
    let output = stage.chat(&["-p", "go", "--timeout", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("time is up"), "{}", stderr(&output));
}

/// Processes whose command line has this word.
pub fn running(word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&command).split('\0').any(|argument| argument == word) {
            found.push(id);
        }
    }
    found
}

/// Law 9 of the chat: when it is over its processes are gone: children, and what left the group.
#[test]
#[cfg(target_os = "linux")]
fn chat_law_9_when_a_chat_is_over_its_processes_are_gone() {
    let mark = format!("3600.{}", std::process::id());
    let stage = Stage::new(json!({"session": "s-1", "stays": true, "prompts": {"go": [
        {"start": ["sleep", mark]}, {"start": ["setsid", "sleep", mark]}, {"say": "started"}],
        "hang": [{"start": ["sleep", mark]}, {"say": "x"}, {"sleep": 3_600_000}]}}));
    let output = stage.chat(&["-p", "go"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(running(&mark), Vec::<u32>::new());
    // An agent that neither reads nor ends: interrupted twice.
    stage.machine.write("puppet.log", b"");
    let begun = Instant::now();
    let child = stage.command(&["-p", "hang"]).spawn().unwrap();
    until("the prompt", || {
        let sent = stage.received().iter().any(|line| line["method"] == "session/prompt");
        if sent && !running(&mark).is_empty() { Ok(()) } else { Err(sent) }
    });
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(300));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(running(&mark), Vec::<u32>::new());
    assert!(begun.elapsed() < Duration::from_secs(50));
}

#[test]
fn a_detached_chat_goes_on_and_is_ended() {
    let mark = format!("3601.{}", std::process::id());
    let stage =
        Stage::go(json!([{"start": ["sleep", mark]}, {"say": "Working."}, {"wait": "cancel"}]));
    let output = stage.chat(&["-p", "go", "--detach", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let id = json_lines(&output)[0]["chat"].as_str().unwrap().to_owned();
    let chats = stage.chats();
    assert_eq!(chats[0]["id"], id.as_str());
    assert_eq!((&chats[0]["live"], &chats[0]["state"]["phase"]), (&json!(true), &json!("running")));
    assert!(stage.machine.ok("data", &["chat", "--list"]).contains("working"));
    until("its process", || if running(&mark).len() == 1 { Ok(()) } else { Err(()) });
    // Another chat for the same session is refused while this one drives it.
    stage.machine.ok("data", &["sync"]);
    let second = stage.chat(&["-p", "go", "--resume", "s-1"]);
    assert!(stderr(&second).contains("another chat drives this session"), "{}", stderr(&second));
    stage.machine.ok("data", &["chat", "--end", &id]);
    assert_eq!(running(&mark), Vec::<u32>::new());
    assert!(stage.chats().is_empty());
    let gone = stage.machine.run("data", &["chat", "--end", &id], "");
    assert!(stderr(&gone).contains("there is no chat"), "{}", stderr(&gone));
    stage.machine.ok("data", &["sync"]);
    let turn = &stage.turns()[0];
    assert_eq!(turn["parts"][0]["text"], "Working.", "{turn}");
    assert_ne!(turn["state"], "running", "{turn}");
}

/// A host that is killed: its agent is ended, the turn is interrupted, what was queued comes back.
#[test]
fn a_killed_host_leaves_nothing_running() {
    let mark = format!("3602.{}", std::process::id());
    let stage = Stage::new(json!({"session": "s-1", "stays": true, "prompts": {
        "go": [{"start": ["sleep", mark]}, {"say": "Working."}, {"sleep": 3_600_000}]}}));
    let output = stage.chat(&["-p", "go", "--detach", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    until("its processes", || if running(&mark).len() == 1 { Ok(()) } else { Err(()) });
    until("its text", || {
        let captures = stage.machine.data("data").join("streams");
        let capture = fs::read_dir(captures).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(capture).unwrap();
        if text.contains("Working.") { Ok(()) } else { Err(text) }
    });
    let host = stage.chats()[0]["process"].as_u64().unwrap();
    signal(u32::try_from(host).unwrap(), "-9");
    until("the end of the host", || {
        if fs::exists(format!("/proc/{host}/exe")).unwrap() { Err(()) } else { Ok(()) }
    });
    // Its lock is free a moment after its program is gone; whoever comes next cleans up.
    until("the end of its processes", || {
        stage.machine.ok("data", &["sync"]);
        if running(&mark).is_empty() { Ok(()) } else { Err(()) }
    });
    assert!(stage.chats().is_empty());
    let turn = &stage.turns()[0];
    assert_eq!(
        (&turn["state"], &turn["parts"][0]["text"]),
        (&json!("interrupted"), &json!("Working."))
    );
}

/// The same for an agent that ends with its input, and whose command does not.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_host_leaves_no_command_of_an_agent_that_ended() {
    let mark = format!("3603.{}", std::process::id());
    let stage = Stage::go(json!([{"start": ["sleep", mark]}, {"say": "x"}, {"wait": "cancel"}]));
    let output = stage.chat(&["-p", "go", "--detach"]);
    assert!(output.status.success(), "{}", stderr(&output));
    until("its process", || if running(&mark).len() == 1 { Ok(()) } else { Err(()) });
    let host = stage.chats()[0]["process"].as_u64().unwrap();
    signal(u32::try_from(host).unwrap(), "-9");
    until("the end of the host", || {
        if fs::exists(format!("/proc/{host}/exe")).unwrap() { Err(()) } else { Ok(()) }
    });
    // Its lock is free a moment after its program is gone; whoever comes next cleans up.
    until("its end", || {
        stage.machine.ok("data", &["sync"]);
        if running(&mark).is_empty() { Ok(()) } else { Err(()) }
    });
}

/// Whoever reads the lines may go; the agent goes too.
#[test]
#[cfg(target_os = "linux")]
fn a_reader_that_goes_takes_the_agent_along() {
    let mark = format!("3604.{}", std::process::id());
    let stage = Stage::new(json!({"session": "s-1", "stays": true, "prompts": {
        "go": [{"start": ["sleep", mark]}, {"say": "x"}, {"wait": "cancel"}]}}));
    let mut child = stage.command(&["-p", "go", "--json"]).spawn().unwrap();
    until("its process", || if running(&mark).len() == 1 { Ok(()) } else { Err(()) });
    drop(child.stdout.take());
    interrupt(&child);
    child.wait().unwrap();
    assert_eq!(running(&mark), Vec::<u32>::new());
}

#[test]
fn a_message_that_is_too_long_is_refused() {
    let stage = Stage::go(json!([{"say": "x"}]));
    stage.machine.write("long.txt", &vec![b'x'; 5_000_000]);
    for more in [&[][..], &["--json"][..], &["--detach"][..]] {
        let input = fs::File::open(stage.machine.home().join("long.txt")).unwrap();
        let output = stage.command(&[&["-p", "-"], more].concat()).stdin(input).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{more:?}");
        assert!(stderr(&output).contains("queue is full"), "{more:?}: {}", stderr(&output));
    }
}

/// An agent of the config file is found in the archive under the name that it gives itself.
#[test]
fn an_agent_of_the_config_file_prints_its_reply() {
    let stage = Stage::go(json!([{"say": "Hello."}]));
    let script = stage.machine.home().join("script.json");
    let config = format!("[chat.agents.house]\ncommand = [{:?}, {:?}]\n", puppet(), script);
    stage.machine.write(".config/unspool/config.toml", config.as_bytes());
    let text = stage.machine.ok("data", &["chat", "-p", "go", "--agent", "house"]);
    assert_eq!(text, "Hello.\n");
}

/// Law 6 of the chat: a recorder that fails never stops the agent.
#[test]
fn chat_law_6_a_capture_that_cannot_be_written_stops_no_agent() {
    let stage = Stage::go(json!([{"say": "Done."}, call("c"), result("c", "completed", "ok")]));
    fs::create_dir_all(stage.machine.data("data")).unwrap();
    fs::write(stage.machine.data("data").join("streams"), "in the way").unwrap();
    let output = stage.chat(&["-p", "go"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("not recorded"), "{}", stderr(&output));
    let prompts = stage.received().iter().filter(|l| l["method"] == "session/prompt").count();
    assert_eq!(prompts, 1);
}

/// The same words again in a session that goes on are another turn.
#[test]
fn a_session_goes_on_with_the_same_words() {
    let stage = Stage::go(json!([{"say": "First."}]));
    assert!(stage.chat(&["-p", "go"]).status.success());
    stage.machine.write(
        "script.json",
        json!({"session": "other", "prompts":
        {"go": [{"say": "Second."}]}})
        .to_string()
        .as_bytes(),
    );
    let output = stage.chat(&["-p", "go", "--resume", "s-1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Second.\n");
    let resumed = stage.received().into_iter().find(|l| l["method"] == "session/resume").unwrap();
    assert_eq!(resumed["params"]["sessionId"], "s-1");
    let texts: Vec<Value> =
        stage.turns().iter().map(|turn| turn["parts"][0]["text"].clone()).collect();
    assert_eq!(texts, ["First.", "Second."]);
}

#[test]
fn an_agent_cannot_start_a_chat_of_its_own() {
    let stage = Stage::go(json!([{"say": "x"}]));
    let output = stage.command(&["-p", "go"]).env("UNSPOOL_CHAT", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot start a chat"), "{}", stderr(&output));
}

#[test]
fn agents_are_listed_with_their_programs() {
    let machine = Machine::new();
    let text = machine.ok("data", &["chat", "--agents"]);
    assert!(text.contains("not found; npm install -g @github/copilot"), "{text}");
    machine.write(".config/unspool/config.toml", b"[chat.agents.house]\ncommand = [\"sh\"]\n");
    let agents = machine.json("data", &["chat", "--agents"]);
    let house = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "house").unwrap();
    assert!(house["program"].as_str().unwrap().ends_with("/sh"));
}
