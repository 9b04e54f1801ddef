//! What took the room in prompts, compared with sums over the pieces of each call; and archives of
//! earlier builds that get prompts by reading the logs again.

use std::collections::BTreeMap;
use std::fs;

use rusqlite::Connection;
use serde_json::Value;

use crate::case::root;
use crate::harness::{Machine, recorded};
use crate::test_server::Server;

const CASE: &str = "fixtures/claude-code/discovery-loop/log.jsonl";
const COPY: &str = ".claude/projects/-home-dev-weather-app/one.jsonl";

/// A machine with one session read from its own log, and its id.
fn machine() -> (Machine, String) {
    let machine = Machine::new();
    machine.write(COPY, &fs::read(root().join(CASE)).unwrap());
    machine.ok("d", &["sync"]);
    let id = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    (machine, id)
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

/// The characters of each kind over all calls, from the pieces of each call.
fn sums(machine: &Machine, id: &str) -> BTreeMap<String, u64> {
    let all = machine.json("d", &["prompt", &format!("{id}:1")]);
    let mut sums = BTreeMap::new();
    for piece in array(&all["prompts"]).iter().flat_map(|call| array(&call["pieces"])) {
        let mut rest = piece["chars"].as_u64().unwrap();
        for span in array(&piece["spans"]) {
            let length = span["end"].as_u64().unwrap() - span["start"].as_u64().unwrap();
            *sums.entry(span["kind"].as_str().unwrap().to_owned()).or_default() += length;
            rest -= length;
        }
        *sums.entry(piece["kind"].as_str().unwrap().to_owned()).or_default() += rest;
    }
    sums.retain(|_, chars| *chars > 0);
    sums
}

#[test]
fn what_took_the_room_is_what_the_calls_were_sent() {
    let (machine, id) = machine();
    let all = machine.json("d", &["prompt", &id]);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let mut tokens = 0;
    for source in array(&all["context"]["sources"]) {
        let kind = source["kind"].as_str().unwrap().to_owned();
        *found.entry(kind).or_default() += source["chars"].as_u64().unwrap();
        tokens += source["estimated_tokens"].as_u64().unwrap();
    }
    assert_eq!(found, sums(&machine, &id));
    // All measured tokens of the prompts are shared out, but for what is rounded.
    let shown = machine.json("d", &["show", &id]);
    let usage = &shown["session"]["usage"];
    let measured: u64 = ["input", "cache_read", "cache_write"]
        .iter()
        .map(|field| usage[*field].as_u64().unwrap())
        .sum();
    let sources = array(&all["context"]["sources"]).len() as u64;
    assert!(tokens.abs_diff(measured) <= sources, "{tokens} of {measured}");
    // Tools that were sent and never called, none of which the session has calls of.
    let called: Vec<&str> = array(&shown["turns"][0]["parts"])
        .iter()
        .filter_map(|part| part["name"].as_str())
        .collect();
    let unused = array(&all["context"]["unused_tools"]);
    assert!(!unused.is_empty() && !called.is_empty());
    for tool in unused {
        assert_eq!(tool["kind"], "tool-schema");
        assert!(!called.contains(&tool["source"].as_str().unwrap()), "{tool}");
    }
    let text = machine.ok("d", &["prompt", &id, "--context", "--plain"]);
    for heading in ["By kind", "By source", "Tools that were never called", "Tokens (shared out)"] {
        assert!(text.contains(heading), "{heading} in {text}");
    }
    let output = machine.run("d", &["prompt", &format!("{id}:1"), "--context"], "");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && text.contains("leave the turn out"), "{text}");
}

/// Makes the archive one of a build that recorded no prompts.
fn without_prompts(machine: &Machine) {
    let connection = Connection::open(machine.data("d").join("unspool.db")).unwrap();
    connection
        .execute_batch(
            "DELETE FROM prompt_log;
             UPDATE step SET origin = json_remove(origin, '$.request');",
        )
        .unwrap();
}

// Law 5: an archive of an earlier build becomes what a new one is, once and for all.
#[test]
fn an_archive_without_prompts_gets_them() {
    let (machine, id) = machine();
    let all = || machine.json("d", &["prompt", &format!("{id}:1")]);
    let (before, shown) = (all(), machine.json("d", &["show", &id]));
    machine.ok("d", &["tag", &id, "kept"]);
    without_prompts(&machine);
    let output = machine.run("d", &["prompt", &id], "");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("db rebuild --prompts"), "{text}");
    let message = machine.ok("d", &["db", "rebuild", "--prompts"]);
    assert!(message.contains("1 session got prompts"), "{message}");
    assert_eq!(all(), before);
    let mut now = machine.json("d", &["show", &id]);
    assert_eq!(now["session"]["tags"][0], "kept");
    now["session"]["tags"] = shown["session"]["tags"].clone();
    for field in ["session", "turns", "records"] {
        assert_eq!(now[field], shown[field], "{field}");
    }
    // Again: there is nothing to do.
    let message = machine.ok("d", &["db", "rebuild", "--prompts"]);
    assert!(message.contains("0 sessions got prompts"), "{message}");
    assert!(!message.contains("left unchanged"), "{message}");
    assert_eq!(all(), before);
    assert!(machine.ok("d", &["db", "check"]).contains("no problems found"));
}

#[test]
fn a_session_whose_log_is_gone_stays_and_is_named() {
    let (machine, id) = machine();
    without_prompts(&machine);
    let log = machine.home().join(COPY);
    fs::remove_file(&log).unwrap();
    let before = machine.json("d", &["show", &id]);
    let message = machine.ok("d", &["db", "rebuild", "--prompts"]);
    assert!(message.contains("1 session left unchanged"), "{message}");
    assert!(message.contains(&id) && message.contains(log.to_str().unwrap()), "{message}");
    assert_eq!(machine.json("d", &["show", &id]), before);
}

