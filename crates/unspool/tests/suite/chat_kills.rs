//! Chats whose processes are killed: the agent, the host or the recorder, at every tenth line of the
//! wire. Nothing that was on the wire is lost, nothing is there twice, nothing is left running.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::chat::{Stage, running, signal};
use crate::chat_terminal;
use crate::harness::{WatchProcess, until};

/// How many lines of the wire a turn of the puppet has, about.
const LINES: usize = 100;
const EVERY: usize = 10;

/// A turn of words with a call after every tenth.
fn script(mark: &str) -> Value {
    let mut actions = vec![json!({"start": ["sleep", mark]})];
    for word in 0..80 {
        actions.push(json!({"say": format!("w{word} ")}));
        actions.push(json!({"sleep": 2}));
        if word % 10 == 9 {
            let call = format!("c{word}");
            actions.push(json!({"call": {"toolCallId": call, "title": "ls", "kind": "execute",
                "status": "pending", "rawInput": {"command": "ls"}}}));
            actions.push(json!({"update": {"sessionUpdate": "tool_call_update",
                "toolCallId": call, "status": "completed", "content": []}}));
        }
    }
    // It stays when its input ends, as some agents do.
    json!({"session": "s-1", "stays": true, "prompts": {"go": actions}})
}

/// The capture of the chat, as far as it is whole lines.
fn wire(stage: &Stage) -> Vec<Value> {
    let folder = stage.machine.data("data").join("streams");
    let Some(capture) = fs::read_dir(folder).into_iter().flatten().flatten().next() else {
        return Vec::new();
    };
    let text = fs::read_to_string(capture.path()).unwrap();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Words and calls in the order of the wire, read without any code of the product.
fn on_the_wire(stage: &Stage) -> Vec<String> {
    let mut seen = Vec::new();
    for line in wire(stage) {
        let update = &line["msg"]["params"]["update"];
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                seen.push(update["content"]["text"].as_str().unwrap().trim().to_owned());
            }
            Some("tool_call") => seen.push(update["toolCallId"].as_str().unwrap().to_owned()),
            Some(_) | None => {}
        }
    }
    seen
}

/// The same in the archive.
fn in_the_archive(turn: &Value) -> Vec<String> {
    let mut seen = Vec::new();
    for part in turn["parts"].as_array().unwrap() {
        match part["kind"].as_str().unwrap() {
            "text" => {
                let words = part["text"].as_str().unwrap().split_whitespace();
                seen.extend(words.map(str::to_owned));
            }
            "tool" => seen.push(part["call_id"].as_str().unwrap().to_owned()),
            _ => {}
        }
    }
    seen
}

