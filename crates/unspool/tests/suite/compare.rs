//! Two sessions side by side: what is said of them is what `show` and `changes` say of each, and turns
//! with the same prompt stand in one row.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::Machine;
use crate::test_server::Server;

/// A log of Claude Code: prompts, each with the files that are written in answer to it.
fn log(session: &str, turns: &[(&str, &[(&str, &str)])]) -> Vec<u8> {
    let mut records = Vec::new();
    let mut record = |kind: &str, message: Value, more: Value| {
        let nth = records.len() + 1;
        let mut record = json!({
            "type": kind, "uuid": format!("{session}-{nth:012}"),
            "parentUuid": (nth > 1).then(|| format!("{session}-{:012}", nth - 1)),
            "timestamp": format!("2026-11-15T00:{:02}:{:02}.000Z", nth / 60, nth % 60),
            "isSidechain": false, "userType": "external", "cwd": "/home/dev/weather-app",
            "version": "2.1.325", "sessionId": session, "message": message,
        });
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        records.push(format!("{record}\n"));
    };
    for (turn, (prompt, files)) in turns.iter().enumerate() {
        record("user", json!({"role": "user", "content": prompt}), json!({}));
        let reply = |nth: usize, content: Value, reason: &str| {
            json!({"id": format!("msg_{turn}_{nth}"), "type": "message", "role": "assistant",
                "model": "claude-opus-5-5", "content": [content], "stop_reason": reason,
                "usage": {"input_tokens": 3, "output_tokens": 5}})
        };
        for (nth, (path, text)) in files.iter().enumerate() {
            let id = format!("toolu_{turn}_{nth}");
            let path = format!("/home/dev/weather-app/{path}");
            let call = json!({"type": "tool_use", "id": id, "name": "Write",
                "input": {"file_path": path, "content": text}});
            record("assistant", reply(nth, call, "tool_use"), json!({}));
            let result = json!([{"type": "tool_result", "tool_use_id": id, "content": "created"}]);
            let told = json!({"toolUseResult": {"type": "create", "filePath": path,
                "content": text, "structuredPatch": [], "originalFile": null}});
            record("user", json!({"role": "user", "content": result}), told);
        }
        let said = json!({"type": "text", "text": "Done."});
        record("assistant", reply(99, said, "end_turn"), json!({}));
    }
    records.concat().into_bytes()
}

const FIRST: &str = "00000000-0000-4000-8000-0000000000a1";
const SECOND: &str = "00000000-0000-4000-8000-0000000000b2";

fn machine() -> Machine {
    let machine = Machine::new();
    let turns: &[(&str, &[(&str, &str)])] = &[
        ("Add the cache", &[("src/cache.rs", "one\n"), ("src/lib.rs", "mod cache;\n")]),
        ("Go on", &[]),
        ("Write the docs", &[("README.md", "cache\n")]),
    ];
    machine.write("logs/first.jsonl", &log(FIRST, turns));
    let turns: &[(&str, &[(&str, &str)])] = &[
        ("Add  the\ncache", &[("src/cache.rs", "two\n"), ("src/lib.rs", "mod cache;\n")]),
        ("Write the docs", &[]),
    ];
    machine.write("logs/second.jsonl", &log(SECOND, turns));
    machine.ok("d", &["import", machine.home().join("logs").to_str().unwrap()]);
    machine
}

