//! The command line: output, errors and exit codes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::case::root;

fn unspool(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unspool"))
        .args(arguments)
        .current_dir(root())
        .env_remove("NO_COLOR")
        .output()
        .unwrap()
}

fn case(name: &str) -> String {
    format!("fixtures/claude-code/{name}")
}

fn shown(path: &str) -> Value {
    let output = unspool(&["show", path, "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn json_has_the_names_that_scripts_rely_on() {
    let document = shown(&case("discovery-loop"));
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(&document), ["records", "session", "turns", "warnings"]);
    let session = &document["session"];
    for name in [
        "id",
        "agent",
        "agent_session_id",
        "project",
        "title",
        "state",
        "completeness",
        "started_at",
        "ended_at",
        "parent",
        "forked_from",
        "usage",
        "usage_with_agents",
    ] {
        assert!(keys(session).contains(&name.to_owned()), "session.{name}");
    }
    assert_eq!(session["agent"], "claude-code");
    assert_eq!(session["agent_session_id"], "112b2623-935f-4249-9e9a-c45c61ba0d98");
    assert_eq!(session["started_at"], "2026-11-15T00:22:41.113Z");
    assert_eq!(session["completeness"], "full");
    assert_eq!(session["parent"], Value::Null);
    let usage = &session["usage"];
    assert_eq!(
        (&usage["input"], &usage["output"], &usage["cache_read"], &usage["cache_write"]),
        (&32.into(), &1729.into(), &76743.into(), &12331.into())
    );
    let turn = &document["turns"][0];
    for name in [
        "number",
        "trigger",
        "thinking_mode",
        "state",
        "abandoned",
        "started_at",
        "ended_at",
        "user",
        "parts",
        "content",
    ] {
        assert!(keys(turn).contains(&name.to_owned()), "turn.{name}");
    }
    assert_eq!(turn["user"][0]["kind"], "text");
    let tool = turn["parts"].as_array().unwrap().iter().find(|p| p["kind"] == "tool").unwrap();
    for name in [
        "id",
        "step",
        "call_id",
        "parent_call_id",
        "name",
        "input",
        "state",
        "output",
        "question",
        "answer",
    ] {
        assert!(keys(tool).contains(&name.to_owned()), "tool.{name}");
    }
    let texts: String = turn["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["kind"] == "text")
        .map(|part| part["text"].as_str().unwrap())
        .collect();
    // R-000-16
    assert_eq!(turn["content"], texts);
    let records = &document["records"];
    let left_out: u64 =
        records["left_out"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    let sum = ["in_parts", "metadata", "unreadable"]
        .iter()
        .map(|name| records[name].as_u64().unwrap())
        .sum::<u64>();
    assert_eq!(records["read"].as_u64().unwrap(), sum + left_out);
}

#[test]
fn an_agent_part_stands_behind_its_call() {
    // R-003-39, R-003-40
    let document = shown(&case("subagents-parallel-and-background"));
    let parts = document["turns"][0]["parts"].as_array().unwrap();
    let mut seen = 0;
    for pair in parts.windows(2) {
        if pair[1]["kind"] == "agent" {
            assert_eq!(pair[0]["call_id"], pair[1]["call_id"]);
            assert_eq!(pair[0]["step"], pair[1]["step"]);
            let agents = pair[1]["agents"].as_array().unwrap();
            assert_eq!(agents.len(), 1);
            assert_eq!(agents[0]["state"], "completed");
            assert!(!agents[0]["id"].as_str().unwrap().starts_with("temp_"));
            seen += 1;
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn one_turn_can_be_selected() {
    let path = case("terminal-rewind-shell-and-mentions");
    let output = unspool(&["show", &path, "--json", "--turn", "4"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["turns"].as_array().unwrap().len(), 1);
    assert_eq!(document["turns"][0]["abandoned"], true);
    // The session's own fields still describe the whole session.
    assert_eq!(document["session"], shown(&path)["session"]);
    let output = unspool(&["show", &path, "--turn", "99"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the session has turns 1 to 5"), "{}", stderr(&output));
}

#[test]
fn a_file_without_a_session_is_refused_with_a_next_step() {
    let folder = tempdir("refused");
    let write = |file: &str, text: &str| {
        let path = folder.join(file);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    // R-001-25
    let history = write(
        "history.jsonl",
        r#"{"display":"hi","pastedContents":{},"timestamp":1,"project":"/p","sessionId":"s"}"#,
    );
    let cases = [
        (history, "list of typed prompts"),
        (write("notes.jsonl", "{\"a\":1}\n"), "unrecognised file format"),
        (write("empty.jsonl", ""), "is empty"),
        (folder.join("missing.jsonl").to_string_lossy().into_owned(), "does not exist"),
    ];
    for (path, message) in cases {
        let output = unspool(&["show", &path]);
        assert_eq!(output.status.code(), Some(1), "{path}");
        assert!(output.stdout.is_empty());
        assert!(stderr(&output).contains(message), "{path}: {}", stderr(&output));
    }
    assert_eq!(unspool(&["show"]).status.code(), Some(2));
    assert_eq!(unspool(&["show", "x", "--json", "--plain"]).status.code(), Some(2));
}

#[test]
fn law_4_nothing_is_lost() {
    // R-001-13, R-001-15, R-X-18: an unreadable line is reported, and the rest is shown.
    let folder = tempdir("broken");
    let path = folder.join("log.jsonl");
    let recording =
        std::fs::read(root().join(case("error-500-retried")).join("log.jsonl")).unwrap();
    let text = String::from_utf8(recording).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(4, "{ broken");
    // A byte order mark, carriage returns, and a last line that is still being written.
    let written = format!("\u{feff}{}\r\n{{\"type\":\"user\",\"mess", lines.join("\r\n"));
    std::fs::write(&path, written).unwrap();
    let document = shown(&path.to_string_lossy());
    assert_eq!(document["warnings"].as_array().unwrap().len(), 2);
    assert_eq!(document["warnings"][0]["line"], 5);
    let unfinished = document["warnings"][1]["what"].as_str().unwrap();
    assert!(unfinished.contains("incomplete"), "{unfinished}");
    assert_eq!(document["records"]["unreadable"], 1);
    assert_eq!(document["session"]["completeness"], "partial");
    let whole = shown(&format!("{}/log.jsonl", case("error-500-retried")));
    assert_eq!(document["turns"], whole["turns"]);
}

#[test]
fn standard_input_and_one_of_several_sessions_can_be_shown() {
    let path = case("terminal-rewind-shell-and-mentions");
    let log = std::fs::File::open(root().join(&path).join("log.jsonl")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_unspool"))
        .args(["show", "-", "--json"])
        .stdin(log)
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["turns"].as_array().unwrap().len(), 5);

    // Its hooks continue into the session after `/clear`.
    let hooks = format!("{path}/hooks.jsonl");
    let output = unspool(&["show", &hooks, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--session"), "{}", stderr(&output));
    let output = unspool(&["show", &hooks, "--json", "--session", "a609"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["turns"][0]["user"][0]["text"], "Now the second topic, after clear.");
    // Omitted records are reported.
    let what = document["warnings"][0]["what"].as_str().unwrap();
    assert!(what.contains("records of session 8bb7f0eb"), "{what}");
}

#[test]
fn names_of_files_reach_no_terminal_raw() {
    // Law 8
    let output = unspool(&["show", "no\u{1b}[31msuch\u{202e}file"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stderr.contains(&0x1b), "{}", stderr(&output));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_unspool"))
        .args(["show", &case("odd-output"), "--json"])
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    // `unspool … 2>&1 | head`
    let mut child = Command::new(env!("CARGO_BIN_EXE_unspool"))
        .args(["show", "no-such-session"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1), "an error, not a panic");
}

#[test]
fn law_8_agent_output_is_hostile() {
    // No escape sequence of an agent's output is printed.
    let output = unspool(&["show", &case("odd-output"), "--full"]);
    assert!(output.status.success());
    assert!(!output.stdout.contains(&0x1b));
    let plain = unspool(&["show", &case("odd-output"), "--full", "--plain"]);
    assert_eq!(output.stdout, plain.stdout);
}

#[test]
fn law_7_read_only() {
    let folder = tempdir("read-only");
    let from = root().join(case("discovery-loop"));
    for file in ["log.jsonl", "stream.jsonl", "hooks.jsonl"] {
        std::fs::copy(from.join(file), folder.join(file)).unwrap();
    }
    let listed = || {
        let mut files: Vec<_> = folder
            .read_dir()
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let changed = path.metadata().unwrap().modified().unwrap();
                (path.clone(), changed, std::fs::read(path).unwrap())
            })
            .collect();
        files.sort();
        files
    };
    let before = listed();
    shown(&folder.to_string_lossy());
    assert_eq!(before, listed());
}

#[test]
fn law_6_one_presenter() {
    // No painter uses a part's body, and only the presenter parses Markdown.
    let sources = |folder: &str| {
        let mut found = Vec::new();
        let mut open = vec![root().join(folder)];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            } else if !path.to_string_lossy().ends_with("_tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
        found
    };
    let view = "crates/unspool-view/src";
    let painters = ["lines", "lines.rs", "plain.rs"].map(|file| format!("{view}/{file}"));
    for painter in painters.iter().map(String::as_str).chain(["crates/unspool/src/paint.rs"]) {
        for (path, text) in sources(painter) {
            for banned in ["Body::", "pulldown_cmark"] {
                assert!(!text.contains(banned), "{} knows {banned}", path.display());
            }
        }
    }
    for (path, text) in sources(view) {
        let presents = path.starts_with(root().join(view).join("present"));
        assert!(presents || !text.contains("pulldown_cmark"), "{}", path.display());
    }
}

#[test]
fn several_captures_of_one_session_are_one_session() {
    let folder = shown(&case("terminal-permissions-and-questions"));
    let log = shown(&format!("{}/log.jsonl", case("terminal-permissions-and-questions")));
    assert_eq!(folder["session"]["id"], log["session"]["id"]);
    // The question is in the hooks, the answer in the log (R-003-09, R-003-10, R-003-14).
    let tool = |document: &Value, turn: usize| document["turns"][turn]["parts"][1].clone();
    // An answer in the log proves that there was a question; a rejection does not.
    assert_eq!(tool(&log, 0)["question"]["kind"], "permission");
    assert_eq!(tool(&log, 1)["question"], Value::Null);
    assert_eq!(tool(&folder, 1)["question"]["kind"], "permission");
    assert_eq!(tool(&folder, 0)["answer"]["decision"], "allowed");
    assert_eq!(tool(&folder, 1)["answer"]["decision"], "denied");
    assert_eq!(tool(&folder, 1)["answer"]["observed"], false);
}

#[test]
fn a_record_of_unknown_kind_is_kept_in_its_place() {
    // R-001-16, R-000-24: kept whole, counted, never fatal.
    let folder = tempdir("unknown");
    let path = folder.join("log.jsonl");
    let recording =
        std::fs::read_to_string(root().join(case("error-500-retried/log.jsonl"))).unwrap();
    let session = "879e1b15-ce78-495f-b707-b9ed7b9d418c";
    let odd = [
        format!(r#"{{"type":"hologram","sessionId":"{session}","depth":3}}"#),
        format!(r#"{{"type":"system","subtype":"weather","uuid":"u1","sessionId":"{session}"}}"#),
    ];
    let mut lines: Vec<&str> = recording.lines().collect();
    let reply = lines.iter().position(|line| line.contains("Recovered after")).unwrap();
    lines.splice(reply..reply, odd.iter().map(String::as_str));
    std::fs::write(&path, lines.join("\n")).unwrap();
    let document = shown(&path.to_string_lossy());
    let parts = document["turns"][0]["parts"].as_array().unwrap();
    let kinds: Vec<&str> = parts.iter().map(|part| part["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["notice", "reasoning", "data", "data", "text"]);
    assert_eq!(parts[2]["data_kind"], "hologram");
    assert_eq!(parts[2]["payload"]["depth"], 3);
    assert_eq!(parts[3]["data_kind"], "system/weather");
    assert_eq!(document["warnings"], serde_json::json!([]));
    let whole = shown(&case("error-500-retried/log.jsonl"));
    for count in ["in_parts", "read"] {
        let count = |document: &Value| document["records"][count].as_u64().unwrap();
        assert_eq!(count(&document), count(&whole) + 2);
    }
}

#[test]
fn an_error_is_flagged_and_never_guessed_from_its_words() {
    // R-001-23, R-004-18
    let document = shown(&case("error-authentication"));
    let parts = document["turns"][0]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0]["kind"], "error");
    assert_eq!(parts[0]["status"], 401);
    assert_eq!(document["turns"][0]["state"], "failed");
    assert_eq!(document["turns"][0]["content"], "");
}

#[test]
fn record_metadata_is_kept() {
    // R-001-24: project, branch and version; an agent has the id of its own log.
    let document = shown(&format!("{}/log.jsonl", case("subagents-parallel-and-background")));
    let session = &document["session"];
    assert_eq!(session["project"], "/home/dev/weather-app");
    assert_eq!(session["branch"], "main");
    assert_eq!(session["version"], "2.1.325");
    let logs = root().join(case("subagents-parallel-and-background/subagents"));
    let parts = document["turns"][0]["parts"].as_array().unwrap();
    let agents: Vec<&str> = parts
        .iter()
        .filter(|part| part["kind"] == "agent")
        .map(|part| part["agents"][0]["id"].as_str().unwrap())
        .collect();
    assert_eq!(agents.len(), 3);
    for id in agents {
        assert!(logs.join(format!("agent-{id}.jsonl")).exists(), "{id}");
    }
}

#[test]
fn sub_agent_usage_is_counted_separately_and_once() {
    // Every token of the session and its three agents, as Claude Code counted them.
    let document = shown(&case("subagents-parallel-and-background"));
    let session = &document["session"];
    assert_eq!(session["usage"]["output"], 512);
    assert_eq!(session["usage_with_agents"]["output"], 1067);
    assert_eq!(session["usage_with_agents"]["cache_read"], 81460);
    let nested = shown(&case("subagents-nested"));
    assert_eq!(nested["session"]["usage_with_agents"]["output"], 194);
    // An agent's session can be selected by the id in the agent part.
    let parts = document["turns"][0]["parts"].as_array().unwrap();
    let agent = &parts.iter().find(|part| part["kind"] == "agent").unwrap()["agents"][0];
    let id = agent["session"].as_str().unwrap();
    let output =
        unspool(&["show", &case("subagents-parallel-and-background"), "--json", "--session", id]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["session"]["agent_session_id"], agent["id"]);
    assert_eq!(document["turns"][0]["trigger"], "agent");
}

#[test]
fn a_turn_says_all_that_a_chat_message_needs() {
    // R-003-05, R-003-16: time, duration, model, interruption, tokens, thinking.
    let document = shown(&case("terminal-interrupts-and-queued-prompts"));
    let turn = &document["turns"][1];
    assert_eq!(turn["state"], "interrupted");
    assert!(turn["started_at"].is_string() && turn["ended_at"].is_string());
    assert_eq!(document["session"]["models"], serde_json::json!(["claude-opus-5-5"]));
    assert_eq!(turn["usage"]["output"], 1);
    assert_eq!(turn["parts"][0]["duration_ms"], 402);
}

/// An empty folder under the build's temporary folder.
fn tempdir(name: &str) -> std::path::PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    let mut marker = std::fs::File::create(path.join("README")).unwrap();
    marker.write_all(b"made by a test\n").unwrap();
    path
}
