//! What agents write down if a variable is set: the requests as they were sent. The recordings are of
//! Claude Code 2.1.325 and Codex 0.166 with a scripted model; long texts are cut in log and trace
//! alike, and the digests of the log computed again.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Machine;

const CLAUDE: &[&str] = &["claude-log.jsonl", "claude-bodies"];
const CODEX: &[&str] = &["codex-log.jsonl", "codex-trace-1", "codex-trace-2"];

fn files() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/suite/trace_files")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap().map(Result::unwrap) {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

fn machine() -> Machine {
    let machine = Machine::new();
    copy(&files(), &machine.home().join("t"));
    machine
}

/// Imports the sources in this order. Returns all calls with their pieces.
fn imported(machine: &Machine, data: &str, order: &[&str]) -> Vec<Value> {
    for source in order {
        machine.ok(data, &["import", machine.home().join("t").join(source).to_str().unwrap()]);
    }
    let sessions = machine.sessions(data).unwrap();
    assert_eq!(sessions.len(), 1, "{order:?}: {sessions:?}");
    let id = sessions[0]["session"]["id"].as_str().unwrap();
    let all = machine.json(data, &["prompt", id])["prompts"].as_array().unwrap().clone();
    let mut calls = Vec::new();
    for call in &all {
        let place = format!("{id}:{}.{}", call["turn"], call["step"]);
        let found = machine.json(data, &["prompt", &place]);
        calls.extend(found["prompts"].as_array().unwrap().iter().cloned());
    }
    assert_eq!(calls.len(), all.len(), "{order:?}");
    calls
}

/// The bodies that the indexes name, by the name of their calls.
fn bodies() -> HashMap<String, Value> {
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    let mut bodies = HashMap::new();
    for folder in ["claude-bodies", "codex-trace-1", "codex-trace-2"] {
        let folder = files().join(folder);
        let names = ["index.jsonl", "trace.jsonl"].map(|name| folder.join(name));
        let index = names.into_iter().find(|path| path.exists()).unwrap();
        for line in read(index).lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let event = &line["payload"];
            let (call, file) = match line["request_file"].as_str() {
                Some(file) => (file, Some(file)),
                None => (
                    event["inference_call_id"].as_str().unwrap_or_default(),
                    event["request_payload"]["path"].as_str(),
                ),
            };
            let Some(file) = file else { continue };
            let body = serde_json::from_str(&read(folder.join(file))).unwrap();
            bodies.insert(call.to_owned(), body);
        }
    }
    bodies
}

/// Compares a call with its body. Returns the number of its pieces.
fn compare(call: &Value, body: &Value) -> usize {
    let pieces = call["pieces"].as_array().unwrap();
    for piece in pieces {
        let (at, text) = (piece["at"].as_str().unwrap(), piece["text"].as_str());
        let text = text.unwrap_or_else(|| panic!("no text: {piece}"));
        // A message whose content is a string has one block of text.
        let string = || body.pointer(at.strip_suffix("/0/text")?).filter(|sent| sent.is_string());
        let sent = body.pointer(at).or_else(string);
        match sent.unwrap_or_else(|| panic!("nothing at {at}")) {
            Value::String(sent) => assert_eq!(sent, text, "{at}"),
            sent => assert_eq!(*sent, serde_json::from_str::<Value>(text).unwrap(), "{at}"),
        }
    }
    // Nothing of the request is left out.
    let has = |at: &str| pieces.iter().any(|piece| piece["at"].as_str().unwrap().starts_with(at));
    for list in ["system", "tools", "input"] {
        for nth in 0..body[list].as_array().map_or(0, Vec::len) {
            assert!(has(&format!("/{list}/{nth}")), "/{list}/{nth}");
        }
    }
    for (nth, message) in body["messages"].as_array().into_iter().flatten().enumerate() {
        for block in 0..message["content"].as_array().map_or(1, Vec::len) {
            assert!(has(&format!("/messages/{nth}/content/{block}")), "{message}");
        }
    }
    pieces.len()
}

