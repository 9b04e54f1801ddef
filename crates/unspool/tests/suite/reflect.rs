//! What `unspool reflect` finds in recorded sessions and in one written by hand, and that nothing of
//! it is a secret.

use std::fs;

use serde_json::{Value, json};

use crate::case::root;
use crate::harness::Machine;
use crate::terminal::Terminal;

const CASE: &str = "fixtures/claude-code/discovery-loop/log.jsonl";
const LOG: &str = ".claude/projects/-home-dev-weather-app/one.jsonl";
/// A key in the form of a vendor's.
const SECRET: &str =
    "sk-ant-api03-Zk8Qw3nVb7Lr2Xc9Td4Hs6Jf1Mg5Yp0Ae8Uo3Wi7Bn2Kv4Cx6Rz9Lq1Ft5Gd8Sh3Jm7Pw2Na";

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

/// A session of Claude Code in which a command with a secret fails three times.
fn failing(machine: &Machine) {
    let session = "6d0d2c44-9a1f-4f0e-8d7b-3b1a5e9c0001";
    let record = |nth: usize, kind: &str, role: &str, content: Value, more: Value| {
        let mut record = json!({
            "type": kind, "uuid": format!("00000000-0000-4000-8000-{nth:012}"),
            "parentUuid": null, "isSidechain": false, "sessionId": session,
            "cwd": "/home/dev/app", "version": "2.1.100", "userType": "external",
            "timestamp": format!("2026-05-31T12:00:{nth:02}.000Z"),
            "message": { "role": role, "content": content },
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            record["message"][name] = value.clone();
        }
        record.to_string()
    };
    let mut lines = vec![record(0, "user", "user", json!("Log in"), json!({}))];
    for nth in 0..3 {
        let call = format!("toolu_{nth}");
        let command = format!("login --key {SECRET}");
        let made = json!([{ "type": "tool_use", "id": call, "name": "Bash", "input": { "command": command } }]);
        let message = json!({ "id": format!("msg_{nth}"), "model": "claude-x", "type": "message" });
        lines.push(record(1 + nth * 2, "assistant", "assistant", made, message));
        let failed = json!([{ "type": "tool_result", "tool_use_id": call, "is_error": true,
            "content": format!("Exit code 1\nthe key {SECRET} is unknown") }]);
        lines.push(record(2 + nth * 2, "user", "user", failed, json!({})));
    }
    machine.write(LOG, (lines.join("\n") + "\n").as_bytes());
    machine.ok("d", &["sync"]);
}

// R-002-42
#[test]
fn every_finding_opens_at_its_part() {
    let machine = Machine::new();
    machine.write(LOG, &fs::read(root().join(CASE)).unwrap());
    machine.ok("d", &["sync"]);
    let all = machine.json("d", &["reflect"]);
    assert!(!array(&all["findings"]).is_empty(), "{all}");
    for finding in array(&all["findings"]) {
        assert!(finding["count"].as_u64() <= finding["opportunities"].as_u64(), "{finding}");
        for evidence in array(&finding["evidence"]) {
            let session = evidence["session"].as_str().unwrap();
            let Some(part) = evidence["part"].as_str() else { continue };
            let shown = machine.ok("d", &["show", session, "--part", part, "--plain"]);
            assert!(shown.lines().count() > 1, "{finding}: {shown}");
        }
    }
    let session = array(&all["sessions"])[0]["id"].as_str().unwrap();
    let text = machine.ok("d", &["reflect", session, "--plain"]);
    for finding in array(&all["findings"]) {
        let start: String = finding["title"].as_str().unwrap().chars().take(30).collect();
        assert!(text.contains(&start), "{start} is not in:\n{text}");
    }
}

// R-002-42
#[test]
fn a_finding_opens_at_its_part_in_the_terminal() {
    let machine = Machine::new();
    machine.write(LOG, &fs::read(root().join(CASE)).unwrap());
    machine.ok("archive", &["sync"]);
    let found = machine.json("archive", &["reflect"]);
    let title = found["findings"][0]["title"].as_str().unwrap();
    assert_eq!(title, "An edit of /home/dev/weather-app/src/api.ts missed once");
    // So low that neither the beginning nor the end of the session has the part.
    let mut terminal = Terminal::open(&machine, (110, 14), &[]);
    terminal.shows("The forecast cache keeps missing");
    terminal.press("F");
    terminal.shows("src/api.ts missed once  1 of 3 edits");
    terminal.press("\r");
    terminal.until("its part, chosen", |text| {
        let chosen = text.lines().filter(|row| row.starts_with('▎'));
        let chosen: String = chosen.map(|row| format!("{row}\n")).collect();
        chosen.contains("api.ts") && !text.contains("missed once")
    });
}

#[test]
fn a_finding_has_no_secret() {
    let machine = Machine::new();
    failing(&machine);
    let all = machine.ok("d", &["reflect", "--json"]);
    let text = machine.ok("d", &["reflect", "--plain", "--all", "--width", "400"]);
    let document: Value = serde_json::from_str(&all).unwrap();
    let finding = &document["findings"][0];
    assert_eq!(finding["rule"], "fails-again", "{all}");
    assert_eq!((finding["count"].as_u64(), finding["opportunities"].as_u64()), (Some(3), Some(3)));
    let title = finding["title"].as_str().unwrap();
    assert!(
        title.starts_with("Bash login failed 3 times: Exit code 1: the key [redacted:"),
        "{title}"
    );
    for shown in [&all, &text] {
        assert!(!shown.contains(&SECRET[..20]), "{shown}");
        assert!(shown.contains("[redacted:"), "{shown}");
    }
}

#[test]
fn a_rule_of_the_user_is_checked_where_the_prompt_has_it() {
    let machine = Machine::new();
    machine.write(LOG, &fs::read(root().join(CASE)).unwrap());
    machine.ok("d", &["sync"]);
    let with = |text: &str, never: &str| {
        let config = format!("[[reflect.rules]]\ntext = '{text}'\nnever = '{never}'\n");
        machine.write(".config/unspool/config.toml", config.as_bytes());
        let output = machine.run("d", &["reflect", "--rule", "rule-ignored", "--json"], "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let count = |text: &str, never: &str| {
        let (found, why) = with(text, never);
        let found: Value = serde_json::from_str(&found).unwrap_or_else(|_| panic!("{why}"));
        array(&found["findings"]).first().map_or(0, |finding| finding["count"].as_u64().unwrap())
    };
    let calls = machine.json("d", &["search", "--tool", "Bash", "--limit", "1000"]);
    assert_eq!(count("Primary working directory", "tool=Bash"), array(&calls).len() as u64);
    assert_eq!(count("Never said in any prompt", "tool=Bash"), 0);
    assert_eq!(count("Primary working directory", "tool=Bash input~\"^no such program\""), 0);
    let (_, why) = with("Primary working directory", "Bash");
    assert!(why.contains("invalid rule 1 in [[reflect.rules]]"), "{why}");
    assert!(why.contains("write it as tool=NAME"), "{why}");
}

#[test]
fn what_cannot_be_shown_says_why() {
    let machine = Machine::new();
    failing(&machine);
    let session = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let why = |arguments: &[&str]| {
        let output = machine.run("d", arguments, "");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(why(&["show", &session, "--part", "x"]).contains("is no id of a part"));
    let none = "00000000000000000000";
    assert!(why(&["show", &session, "--part", none]).contains("this session has no part"));
    assert!(why(&["show", "/tmp/x.jsonl", "--part", none]).contains("--part needs a session"));
    assert!(why(&["reflect", "--rule", "nonsense"]).contains("choose one of fails-again"));
    assert!(why(&["reflect", "--project", "/nowhere"]).contains("no sessions match"));
}