/// A reread that ended after it removed the session, and before it read the log again.
#[test]
fn an_interrupted_rebuild_is_completed_by_the_next() {
    let machine = Machine::new();
    let log = machine.home().join("elsewhere/log.jsonl");
    machine.write("elsewhere/log.jsonl", &fs::read(root().join(CASE)).unwrap());
    machine.ok("d", &["import", log.to_str().unwrap()]);
    let id = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let before = machine.json("d", &["prompt", &format!("{id}:1")]);
    let connection = Connection::open(machine.data("d").join("unspool.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = ON;
             UPDATE file SET size = 0, modified = 0, changed = 0;
             DELETE FROM session;",
        )
        .unwrap();
    drop(connection);
    assert!(array(&machine.json("d", &["list"])).is_empty());
    // No sync finds this file by itself.
    machine.ok("d", &["db", "rebuild", "--prompts"]);
    assert_eq!(machine.json("d", &["prompt", &format!("{id}:1")]), before);
}

/// What fills prompts over all sessions is the sum of what fills those of each.
#[test]
fn stats_by_piece_add_up_the_sessions() {
    // R-002-16
    let (machine, one) = machine();
    let mcp = recorded("claude-code/mcp-tools/log.jsonl");
    machine.write(".claude/projects/-home-dev-weather-app/two.jsonl", &mcp);
    machine.put("pi/discovery-loop/log.jsonl", ".pi/agent/sessions/--w--/2026_three.jsonl");
    machine.ok("d", &["sync"]);
    let listed = machine.json("d", &["list"]);
    let is_other =
        |listed: &&Value| listed["agent"] == "claude-code" && listed["id"] != one.as_str();
    let two = array(&listed).iter().find(is_other).unwrap()["id"].as_str().unwrap();
    let mut expected: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    let add = |sources: &Value, to: &mut BTreeMap<(String, String), (u64, u64)>| {
        for source in array(sources) {
            let name = |field: &str| source[field].as_str().unwrap_or_default().to_owned();
            let sum = to.entry((name("kind"), name("source"))).or_default();
            sum.0 += source["chars"].as_u64().unwrap();
            sum.1 += source["estimated_tokens"].as_u64().unwrap();
        }
    };
    let mut calls = 0;
    for id in [one.as_str(), two] {
        let prompts = machine.json("d", &["prompt", id]);
        add(&prompts["context"]["sources"], &mut expected);
        calls += array(&prompts["prompts"]).len();
    }
    let all = machine.json("d", &["stats", "--by", "piece"]);
    let mut found = BTreeMap::new();
    add(&all["sources"], &mut found);
    assert_eq!(found, expected);
    assert_eq!(all["calls"], calls, "{all}");
    assert_eq!((&all["sessions"], &all["sessions_without_prompts"]), (&2.into(), &1.into()));
    // The server of the tools, with all that they brought.
    let of_server = |source: &&Value| source["mcp_server"].is_string();
    let chars: u64 =
        array(&all["sources"]).iter().filter(of_server).map(|s| s["chars"].as_u64().unwrap()).sum();
    let servers: u64 = array(&all["servers"]).iter().map(|s| s["chars"].as_u64().unwrap()).sum();
    assert!(chars > 0 && chars == servers, "{all}");
    let none = machine.json("d", &["stats", "--by", "piece", "--agent", "pi"]);
    assert_eq!((&none["sessions"], &none["sources"]), (&0.into(), &serde_json::json!([])));
    let csv = machine.ok("d", &["stats", "--by", "piece", "--csv", "--limit", "3"]);
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert!(csv.starts_with("kind,source,mcp_server,chars,estimated_tokens"), "{csv}");
    let text = machine.ok("d", &["stats", "--by", "piece"]);
    assert!(text.contains("By MCP server") && text.contains("1 session"), "{text}");
}

/// A prompt of megabytes opens at once: its texts come with their beginnings, and whole when they are
/// asked for.
#[test]
fn a_long_text_comes_with_its_beginning_and_is_had_whole() {
    let log = String::from_utf8(recorded("codex/discovery-loop/log.jsonl")).unwrap();
    let said = "The forecast shows wrong Fahrenheit values.";
    let long = format!("{said} {}THE-END", "Look again. ".repeat(200_000));
    let machine = Machine::new();
    machine.write("log.jsonl", log.replace(said, &long).as_bytes());
    machine.ok("d", &["import", machine.home().join("log.jsonl").to_str().unwrap()]);
    let id = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let calls = machine.json("d", &["prompt", &id]);
    let call = array(&calls["prompts"]).last().unwrap();
    assert!(call["chars"].as_u64().unwrap() > 2_000_000);
    let request = call["call"].as_str().unwrap();
    let server = Server::begin(&machine, "d", &[]);
    let get = |path: &str| String::from_utf8(server.get(path).body).unwrap();
    let page = get(&format!("/s/{id}/prompts?call={request}"));
    assert!(page.contains(said) && !page.contains("THE-END") && page.len() < 200_000);
    // Its other texts are short and stand there whole.
    let link = page.split("whole-piece\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let link = link.replace("&amp;", "&");
    assert_eq!(page.matches("whole-piece").count(), 1, "{link}");
    let whole = get(&link);
    assert!(whole.contains("THE-END") && whole.matches("\"prompt-piece\"").count() == 1);
    // What is looked for is shown, wherever it stands.
    let found = get(&format!("/s/{id}/prompts?call={request}&find=THE-END"));
    assert!(found.contains("Look again. THE-END"), "{}", found.len());
}