#[test]
fn law_10_requests_of_traces_are_what_was_sent() {
    let (machine, bodies) = (machine(), bodies());
    for (data, sources, traced, all) in [("claude", CLAUDE, 2, 3), ("codex", CODEX, 2, 2)] {
        let calls = imported(&machine, data, sources);
        assert_eq!(calls.len(), all, "{data}");
        let exact = calls.iter().filter_map(|call| {
            let body = bodies.get(call["call"].as_str().unwrap())?;
            assert_eq!(call["truth"]["complete"], true, "{call}");
            assert_eq!(call["truth"]["not_recorded"], json!([]), "{call}");
            Some(compare(call, body))
        });
        let pieces: Vec<usize> = exact.collect();
        assert_eq!(pieces.len(), traced, "{data}");
        assert!(pieces.iter().all(|pieces| *pieces > 5), "{pieces:?}");
    }
}

#[test]
fn law_5_logs_and_traces_are_read_in_any_order() {
    let machine = machine();
    for (agent, sources) in [("claude", CLAUDE), ("codex", CODEX)] {
        let whole = imported(&machine, &format!("{agent}-0"), sources);
        let mut reversed = sources.to_vec();
        reversed.reverse();
        assert_eq!(imported(&machine, &format!("{agent}-1"), &reversed), whole);
        let twice = [sources, &reversed].concat();
        assert_eq!(imported(&machine, &format!("{agent}-2"), &twice), whole);
    }
}

#[test]
fn a_rule_is_found_in_the_calls_that_were_sent_it() {
    let (machine, bodies) = (machine(), bodies());
    for (data, sources) in [("claude", CLAUDE), ("codex", CODEX)] {
        imported(&machine, data, sources);
        let id = machine.sessions(data).unwrap()[0]["session"]["id"].as_str().unwrap().to_owned();
        let found = machine.json(data, &["prompt", &id, "--find", "rule 4711"]);
        for call in found["prompts"].as_array().unwrap() {
            if let Some(body) = bodies.get(call["call"].as_str().unwrap()) {
                assert!(body.to_string().contains("rule 4711"));
            }
        }
        let all = machine.json(data, &["prompt", &id])["prompts"].as_array().unwrap().len();
        assert_eq!(found["prompts"].as_array().unwrap().len(), all, "{data}");
    }
}

/// The files of `unspool run` are read by the next sync, and a body that is gone is named.
#[test]
fn sync_reads_the_folder_of_runs_and_names_what_is_missing() {
    let machine = machine();
    let run = machine.data("d").join("traces/codex-1");
    copy(&files().join("codex-trace-1"), &run.join("trace-1"));
    copy(&files().join("claude-bodies"), &machine.data("d").join("traces/claude-code-1"));
    fs::remove_file(machine.data("d").join("traces/codex-1/trace-1/payloads/4.json")).unwrap();
    let output = machine.run("d", &["sync"], "");
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{talk}");
    assert!(talk.contains("trace.jsonl:13: payloads/4.json: "), "{talk}");
    assert!(!talk.contains("unrecognised"), "{talk}");
}

/// Claude Code writes the requests of a sub-agent under the session that started it. The agent's own
/// log has them, so they are no calls of that session.
#[test]
fn the_requests_of_a_sub_agent_are_not_calls_of_its_parent() {
    // R-002-10
    let machine = machine();
    let before = imported(&machine, "without", CLAUDE);
    let folder = machine.home().join("t/claude-bodies");
    let index = folder.join("index.jsonl");
    let mut text = fs::read_to_string(&index).unwrap();
    let mut line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let body = folder.join(line["request_file"].as_str().unwrap());
    fs::copy(body, folder.join("agent.request.json")).unwrap();
    for (name, value) in [
        ("timestamp", "2026-11-19T00:28:09.200Z"),
        ("query_source", "agent:builtin:general-purpose"),
        ("message_id", "r_000004"),
        ("request_file", "agent.request.json"),
    ] {
        line[name] = value.into();
    }
    text.push_str(&format!("{line}\n"));
    fs::write(&index, text).unwrap();
    assert_eq!(imported(&machine, "with", CLAUDE), before);
    let id = &machine.sessions("with").unwrap()[0]["session"]["id"];
    let shown = machine.json("with", &["show", id.as_str().unwrap()]).to_string();
    assert!(shown.contains("request of a sub-agent"), "{shown}");
}

/// The texts of a request in their order.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        _ => {}
    }
}

