//! What agents do that they should not, and disks: each case of bad input that a chat must survive.
//! Starts that fail are in `chat.rs`, killed processes in `chat_kills.rs`, the answers that are
//! refused in the tests of `unspool_live::chat`.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::chat::{Stage, call, permission, result};
use crate::harness::until;

fn stage(actions: Value) -> Stage {
    Stage::new(json!({"session": "s-1", "prompts": {"go": actions}}))
}

fn captured(stage: &Stage) -> Vec<Value> {
    let captures = stage.machine.data("data").join("streams");
    let capture = fs::read_dir(captures).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(capture).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ok(stage: &Stage, arguments: &[&str]) -> String {
    let output = stage.chat(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// A banner before the first reply is counted and recorded; an endless one is no agent.
#[test]
fn a_banner_is_recorded_and_an_endless_one_is_no_agent() {
    let stage = Stage::new(json!({"session": "s-1", "start": [{"raw": "Welcome!"}],
        "prompts": {"go": [{"say": "Hello."}]}}));
    assert_eq!(ok(&stage, &["-p", "go"]), "Hello.\n");
    let junk = captured(&stage).into_iter().find(|line| line["dir"] == "junk").unwrap();
    assert_eq!(junk["msg"], json!({"size": 8, "head": "Welcome!"}));
    let lines: Vec<Value> = (0..150).map(|nth| json!({"raw": format!("log {nth}")})).collect();
    let stage = Stage::new(json!({"start": lines, "initialize": null}));
    let output = stage.chat(&["-p", "go"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("does not speak the Agent Client Protocol"), "{stderr}");
}

/// A line of more than 32 MB is skipped: its size and digest are kept, and the turn says so.
#[test]
fn a_line_without_end_marks_its_turn() {
    let stage = stage(json!([{"say": "Before. "}, {"long": 40_000_000}, {"say": "After."}]));
    let text = ok(&stage, &["-p", "go"]);
    assert!(text.contains("After."), "{text}");
    let junk = captured(&stage).into_iter().find(|line| line["dir"] == "junk").unwrap();
    assert_eq!(junk["msg"]["size"], 40_000_000);
    assert_eq!(junk["msg"]["digest"].as_str().unwrap().len(), 16);
    assert_eq!(junk["msg"]["head"].as_str().unwrap().len(), 1000);
    let turn = stage.turns()[0].clone();
    let notice = turn["parts"].as_array().unwrap().iter().find(|part| part["kind"] == "notice");
    assert!(notice.unwrap()["text"].as_str().unwrap().contains("40 MB"), "{turn}");
}

/// Broken JSON, wrong types, unknown ids, double replies, reused ids and batches: kept as they came,
/// never fatal; what can be answered is refused with a code.
#[test]
fn messages_that_make_no_sense_are_kept_and_refused() {
    let stage = stage(json!([
        {"raw": "{\"jsonrpc\":\"2.0\",\"id\":"},
        {"raw": "{\"id\":4711,\"result\":{}}"},
        {"raw": "{\"id\":0,\"result\":{\"protocolVersion\":1}}"},
        {"raw": "{\"jsonrpc\":\"2.0\",\"id\":\"w-1\",\"method\":\"session/request_permission\",\"params\":{\"options\":7}}"},
        {"raw": "{\"jsonrpc\":\"2.0\",\"id\":\"w-2\",\"method\":\"elicitation/create\",\"params\":\"x\"}"},
        {"raw": "{\"jsonrpc\":\"2.0\",\"id\":\"w-3\",\"method\":\"terminal/create\",\"params\":{}}"},
        {"raw": "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s-1\",\"update\":\"no object\"}}"},
        {"raw": "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":null}"},
        {"raw": "[{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s-1\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"In a \"}}}},{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s-1\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"batch.\"}}}}]"},
        {"raw": "42"}, {"raw": "null"}]));
    assert_eq!(ok(&stage, &["-p", "go"]), "In a batch.\n");
    let codes: Vec<(String, i64)> = stage
        .received()
        .iter()
        .filter(|line| line["error"].is_object())
        .map(|line| {
            (line["id"].as_str().unwrap().to_owned(), line["error"]["code"].as_i64().unwrap())
        })
        .collect();
    let expected = [("w-1", -32602), ("w-2", -32602), ("w-3", -32601)];
    assert_eq!(codes, expected.map(|(id, code)| (id.to_owned(), code)));
    let turn = stage.turns()[0].clone();
    let parts = turn["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "text");
    let text: String = parts.filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(text, "In a batch.");
    let broken = captured(&stage).into_iter().find(|line| line["dir"] == "junk").unwrap();
    assert_eq!(broken["msg"]["head"], "{\"jsonrpc\":\"2.0\",\"id\":");
}

/// The id of an open question again: no answer could tell which one it is for.
#[test]
fn an_id_that_is_used_again_asks_nobody_twice() {
    let ask = json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission",
        "params": {"sessionId": "s-1", "toolCall": {"toolCallId": "d", "title": "rm -rf /"},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]}});
    let asked = permission("c", "execute")["permission"].clone();
    let stage = stage(json!([call("c"), {"ask": asked}, {"raw": ask.to_string()}, {"answers": 1},
        {"sleep": 100}, {"say": "Done."}]));
    let text = ok(&stage, &["-p", "go", "--permissions", "deny"]);
    assert_eq!(text, "Done.\n");
    let allowed = stage.answers().iter().any(|answer| answer["outcome"]["optionId"] == "y");
    assert!(!allowed, "{:?}", stage.answers());
}

/// A flood is read as fast as it is recorded, and nothing of it is lost.
#[test]
fn a_flood_is_recorded_whole() {
    let stage = stage(json!([{"flood": 30_000}, {"say": "end"}]));
    ok(&stage, &["-p", "go"]);
    let text = stage.turns()[0]["parts"][0]["text"].as_str().unwrap().to_owned();
    let expected: String = (0..30_000).map(|nth| format!("{nth} ")).collect();
    assert_eq!(text, format!("{expected}end"));
}

/// Updates of a session that was not announced, of a call that was not, and after the end.
#[test]
fn updates_that_come_unannounced_are_shown() {
    let chunk = |session: &str, text: &str| {
        let update = json!({"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": session, "update": update});
        json!({"raw": json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
            .to_string()})
    };
    let stage = stage(json!([result("never-called", "completed", "out of the blue"),
        chunk("s-1", "Text."), chunk("s-9", "From elsewhere."), {"result": {"stopReason": "end_turn"}}, chunk("s-1", " Late."),
        {"sleep": 200}]));
    ok(&stage, &["-p", "go"]);
    stage.machine.ok("data", &["sync"]);
    let turns = stage.turns();
    assert_eq!(turns.len(), 1, "{turns:?}");
    let parts = turns[0]["parts"].as_array().unwrap();
    assert_eq!(parts[0]["call_id"], "never-called");
    assert!(parts[0].to_string().contains("out of the blue"), "{}", parts[0]);
    let text: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(text, "Text. Late.");
    // A session that nobody announced is one of its own.
    let other = stage.machine.json("data", &["show", "s-9"]);
    assert!(other.to_string().contains("From elsewhere."), "{other}");
    assert_eq!(stage.machine.json("data", &["list"]).as_array().unwrap().len(), 2);
}

/// A disk that fails for a while: everybody is told, the agent goes on, and what waited is recorded.
#[test]
fn what_could_not_be_recorded_is_recorded_later() {
    let stage = stage(json!([{"say": "One "}, {"wait": "cancel"}]));
    fs::create_dir_all(stage.machine.data("data")).unwrap();
    let streams = stage.machine.data("data").join("streams");
    fs::write(&streams, "in the way").unwrap();
    let output = stage.chat(&["-p", "go", "--detach"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let state = |stage: &Stage| stage.chats()[0]["state"].clone();
    until("the sentence", || {
        let state = state(&stage);
        let said = state["unrecorded"].as_str().is_some_and(|why| why.contains("not recorded"));
        if said && state["phase"] == "running" { Ok(()) } else { Err(state) }
    });
    fs::remove_file(&streams).unwrap();
    until("the recording", || {
        let state = state(&stage);
        if state["unrecorded"].is_null() { Ok(()) } else { Err(state) }
    });
    let chat = stage.chats()[0]["id"].as_str().unwrap().to_owned();
    stage.machine.ok("data", &["chat", "--end", &chat]);
    stage.machine.ok("data", &["sync"]);
    let turn = stage.turns()[0].clone();
    assert_eq!(turn["parts"][0]["text"].as_str().unwrap().trim(), "One", "{turn}");
    assert_eq!(turn["user"][0]["text"], "go");
}

/// An option that was not offered, an answer to a question that is gone, a second answer: refused
/// with the reason, and nothing is sent.
#[test]
fn answers_that_fit_no_question_are_refused() {
    let stage = stage(json!([permission("c", "execute"), {"sleep": 400}, {"say": "ok"}]));
    let mut command = stage.command(&["-p", "go", "--json", "--permissions", "ask"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let answer = |question: &str, option: &str| {
        format!("{}\n", json!({"answer": {"question": question, "answer": {"option": option}}}))
    };
    until("the question", || {
        let open = stage
            .chats()
            .first()
            .map_or(0, |chat| chat["state"]["questions"].as_array().map_or(0, Vec::len));
        if open == 1 { Ok(()) } else { Err(open) }
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    for (question, option) in [("0", "whatever"), ("9", "y"), ("0", "n"), ("0", "y")] {
        std::io::Write::write_all(&mut input, answer(question, option).as_bytes()).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(input);
    let text = String::from_utf8(output.stdout).unwrap();
    let refused: Vec<&str> =
        text.lines().filter(|line| line.contains("refused") || line.contains("already")).collect();
    assert_eq!(refused.len(), 3, "{text}");
    let answers = stage.answers();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["outcome"]["optionId"], "n");
}