/// A detached chat, of which so many lines are on the wire.
fn started(mark: &str, lines: usize) -> Stage {
    let stage = Stage::new(script(mark));
    let output = stage.chat(&["-p", "go", "--detach"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    until("the lines", || {
        let now = wire(&stage).len();
        if now >= lines { Ok(()) } else { Err(now) }
    });
    stage
}

fn assert_same(stage: &Stage, what: &str) -> Value {
    let turns = stage.turns();
    assert_eq!(turns.len(), 1, "{what}");
    assert_eq!(in_the_archive(&turns[0]), on_the_wire(stage), "{what}");
    turns[0].clone()
}

/// Syncs until the archive has the end of the turn. The kernel frees the lock of a killed process
/// some time after it is gone, so the first sync may leave the work to a recorder that is no more.
fn synced(stage: &Stage) {
    until("the end of the turn", || {
        stage.machine.ok("data", &["sync"]);
        let turns = stage.turns();
        let state = turns.first().map(|turn| turn["state"].clone()).unwrap_or_default();
        if state.is_null() || state == "running" { Err(state) } else { Ok(()) }
    });
}

fn mark(victim: &str, lines: usize) -> String {
    format!("36{lines:03}.{}{}", std::process::id(), victim.len())
}

#[test]
fn an_agent_killed_at_any_line_loses_nothing() {
    for lines in (10..LINES).step_by(EVERY) {
        let mark = mark("agent", lines);
        let stage = started(&mark, lines);
        // The puppet has the script as an argument.
        let script = stage.machine.home().join("script.json");
        let agents = running(script.to_str().unwrap());
        let agent = agents.into_iter().find(|id| {
            let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            name.starts_with("puppet")
        });
        let over = agent.is_none();
        agent.into_iter().for_each(|agent| signal(agent, "-9"));
        if !over {
            until("the end of the chat", || match stage.chats().len() {
                0 => Ok(()),
                other => Err(other),
            });
        }
        synced(&stage);
        let turn = assert_same(&stage, &format!("line {lines}"));
        assert_ne!(turn["state"], "running", "line {lines}");
        stage.end_chats();
        assert_eq!(running(&mark), Vec::<u32>::new(), "line {lines}");
    }
}

#[test]
fn a_host_killed_at_any_line_loses_nothing() {
    for lines in (10..LINES).step_by(EVERY) {
        let mark = mark("host", lines);
        let stage = started(&mark, lines);
        let host = stage.chats()[0]["process"].as_u64().unwrap();
        signal(u32::try_from(host).unwrap(), "-9");
        // The kernel frees the lock of a killed process some time after the signal; until then the
        // host counts as running, and the next sync looks again.
        synced(&stage);
        assert_same(&stage, &format!("line {lines}"));
        assert_eq!(running(&mark), Vec::<u32>::new(), "line {lines}");
        assert!(stage.chats().is_empty(), "line {lines}");
    }
}

/// A terminal that is killed: the agent goes on, and whoever comes next finds queue and draft.
#[test]
fn chat_law_6_a_client_that_is_killed_at_any_line_stops_no_agent() {
    for lines in (10..LINES).step_by(EVERY) {
        let mark = mark("client", lines);
        let mut script = script(&mark);
        // Slow enough that a message can be queued before its end.
        let actions = script["prompts"]["go"].as_array_mut().unwrap();
        actions.push(json!({"sleep": 3000}));
        script["prompts"]["next"] = json!([{"say": "After."}]);
        let stage = Stage::new(script);
        let mut terminal = chat_terminal::chat(&stage);
        terminal.press("go\r");
        terminal.shows("w0");
        terminal.press("next\r");
        terminal.shows("queued 1  next");
        terminal.press("half a thought");
        until("the draft", || {
            let draft = stage.chats()[0]["state"]["draft"].clone();
            if draft == "half a thought" { Ok(()) } else { Err(draft) }
        });
        until("the lines", || {
            let now = wire(&stage).len();
            if now >= lines { Ok(()) } else { Err(now) }
        });
        signal(terminal.0.child.process_id().unwrap(), "-9");
        until("the queued message", || {
            let sent =
                stage.received().iter().any(|line| line["params"]["prompt"][0]["text"] == "next");
            let idle = stage.chats()[0]["state"]["phase"] == "idle";
            if sent && idle { Ok(()) } else { Err((sent, idle)) }
        });
        let chat = stage.chats()[0].clone();
        assert_eq!(
            (&chat["live"], &chat["state"]["draft"]),
            (&json!(true), &json!("half a thought"))
        );
        stage.machine.ok("data", &["sync"]);
        let turns = stage.turns();
        assert_eq!(turns.len(), 2, "line {lines}");
        assert_eq!(turns[1]["parts"][0]["text"], "After.", "line {lines}");
        let seen: Vec<String> = turns.iter().flat_map(in_the_archive).collect();
        assert_eq!(seen, on_the_wire(&stage), "line {lines}");
        stage.end_chats();
        assert_eq!(running(&mark), Vec::<u32>::new(), "line {lines}");
    }
}

#[test]
fn a_recorder_killed_at_any_line_loses_nothing() {
    for lines in (10..LINES).step_by(EVERY) {
        let mark = mark("recorder", lines);
        let stage = Stage::new(script(&mark));
        let mut watch: Command = stage.machine.command("data", &["sync", "--watch"]);
        watch.stdin(Stdio::null());
        let recorder = WatchProcess::begin(watch);
        let output = stage.chat(&["-p", "go", "--detach"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        until("the lines", || {
            let now = wire(&stage).len();
            if now >= lines { Ok(()) } else { Err(now) }
        });
        // Dropping it kills it.
        drop(recorder);
        until("the end of the turn", || {
            let over =
                wire(&stage).iter().any(|line| line["msg"]["result"]["stopReason"].is_string());
            if over { Ok(()) } else { Err(()) }
        });
        synced(&stage);
        let turn = assert_same(&stage, &format!("line {lines}"));
        assert_eq!(turn["state"], "completed", "line {lines}");
        assert_eq!(in_the_archive(&turn).len(), 88, "line {lines}");
        stage.end_chats();
        assert_eq!(running(&mark), Vec::<u32>::new(), "line {lines}");
    }
}