/// A recording of Copilot CLI 1.0.102: a prompt with two commands, and one with a sub-agent in a second
/// run. Spans have what is new in a call; the request file is what the scripted model was sent.
#[test]
fn law_10_spans_of_copilot_are_what_was_sent_and_say_what_is_missing() {
    let machine = machine();
    let requests = fs::read_to_string(files().join("copilot-requests.json")).unwrap();
    let requests: Vec<Value> = serde_json::from_str(&requests).unwrap();
    let is_main = |request: &&Value| {
        !request["system"][0]["text"].as_str().unwrap().starts_with("As a sub-agent")
    };
    let main: Vec<&Value> = requests.iter().filter(is_main).collect();
    let sources = ["copilot-log.jsonl", "copilot-spans.jsonl"];
    let mut before = None;
    for (data, order) in [("one", [0, 1]), ("other", [1, 0])] {
        for source in order.map(|at| sources[at]) {
            machine.ok(data, &["import", machine.home().join("t").join(source).to_str().unwrap()]);
        }
        let sessions = machine.json(data, &["list"]);
        let own = |session: &&Value| session["parent"].is_null();
        let id = sessions.as_array().unwrap().iter().find(own).unwrap()["id"].as_str().unwrap();
        let all = machine.json(data, &["prompt", id])["prompts"].as_array().unwrap().clone();
        let places: Vec<String> =
            all.iter().map(|call| format!("{}.{}", call["turn"], call["step"])).collect();
        assert_eq!(places, ["1.1", "1.2", "2.1", "2.2"], "no call of the sub-agent");
        let mut pieces = 0;
        for (place, request) in places.iter().zip(&main) {
            let call = &machine.json(data, &["prompt", &format!("{id}:{place}")])["prompts"][0];
            let missing = call["truth"]["not_recorded"].to_string();
            assert!(missing.contains("earlier messages") && missing.contains("hooks"), "{missing}");
            let time = |name: &str| call[name].as_str().unwrap().to_owned();
            assert!(time("sent_at") < time("first_token_at"), "{call}");
            assert!(time("first_token_at") < time("ended_at"), "{call}");
            let last = request["messages"].as_array().unwrap().last().unwrap();
            let mut sent = Vec::new();
            texts(last, &mut sent);
            let system = request["system"].as_array().unwrap().iter();
            let system: Vec<&str> = system.map(|block| block["text"].as_str().unwrap()).collect();
            for piece in call["pieces"].as_array().unwrap() {
                let (at, text) = (piece["at"].as_str().unwrap(), piece["text"].as_str().unwrap());
                match piece["kind"].as_str().unwrap() {
                    "policy" => assert_eq!(text, system.join("\n\n"), "{at}"),
                    "tool-schema" => {
                        let tool: Value = serde_json::from_str(text).unwrap();
                        let is_it = |sent: &&Value| sent["name"] == tool["name"];
                        let sent = request["tools"].as_array().unwrap().iter().find(is_it).unwrap();
                        assert_eq!(sent["description"], tool["description"], "{at}");
                    }
                    "user-instruction" | "tool-output" => {
                        assert!(sent.iter().any(|sent| sent == text), "{at}: {text}");
                        assert!(at.starts_with("/gen_ai.input.messages/"), "{at}");
                    }
                    other => panic!("{other} at {at}"),
                }
                pieces += 1;
            }
            let tools = request["tools"].as_array().unwrap().len();
            let kinds = call["pieces"].as_array().unwrap().iter();
            let schemas = kinds.filter(|piece| piece["kind"] == "tool-schema").count();
            assert_eq!(schemas, tools);
        }
        assert!(pieces > 4 * 18, "{pieces}");
        // A rule of AGENTS.md is in the instructions, and is found as such.
        let found = machine.json(data, &["prompt", id, "--find", "rule 4711"]);
        assert_eq!(found["prompts"].as_array().unwrap().len(), 4);
        let sources = machine.json(data, &["prompt", id])["context"]["sources"].to_string();
        assert!(sources.contains("\"instructions\""), "{sources}");
        let shown = machine.json(data, &["show", id]);
        assert_eq!(shown["turns"].as_array().unwrap().len(), 2);
        assert!(shown.to_string().contains("call of a sub-agent"), "{shown}");
        let now = (all, shown["turns"].clone());
        assert!(before.replace(now.clone()).is_none_or(|before| before == now), "law 5");
    }
}
