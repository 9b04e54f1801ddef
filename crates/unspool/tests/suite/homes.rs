//! A home folder with the files of many agents: each is found where its agent keeps them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::{Machine, WatchProcess, recorded, until};

/// Agents with a recording and its place in the home folder.
const HOMES: [(&str, &str, &str); 8] = [
    ("qwen", "qwen/discovery-loop/log.jsonl", ".qwen/projects/-w/chats/{id}.jsonl"),
    ("pi", "pi/discovery-loop/log.jsonl", ".pi/agent/sessions/--w--/2026_{id}.jsonl"),
    ("kilo", "kilo/retries/log.db", ".local/share/kilo/kilo.db"),
    ("cline", "cline/discovery-loop/log.json", ".cline/data/sessions/{id}/{id}.messages.json"),
    ("droid", "droid/discovery-loop/log.jsonl", ".factory/sessions/-w/{id}.jsonl"),
    ("continue", "continue/discovery-loop/log.json", ".continue/sessions/{id}.json"),
    (
        "mini-swe-agent",
        "mini-swe-agent/discovery-loop/log.json",
        if cfg!(target_os = "macos") {
            "Library/Application Support/mini-swe-agent/last_mini_run.traj.json"
        } else {
            ".config/mini-swe-agent/last_mini_run.traj.json"
        },
    ),
    ("aider", "aider/discovery-loop/log.md", ".aider.chat.history.md"),
];

/// The session id in a recording, for the names of its files.
fn session_id(fixture: &str) -> String {
    let path = crate::case::root().join("fixtures").join(fixture);
    let bytes = std::fs::read(path).unwrap();
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let whole: Option<Value> = serde_json::from_slice(&bytes).ok();
    let record = whole.or_else(|| serde_json::from_slice(first).ok()).unwrap_or_default();
    let id = ["sessionId", "id"].iter().find_map(|name| record[*name].as_str());
    id.unwrap_or("unknown").to_owned()
}

#[test]
fn the_sessions_of_all_agents_are_found_in_their_homes() {
    // R-001-25
    let machine = Machine::new();
    for (_, fixture, path) in HOMES {
        machine.put(fixture, &path.replace("{id}", &session_id(fixture)));
    }
    machine.ok("d", &["sync"]);
    let listed = machine.json("d", &["list"]);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for session in listed.as_array().unwrap() {
        assert!(session["turns"].as_u64() > Some(0), "{session}");
        *counts.entry(session["agent"].as_str().unwrap()).or_default() += 1;
    }
    let mut expected: Vec<&str> = HOMES.iter().map(|(agent, ..)| *agent).collect();
    expected.sort_unstable();
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), expected);
    // A second sync reads nothing.
    assert_eq!(machine.json("d", &["sync"])["records"], 0);
    // `doctor` names each with what it found.
    let report = machine.json("d", &["doctor"]);
    let agents = report["agents"].as_array().unwrap();
    for (agent, ..) in HOMES {
        let found = agents.iter().find(|found| found["agent"] == *agent);
        let found = found.unwrap_or_else(|| panic!("{agent} is missing: {report}"));
        assert!(found["files"].as_u64() > Some(0), "{found}");
        assert_eq!(found["problems"], serde_json::json!([]), "{found}");
    }
}

const CLAUDE: &str = "claude-code/discovery-loop/log.jsonl";
const HISTORY: &str = "aider/discovery-loop/log.md";

/// A machine with a session of Claude Code in `~/work/app`, which is a project of aider as well.
fn project_machine() -> Machine {
    let machine = Machine::new();
    let project = machine.home().join("work/app");
    let log = String::from_utf8(recorded(CLAUDE)).unwrap();
    let log = log.replace("/home/dev/weather-app", project.to_str().unwrap());
    machine.write(".claude/projects/-work-app/s.jsonl", log.as_bytes());
    machine
}

fn agents(sessions: Option<Vec<Value>>) -> Vec<String> {
    let agent = |held: &Value| held["session"]["agent"].as_str().unwrap_or_default().to_owned();
    let mut agents: Vec<String> = sessions.iter().flatten().map(agent).collect();
    agents.sort_unstable();
    agents
}

#[test]
fn the_history_of_aider_is_found_in_the_project_of_another_agent() {
    // R-001-25
    let machine = project_machine();
    machine.put(HISTORY, "work/app/.aider.chat.history.md");
    // Nobody worked there, as far as the archive knows.
    machine.put(HISTORY, "work/other/.aider.chat.history.md");
    machine.ok("d", &["sync"]);
    assert_eq!(agents(machine.sessions("d")), ["aider", "claude-code"]);
    assert_eq!(machine.json("d", &["sync"])["records"], 0);
    let report = machine.json("d", &["doctor"]);
    let aider = report["agents"].as_array().unwrap().iter().find(|of| of["agent"] == "aider");
    let name = ".aider.chat.history.md";
    let expected = serde_json::json!({ "name": name, "searched": 1, "found": 1 });
    assert_eq!(aider.unwrap()["in_projects"], expected, "{report}");
    let told = machine.ok("d", &["doctor"]);
    let line = format!("looked for {name} in 1 folder that other sessions worked in: 1 found");
    assert!(told.contains(&line), "{told}");
}

#[test]
fn a_history_of_aider_that_begins_is_noticed() {
    let machine = project_machine();
    let command = machine.command("d", &["sync", "--watch", "--json"]);
    let _watcher = WatchProcess::begin(command);
    until("the session of Claude Code", || match agents(machine.sessions("d")) {
        found if found == ["claude-code"] => Ok(()),
        found => Err(found),
    });
    machine.put(HISTORY, "work/app/.aider.chat.history.md");
    until("the history of aider", || match agents(machine.sessions("d")) {
        found if found == ["aider", "claude-code"] => Ok(()),
        found => Err(found),
    });
}