#[test]
fn turns_tools_and_files_stand_side_by_side() {
    let machine = machine();
    let compared = machine.json("d", &["compare", FIRST, SECOND]);
    let rows: Vec<_> = compared["turns"].as_array().unwrap().iter().collect();
    let numbers = |row: &Value| {
        (
            row["turns"][0]["number"].as_u64(),
            row["turns"][1]["number"].as_u64(),
            row["same_prompt"] == true,
        )
    };
    // White space in a prompt makes no difference, and a turn without a counterpart stands alone.
    let expected = [(Some(1), Some(1), true), (Some(2), None, false), (Some(3), Some(2), true)];
    assert_eq!(rows.iter().map(|row| numbers(row)).collect::<Vec<_>>(), expected, "{compared:#}");
    assert_eq!(rows[0]["turns"][0]["files"], 2);
    assert_eq!(compared["tools"], json!([{ "name": "Write", "calls": [3, 2], "failed": [0, 0] }]));
    let files = compared["files"].as_array().unwrap();
    let verdicts: BTreeMap<&str, &str> = files
        .iter()
        .map(|file| (file["name"].as_str().unwrap(), file["verdict"].as_str().unwrap()))
        .collect();
    let expected =
        [("README.md", "only-one"), ("src/cache.rs", "different"), ("src/lib.rs", "same")];
    assert_eq!(verdicts, BTreeMap::from(expected));
    // As text, at any width.
    for width in ["40", "80", "120"] {
        let text = machine.ok("d", &["compare", FIRST, SECOND, "--plain", "--width", width]);
        let wide = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(wide <= width.parse().unwrap(), "{wide} columns:\n{text}");
        assert!(text.contains("## Turns") && text.contains("## Files"), "{text}");
        // Words of narrow cells are cut.
        assert!(width == "40" || text.contains("same change"), "{text}");
    }
}

/// The recordings of two agents with one task each: the figures are those of `show` and `changes`.
#[test]
fn recorded_sessions_of_two_agents_are_compared() {
    let machine = Machine::new();
    for agent in ["claude-code", "codex"] {
        let log = crate::harness::recorded(&format!("{agent}/discovery-loop/log.jsonl"));
        machine.write(&format!("logs/{agent}/log.jsonl"), &log);
    }
    machine.ok("d", &["import", machine.home().join("logs").to_str().unwrap()]);
    let sessions = machine.json("d", &["list"]);
    let of = |agent: &str| {
        let mut sessions = sessions.as_array().unwrap().iter();
        sessions.find(|one| one["agent"] == agent).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let ids = [of("claude-code"), of("codex")];
    let compared = machine.json("d", &["compare", &ids[0], &ids[1]]);
    for (side, id) in ids.iter().enumerate() {
        let shown = machine.json("d", &["show", id]);
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        for turn in shown["turns"].as_array().unwrap() {
            for part in turn["parts"].as_array().unwrap().iter().filter(|one| one["kind"] == "tool")
            {
                *calls.entry(part["name"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
        let told = compared["tools"].as_array().unwrap().iter();
        let told = told.map(|tool| {
            (tool["name"].as_str().unwrap().to_owned(), tool["calls"][side].as_u64().unwrap())
        });
        let told: BTreeMap<_, _> = told.filter(|(_, count)| *count > 0).collect();
        assert!(!calls.is_empty());
        assert_eq!(told, calls, "{id}");
        let changes = machine.json("d", &["changes", id]);
        for file in changes["files"].as_array().unwrap() {
            let mut files = compared["files"].as_array().unwrap().iter();
            let found = files.find(|one| one["name"] == file["name"]).unwrap();
            assert_eq!(found["changes"][side]["added"], file["added"], "{found}");
            assert_eq!(found["changes"][side]["removed"], file["removed"], "{found}");
        }
    }
    let said = compared["notes"].to_string();
    assert!(said.contains("No prompt is in both sessions"), "{said}");
}

/// The page offers the most alike sessions first, and says what is wrong with an id.
#[test]
fn the_page_offers_what_to_compare_with() {
    let machine = machine();
    let log = String::from_utf8(crate::harness::recorded("codex/discovery-loop/log.jsonl"));
    machine.write("other/log.jsonl", log.unwrap().as_bytes());
    machine.ok("d", &["import", machine.home().join("other").to_str().unwrap()]);
    let server = Server::begin(&machine, "d", &[]);
    let page = |path: &str| {
        let response = server.get(path);
        (response.status, String::from_utf8_lossy(&response.body).into_owned())
    };
    let (status, body) = page(&format!("/compare?a={FIRST}"));
    assert_eq!(status, 200, "{body}");
    let (alike, other) = (body.find("same first prompt").unwrap(), body.find("codex").unwrap());
    assert!(alike < other, "{body}");
    assert!(!body.contains(&format!("b={FIRST}")), "not with itself");
    assert_eq!(page(&format!("/compare?a={FIRST}&b={SECOND}")).0, 200);
    assert_eq!(page(&format!("/compare?a={FIRST}&b=nosuch")).0, 404);
    assert_eq!(page("/compare").0, 400);
}
